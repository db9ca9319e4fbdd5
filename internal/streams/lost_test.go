package streams_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/streams"
)

// TestLostLogIsNoNewLog: the log is deleted. The process that knew it stops, and so
// does each that starts later. None creates an empty log in its place.
func TestLostLogIsNoNewLog(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b, ctx, conf := testbus.Provisioned(t, node), testbus.Context(t), testbus.Conf(t, "")
	id := b.LogID()
	_, js := testbus.JS(t, node)
	bustest.OK(t, js.DeleteStream(ctx, "REFOLD_LOG"))
	want := func(what string, err error, now string) {
		t.Helper()
		var lost *streams.LogLostError
		if !errors.As(err, &lost) || lost.ID != id || (lost.Now != "") != (now != "") || !strings.Contains(err.Error(), "backup") {
			t.Errorf("%s: got %v, want that %s is gone, and what to do", what, err, id)
		}
	}
	var seen []streams.Finding
	want("while it runs", b.WatchStreams(ctx, conf, func(found []streams.Finding) { seen = found }), "")
	if len(seen) != 1 || seen[0].Stream != "REFOLD_LOG" || !seen[0].Missing {
		t.Errorf("found %v, want the log", seen)
	}
	want("at a start", testbus.Connect(t, node, "").Provision(ctx, conf, 0), "")
	if _, err := js.Stream(ctx, "REFOLD_LOG"); err == nil {
		t.Error("a start created an empty log")
	}
	for _, stream := range b.Names().Streams()[1:] {
		bustest.OK(t, js.DeleteStream(ctx, stream))
	}
	fresh := testbus.Provisioned(t, node) // all is deleted: somebody wants a new log
	want("beside another log", b.WatchStreams(ctx, conf, func([]streams.Finding) {}), fresh.LogID())
}

// TestEffectsOfAnotherLog: somebody creates an empty log in place of a lost one.
func TestEffectsOfAnotherLog(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b, ctx := testbus.Provisioned(t, node), testbus.Context(t)
	_, js := testbus.JS(t, node)
	log, err := js.Stream(ctx, "REFOLD_LOG")
	bustest.OK(t, err)
	cfg := log.CachedInfo().Config
	bustest.OK(t, js.DeleteStream(ctx, "REFOLD_LOG"))
	cfg.Metadata["refold_log"] = "01J00000000000000000000000"
	_, err = js.CreateStream(ctx, cfg)
	bustest.OK(t, err)
	err = testbus.Connect(t, node, "").Provision(ctx, testbus.Conf(t, ""), 0)
	var lost *streams.LogLostError
	if !errors.As(err, &lost) || lost.ID != b.LogID() || lost.Now != cfg.Metadata["refold_log"] {
		t.Errorf("got %v, want that %s is gone", err, b.LogID())
	}
}
