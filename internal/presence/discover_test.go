package presence_test

// Discovery of daemons, and of stored blobs without reading them.

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/presence"
)

func TestDiscoverFindsRegisteredDaemons(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b, other := testbus.Connect(t, node, ""), testbus.Connect(t, node, "")
	if all, err := b.Discover(t.Context(), "bridge"); err != nil || len(all) != 0 {
		t.Errorf("nobody is there: got %v (%v)", all, err)
	}
	// Answers that are none of a daemon's count for nothing.
	raw, _ := testbus.JS(t, node)
	for _, junk := range []string{"{}", "[", `{"name":"refold-bridge"}`} {
		if _, err := raw.Subscribe("$SRV.INFO.refold-bridge", func(m *nats.Msg) {
			if err := m.Respond([]byte(junk)); err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	bustest.OK(t, raw.Flush())
	var stops []func() error
	for _, targets := range []string{"tool/host", "tool/host llm/openai", ""} {
		stop, err := other.Register(t.Context(), presence.Service{Kind: "bridge", Version: "1.2.3", Metadata: map[string]string{"targets": targets}})
		bustest.OK(t, err)
		stops = append(stops, stop)
	}
	stop, err := other.Register(t.Context(), presence.Service{Kind: "session-actor", Version: "1.2.3"})
	bustest.OK(t, err)
	stops = append(stops, stop)
	targets := func() (all []string) {
		t.Helper()
		running, err := b.Discover(t.Context(), "bridge")
		bustest.OK(t, err)
		if !slices.IsSortedFunc(running, func(a, b presence.Running) int { return strings.Compare(a.ID, b.ID) }) {
			t.Errorf("not by ID: %v", running)
		}
		for _, one := range running {
			if one.Kind != "bridge" || one.Version != "1.2.3" {
				t.Errorf("got %+v", one)
			}
			all = append(all, one.Metadata["targets"])
		}
		slices.Sort(all)
		return all
	}
	if got, want := targets(), []string{"", "tool/host", "tool/host llm/openai"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, stop := range stops[1:] {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
	bustest.Until(t, "only the first is there", func() bool { // an end is announced, and not waited for
		return slices.Equal(targets(), []string{"tool/host"})
	})
	if err := stops[0](); err != nil {
		t.Error(err)
	}
}

// A denied request is an error, and not an empty result.
func TestDiscoverReportsADenial(t *testing.T) {
	t.Parallel()
	node := bustest.Configured(t, `
		jetstream { store_dir: DIR }
		authorization { users: [ {user: u, password: p, permissions: { publish: { deny: ["$SRV.>"] } }} ] }
	`)
	b := testbus.ConnectWith(t, natsio.Options{URL: strings.Replace(node.URL(), "://", "://u:p@", 1)})
	all, err := b.Discover(t.Context(), "bridge")
	var denied *natsio.PermissionError
	if !errors.As(err, &denied) || !strings.Contains(err.Error(), "$SRV.INFO.refold-bridge") {
		t.Errorf("got %v (%v), want a *natsio.PermissionError that names the subject", all, err)
	}
}

func TestHasBlob(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b := testbus.Provisioned(t, node)
	content := []byte("what a model is shown of a tool")
	if there, err := b.HasBlob(t.Context(), codec.RefOf(content)); err != nil || there {
		t.Errorf("before: got %v (%v)", there, err)
	}
	ref, err := b.PutBlob(t.Context(), content)
	bustest.OK(t, err)
	if there, err := b.HasBlob(t.Context(), ref); err != nil || !there {
		t.Errorf("stored: got %v (%v)", there, err)
	}
	_, js := testbus.JS(t, node)
	stream, err := js.Stream(t.Context(), b.Names().BlobsStream())
	bustest.OK(t, err)
	bustest.OK(t, stream.Purge(t.Context(), jetstream.WithPurgeSubject(b.Names().BlobSubject("*"))))
	if there, err := b.HasBlob(t.Context(), ref); err != nil || there {
		t.Errorf("deleted: got %v (%v)", there, err)
	}
	bare := testbus.Connect(t, bustest.Server(t), "")
	if _, err := bare.HasBlob(t.Context(), ref); !errors.Is(err, natsio.ErrNoStream) {
		t.Errorf("without buckets: got %v, want %v", err, natsio.ErrNoStream)
	}
}
