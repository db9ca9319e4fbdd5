package streams_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/natsio"
)

// wantTrouble wants exactly one trouble, with all of the words.
func wantTrouble(t *testing.T, b *bus.Bus, words ...string) {
	t.Helper()
	all, err := b.Troubles(testbus.Context(t))
	if err != nil || len(all) != 1 {
		t.Errorf("troubles: got %q (%v), want one about %q", all, err, words)
		return
	}
	for _, word := range words {
		if !strings.Contains(all[0], word) {
			t.Errorf("trouble: got %q, want %q in it", all[0], word)
		}
	}
}

func TestTroubles(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b, ctx := testbus.Connect(t, node, ""), testbus.Context(t)
	conf := testbus.Conf(t, "")
	bustest.OK(t, b.Provision(ctx, conf, 0))
	consumer, err := b.EnsureBridge(ctx, conf, "tool", "host")
	bustest.OK(t, err)
	if all, err := b.Troubles(ctx); err != nil || len(all) > 0 {
		t.Errorf("all is well: got %q (%v)", all, err)
	}
	_, js := testbus.JS(t, node)
	_, err = js.PauseConsumer(ctx, b.Names().EffectsStream(), consumer, time.Now().Add(time.Hour))
	bustest.OK(t, err)
	wantTrouble(t, b, "tool-host of REFOLD_FX is paused for", "nats consumer resume REFOLD_FX tool-host")
	_, err = js.ResumeConsumer(ctx, b.Names().EffectsStream(), consumer)
	bustest.OK(t, err)
	bustest.OK(t, js.DeleteStream(ctx, b.Names().NoticesStream()))
	wantTrouble(t, b, "REFOLD_OUT does not exist", "start a session-actor")
	_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: "AUDIT", Subjects: []string{"refold.out.>"}})
	bustest.OK(t, err)
	wantTrouble(t, b, "stream AUDIT of somebody else", "REFOLD_OUT can't exist", "--prefix")
	err = b.Provision(ctx, conf, 0)
	if err == nil || !strings.Contains(err.Error(), "provision REFOLD_OUT: stream AUDIT of somebody else takes messages of refold.out.*") {
		t.Errorf("provision: got %v, want the name of the other stream", err)
	}
}

// One server can't have replicas, which Provision says at once.
func TestReplicasOnOneServer(t *testing.T) {
	t.Parallel()
	b := testbus.Connect(t, bustest.Server(t), "")
	err := b.Provision(testbus.Context(t), testbus.Conf(t, ""), 3)
	if err == nil || !strings.Contains(err.Error(), "3 replicas need a cluster of at least 3 servers") || !strings.Contains(err.Error(), "use --replicas 1") {
		t.Errorf("got %v, want what to do", err)
	}
}

func TestLimitsOfAnAccount(t *testing.T) {
	t.Parallel()
	node := bustest.Configured(t, `
		jetstream { store_dir: "DIR" }
		accounts { A { jetstream { max_store: 1GB, max_mem: 1MB, max_streams: 3 }, users: [{ user: a, password: p }] } }
		no_auth_user: a
	`)
	b, ctx := testbus.Connect(t, node, ""), testbus.Context(t)
	err := b.Provision(ctx, testbus.Conf(t, ""), 0)
	if err = natsio.Typed(err); !errors.Is(err, natsio.ErrAccountLimit) || !errors.Is(err, natsio.ErrStreamFull) || errors.Is(err, natsio.ErrNoRoom) {
		t.Errorf("provision: got %v, want a limit of the account", err)
	}
	all, err := b.Troubles(ctx)
	if err != nil || len(all) == 0 || !strings.Contains(all[0], "the account has 3 of at most 3 streams") {
		t.Errorf("troubles: got %q (%v), want the limit first", all, err)
	}
}

func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t, func(o *server.Options) { o.MaxConn = 1 })
	testbus.Connect(t, node, "")
	b, err := bus.Connect(testbus.Context(t), natsio.Options{URL: node.URL(), Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		b.Close()
	}
	if !errors.Is(err, natsio.ErrConnections) || !strings.Contains(err.Error(), "max_connections") {
		t.Errorf("got %v, want that the server takes no more connections", err)
	}
}
