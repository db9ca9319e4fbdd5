package streams_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/streams"
)

// wantFound wants exactly one finding, with all of the words.
func wantFound(t *testing.T, b *bus.Bus, words ...string) {
	t.Helper()
	all, err := b.Check(testbus.Context(t), testbus.Conf(t, ""))
	if err != nil || len(all) != 1 {
		t.Errorf("found %q (%v), want one about %q", all, err, words)
		return
	}
	for _, word := range words {
		if !strings.Contains(all[0].String(), word) {
			t.Errorf("found %q, want %q in it", all[0], word)
		}
	}
}

// TestWhatKeepsMessagesIsFound: a consumer is paused; a stream is missing; somebody
// else's has its subjects.
func TestWhatKeepsMessagesIsFound(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b, ctx := testbus.Connect(t, node, ""), testbus.Context(t)
	conf := testbus.Conf(t, "")
	bustest.OK(t, b.Provision(ctx, conf, 0))
	consumer, err := b.EnsureBridge(ctx, conf, "tool", "host")
	bustest.OK(t, err)
	if all, err := b.Check(ctx, conf); err != nil || len(all) > 0 {
		t.Errorf("all is well: found %q (%v)", all, err)
	}
	_, js := testbus.JS(t, node)
	_, err = js.PauseConsumer(ctx, b.Names().EffectsStream(), consumer, time.Now().Add(time.Hour))
	bustest.OK(t, err)
	wantFound(t, b, "tool-host of REFOLD_FX is paused until", "nats consumer resume REFOLD_FX tool-host")
	_, err = js.ResumeConsumer(ctx, b.Names().EffectsStream(), consumer)
	bustest.OK(t, err)
	bustest.OK(t, js.DeleteStream(ctx, b.Names().NoticesStream()))
	wantFound(t, b, "REFOLD_OUT is missing", "session-actor that runs creates it again")
	_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: "AUDIT", Subjects: []string{"refold.out.>"}})
	bustest.OK(t, err)
	all, err := b.Check(ctx, conf)
	if text := fmt.Sprint(all); err != nil || len(all) != 2 || !all[0].Missing ||
		!strings.Contains(text, "stream AUDIT of somebody else takes messages of refold.out.*, so that REFOLD_OUT can't exist") || !strings.Contains(text, "--prefix") {
		t.Errorf("overlap: found %s (%v), want the missing stream and the other one", text, err)
	}
	err = b.Provision(ctx, conf, 0)
	if err == nil || !strings.Contains(err.Error(), "provision REFOLD_OUT: stream AUDIT of somebody else takes messages of refold.out.*") {
		t.Errorf("provision: got %v, want the name of the other stream", err)
	}
}

// TestMissingEffectsAreNotMadeAgain: only a start creates them, and the finding says what
// to look at before.
func TestMissingEffectsAreNotMadeAgain(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b, ctx, conf := testbus.Provisioned(t, node), testbus.Context(t), testbus.Conf(t, "")
	_, js := testbus.JS(t, node)
	bustest.OK(t, js.DeleteStream(ctx, "REFOLD_FX"))
	wantFound(t, b, "REFOLD_FX is missing", "claims are lost", "start a session-actor again, which creates it")
	if made, err := b.Remake(ctx, conf, "REFOLD_FX"); made || err != nil {
		t.Errorf("remake: got %t, %v; want that it stays missing", made, err)
	}
	bustest.OK(t, testbus.Connect(t, node, "").Provision(ctx, conf, 0))
	if found, err := b.Check(ctx, conf); err != nil || len(found) > 0 {
		t.Errorf("after a start: found %q (%v), want nothing", found, err)
	}
}

// TestWatchTellsOnceOfAStream: one event of the log tells of a missing stream, and one
// that it is back.
func TestWatchTellsOnceOfAStream(t *testing.T) {
	t.Parallel()
	node, logged := bustest.Server(t), new(testbus.Log)
	conf := testbus.Conf(t, "")
	b := testbus.ConnectWith(t, natsio.Options{URL: node.URL(), Logger: slog.New(slog.NewTextHandler(logged, nil))})
	ctx, end := context.WithCancel(testbus.Context(t))
	defer end()
	bustest.OK(t, b.Provision(ctx, conf, 0))
	_, js := testbus.JS(t, node)
	bustest.OK(t, js.DeleteStream(ctx, "REFOLD_OUT"))
	looks := 0
	err := b.WatchStreams(ctx, conf, func(found []streams.Finding) {
		looks++
		switch looks {
		case 2:
			if _, err := b.Remake(ctx, conf, "REFOLD_OUT"); err != nil {
				t.Error(err)
			}
		case 3:
			end()
		}
	})
	bustest.OK(t, err)
	began, over := logged.Lines("stream_endangered"), logged.Lines("stream_right_again")
	if len(began) != 1 || !strings.Contains(began[0], "REFOLD_OUT is missing") || len(over) != 1 {
		t.Errorf("logged %q and %q, want the missing stream once, and once that it is back", began, over)
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
	all, err := b.Check(ctx, testbus.Conf(t, ""))
	if text := fmt.Sprint(all); err != nil || !strings.Contains(text, "the account has all of its 3 streams: raise this limit") {
		t.Errorf("found %s (%v), want the limit", text, err)
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

// TestStreamsThatCannotBeCheckedAreTold: the server is back without JetStream, and then
// with it.
func TestStreamsThatCannotBeCheckedAreTold(t *testing.T) {
	t.Parallel()
	node, logged := bustest.Server(t), new(testbus.Log)
	b := testbus.ConnectWith(t, natsio.Options{URL: node.URL(), Logger: slog.New(slog.NewTextHandler(logged, nil))})
	ctx, end := context.WithCancel(testbus.Context(t))
	defer end()
	conf := testbus.Conf(t, "")
	bustest.OK(t, b.Provision(ctx, conf, 0))
	var latest atomic.Pointer[[]streams.Finding]
	done := make(chan error, 1)
	go func() {
		done <- b.WatchStreams(ctx, conf, func(found []streams.Finding) { latest.Store(&found) })
	}()
	node.Stop()
	node.Start(func(o *server.Options) { o.JetStream = false })
	bustest.Until(t, "it is told", func() bool {
		found := latest.Load()
		return found != nil && len(*found) == 1 && strings.Contains((*found)[0].String(), "the streams can't be checked: ")
	})
	node.Stop()
	node.Start(func(o *server.Options) { o.JetStream = true })
	bustest.Until(t, "it is over", func() bool { return len(*latest.Load()) == 0 })
	end()
	bustest.OK(t, <-done)
	if began, over := logged.Lines("stream_endangered"), logged.Lines("stream_right_again"); len(began) == 0 || len(began) != len(over) {
		t.Errorf("logged %q and %q, want the trouble and its end", began, over)
	}
}
