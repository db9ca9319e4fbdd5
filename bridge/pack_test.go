package bridge

// Factory packs: their manifest, how they are read, and calls of sessions that
// pinned another version.

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/spacefiles"
	"github.com/refold/refold/internal/worker"
	"github.com/refold/refold/space"
)

type lookupArguments struct {
	Customer string `json:"customer"`
}

func lookup(_ context.Context, in lookupArguments) (string, error) {
	return "found " + in.Customer, nil
}

func TestPackIsASpace(t *testing.T) {
	t.Parallel()
	p := Pack{
		Name: "crm", Version: "1.4.2", Description: "Customers.", Needs: []string{"secret:CRM_KEY"},
		Tools: []*function.Function{function.New("crm.lookup", lookup, function.Needs("os:linux|darwin", "bin:sh"))},
		Files: fstest.MapFS{"skills/refunds/SKILL.md": {Data: []byte("---\nname: refunds\ndescription: How to refund.\n---\nAsk first.\n")}},
	}
	built, err := p.build()
	if err != nil {
		t.Fatal(err)
	}
	m := built.manifest
	if m.Kind != space.Pack || m.Space != "crm" || m.Version != "1.4.2" || m.Description != "Customers." || len(m.Skills) != 1 || !slices.Equal(m.Needs, p.Needs) {
		t.Errorf("got %+v", m)
	}
	if tool := m.Tools[0]; tool.ToolID != "crm.lookup" || tool.Executor.Target != "crm-v1" || !slices.Equal(tool.Needs, []string{"bin:sh", "os:linux|darwin"}) {
		t.Errorf("tool: got %+v", tool)
	}
	for i := range m.Files {
		if built.Files[m.Files[i].Ref] == nil {
			t.Errorf("%s is not there to be stored", m.Files[i].Path)
		}
	}
	if hash, err := p.Hash(); err != nil || hash != m.Hash().String() {
		t.Errorf("hash: got %s, %v", hash, err)
	}
	for version, want := range map[string]string{"": "", "1": "", "1.4": "", "1.4.2": "", "2": worker.CodeVersionUnknown, "x": worker.CodeVersionUnknown} {
		_, err := built.ReadSpace(t.Context(), executor.SpaceRequest{Space: "crm", Kind: "pack", Version: version})
		if code := codeIn(err); code != want {
			t.Errorf("version %q: got %v, want %q", version, err, want)
		}
	}
}

func codeIn(err error) string {
	var e *executor.Error
	if errors.As(err, &e) && e != nil {
		return e.Code
	}
	return ""
}

func TestInvalidPackIsRefused(t *testing.T) {
	t.Parallel()
	one := func(f ...*function.Function) []*function.Function { return f }
	for want, p := range map[string]Pack{
		"its name is":             {Name: "host", Version: "1.0.0"},
		"MAJOR.MINOR.PATCH":       {Name: "crm", Version: "1.0"},
		"must begin with crm.":    {Name: "crm", Version: "1.0.0", Tools: one(function.New("shop.buy", lookup))},
		"leave Target out":        {Name: "crm", Version: "1.0.0", Tools: one(function.New("crm.lookup", lookup, function.Target("host")))},
		"is listed twice":         {Name: "crm", Version: "1.0.0", Tools: one(function.New("crm.lookup", lookup), function.New("crm.lookup", lookup))},
		"is nil":                  {Name: "crm", Version: "1.0.0", Tools: one(nil)},
		"names the bindings":      {Name: "crm", Version: "1.0.0", Files: fstest.MapFS{spacefiles.IndexName: {Data: []byte(`{"bindings":"x.json"}`)}}},
		"needs":                   {Name: "crm", Version: "1.0.0", Needs: []string{"secret"}},
		"the function is nil":     {Name: "crm", Version: "1.0.0", Tools: one(function.New[lookupArguments, string]("crm.lookup", nil))},
		"unknown here; known are": {Name: "crm", Version: "1.0.0", Files: fstest.MapFS{spacefiles.IndexName: {Data: []byte(`{"colour":1}`)}}},
	} {
		if _, err := p.build(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// The arguments are checked against this version of the tool.
func TestCallsOfAnotherVersion(t *testing.T) {
	t.Parallel()
	built, err := Pack{Name: "crm", Version: "1.4.2", Tools: []*function.Function{function.New("crm.lookup", lookup)}}.build()
	if err != nil {
		t.Fatal(err)
	}
	own := codec.Ref{Hash: built.manifest.Hash()}.String()
	for _, c := range []struct{ manifest, tool, arguments, want string }{
		{own, "crm.lookup", `{"customer":"7"}`, ""},
		{own, "crm.lookup", `{"id":7}`, "invalid_arguments"},
		{own, "crm.gone", `{}`, "tool_not_served"},
		{"sha256-other", "crm.lookup", `{"customer":"7"}`, ""},
		{"sha256-other", "crm.lookup", `{"id":7}`, codeToolChanged},
		{"sha256-other", "crm.gone", `{}`, codeToolChanged},
	} {
		got, err := built.Execute(t.Context(), executor.Call{ToolID: c.tool, Arguments: json.RawMessage(c.arguments), Spaces: []executor.CallSpace{{Space: "crm", Kind: "pack", Version: "1.3.0", Manifest: c.manifest}}})
		if err != nil || codeIn(got.Error) != c.want {
			t.Errorf("%+v: got %+v, %v", c, got, err)
		}
	}
}
