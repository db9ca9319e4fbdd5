package sessiontools_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/tools/sessiontools"
	"github.com/refold/refold/space"
)

// readers are space readers by target; a target that is missing does not answer.
// published are the packs of the stream.
type readers struct {
	targets   map[string][]executor.SpaceOffer
	published []executor.SpaceOffer
}

func (r readers) AskReader(_ context.Context, target string, asked executor.SpaceAsked) (executor.SpaceOffer, error) {
	for _, o := range r.targets[target] {
		if asked.Space == o.Space && asked.Trust.Covers(o.Version) {
			return o, nil
		}
	}
	return executor.SpaceOffer{}, errors.New("nobody has it")
}

func (r readers) PublishedPacks(_ context.Context, prefix string, trust space.Trust) (found []executor.SpaceOffer, err error) {
	for _, o := range r.published {
		if strings.HasPrefix(o.Space, prefix) && trust.Covers(o.Version) {
			found = append(found, o)
		}
	}
	return found, nil
}

// TestExtensionsListShowsReaderAnswers checks the whole output of
// extensions_list: packs of readers that answer, packs of others with
// includeUnavailable only, and published packs that match a wildcard grant.
func TestExtensionsListShowsReaderAnswers(t *testing.T) {
	t.Parallel()
	tools := sessiontools.New(store{}.get)
	tools.Packs = readers{
		targets: map[string][]executor.SpaceOffer{
			"crm":   {{Space: "crm", Version: "1.4.2", Source: "factory", Category: "sales", DisplayName: "Customers", Description: "Finds customers.", RequiredSecrets: []string{"CRM_KEY"}}},
			"packs": {{Space: "lab-a", Version: "2.0.0", Source: "package"}, {Space: "shop", Version: "2.0.0"}},
		},
		published: []executor.SpaceOffer{
			{Space: "lab-a", Version: "2.0.0", DisplayName: "Lab"}, {Space: "lab-b", Version: "1.0.0"}, {Space: "lab-own", Version: "1.0.0"},
			{Space: "gone", Version: "1.0.0", Category: "old", Description: "Was here."},
		},
	}
	model := []string{"model"}
	call := executor.Call{
		ToolID: "refold.extensions.list",
		Spaces: []executor.CallSpace{{Space: "seats", Kind: "pack", Version: "1.0.0", Source: "package", At: 1_000}},
		Grants: []executor.CallGrant{
			{Space: "crm", Attach: model},
			{Space: "shop", Attach: model, Target: "packs", Trust: space.Trust{Version: "1"}}, // the reader has 2.0.0
			{Space: "seats", Attach: model},     // applied
			{Space: "lab-own", Target: "packs"}, // of operators alone, and so not by lab-*
			{Space: "lab-*", Attach: model, Target: "packs", Sources: []string{"package"}},
			{Space: "gone", Attach: model, Target: "nobody", Sources: []string{"package"}},
		},
	}
	const loaded = `"loadedPacks":[{"key":"id:seats","name":"seats","version":"1.0.0","identifier":"seats@1.0.0","packageName":"seats","loadedAt":"1970-01-01T00:00:01Z"}]`
	const crm = `{"name":"crm","category":"sales","displayName":"Customers","description":"Finds customers.","requiredSecrets":["CRM_KEY"],"available":true}`
	const gone = `{"name":"gone","packageName":"gone","category":"old","displayName":"","description":"Was here.","requiredSecrets":[],"available":false}`
	lab := func(name, display, available string) string {
		return `{"name":"` + name + `","packageName":"` + name + `","category":"","displayName":"` + display + `","description":"","requiredSecrets":[],"available":` + available + `}`
	}
	const shop = `{"name":"shop","category":"","displayName":"","description":"","requiredSecrets":[],"available":false}`
	for arguments, want := range map[string]string{
		`{}`:                          strings.Join([]string{crm, lab("lab-a", "", "true")}, ","),
		`{"includeUnavailable":true}`: strings.Join([]string{crm, gone, lab("lab-a", "", "true"), lab("lab-b", "", "false"), shop}, ","),
	} {
		call.Arguments = json.RawMessage(arguments)
		got, err := tools.Execute(t.Context(), call)
		if err != nil || got.Error != nil {
			t.Fatal(err, got.Error)
		}
		if want := `{` + loaded + `,"curated":[` + want + `],"note":"`; !strings.HasPrefix(got.Output, want) {
			t.Errorf("%s:\ngot  %s\nwant %s", arguments, got.Output, want)
		}
		if !strings.Contains(got.Output, `\"lab-\"`) {
			t.Errorf("%s: the note tells nothing of lab-*: %s", arguments, got.Output)
		}
	}
}
