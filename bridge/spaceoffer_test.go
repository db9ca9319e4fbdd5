package bridge

// The answers of readers about packs that no session has adopted.

import (
	"context"
	"reflect"
	"testing"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/worker"
)

// Three readers are requested over NATS, and the stream of published packs.
func TestReadersOfferThePacksThatTheyCanRead(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	pack := Pack{
		Name: "crm", Version: "1.4.2", Category: "sales", DisplayName: "Customers", Description: "Finds customers.",
		Needs: []string{"secret:CRM_KEY"}, Tools: []*function.Function{function.New("crm.lookup", lookup, function.Needs("secret:LOG_KEY", "secret:CRM_KEY", "secret:EXTRA?", "bin:sh"))},
	}
	want := executor.SpaceOffer{
		Space: "crm", Version: "1.4.2", Source: "factory", Category: "sales", DisplayName: "Customers", Description: "Finds customers.",
		RequiredSecrets: []string{"CRM_KEY", "LOG_KEY"},
	}
	built, err := pack.build()
	if err != nil {
		t.Fatal(err)
	}
	bad := readerFunc(func(context.Context, executor.SpaceRequest) (executor.SpaceContent, error) { panic("no") })
	reader, asker := a.bridge(t, "reader"), a.bridge(t, "asker")
	for _, version := range []string{"1.0.0", "1.4.2", "2.0.0-rc"} {
		m := *built.manifest
		m.Version = version
		if _, _, err := reader.bus.PublishPack(t.Context(), journal.Published{Pack: "crm", Version: version, Manifest: m.Bytes()}); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{reader.Pack(pack), reader.Space("packs", Published{reader}), reader.Space("bad", bad), asker.Tool("t", toolFunc(nil))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	run(t, reader)
	run(t, asker)
	bustest.Until(t, "the readers answer", func() bool { _, err := asker.AskReader(t.Context(), "bad", nil); return err == nil })
	published := want
	published.Source = "package"
	for _, c := range []struct {
		target  string
		asked   []executor.SpaceAsked
		want    []executor.SpaceOffer
		nothing bool // nobody answers
	}{
		{target: "crm", asked: []executor.SpaceAsked{{Space: "crm"}, {Space: "other"}}, want: []executor.SpaceOffer{want}},
		{target: "crm", asked: []executor.SpaceAsked{{Space: "crm", Version: "1.4"}}, want: []executor.SpaceOffer{want}},
		{target: "crm", asked: []executor.SpaceAsked{{Space: "crm", Version: "2"}}, want: []executor.SpaceOffer{}},
		{target: "packs", asked: []executor.SpaceAsked{{Space: "crm"}}, want: []executor.SpaceOffer{published}},
		{target: "bad", asked: []executor.SpaceAsked{{Space: "crm"}}, want: []executor.SpaceOffer{}},
		{target: "crm", asked: make([]executor.SpaceAsked, worker.OffersMax+1), nothing: true},
		{target: "nobody", asked: []executor.SpaceAsked{{Space: "crm"}}, nothing: true},
	} {
		got, err := asker.AskReader(t.Context(), c.target, c.asked)
		if (err != nil) != c.nothing || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %+v: got %+v, %v", c.target, c.asked[0], got, err)
		}
	}
	for _, c := range []struct {
		prefix, version string
		want            []executor.SpaceOffer
	}{{"c", "", []executor.SpaceOffer{published}}, {"", "1.4", []executor.SpaceOffer{published}}, {"x", "", nil}, {"crm", "3", nil}} {
		got, err := asker.PublishedPacks(t.Context(), c.prefix, c.version)
		if err != nil || len(got) != len(c.want) || len(got) > 0 && !reflect.DeepEqual(got, c.want) {
			t.Errorf("published %q %q: got %+v, %v", c.prefix, c.version, got, err)
		}
	}
}
