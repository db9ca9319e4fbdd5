package host_test

// REFOLD_SNAPSHOTS is a cache, but for the quarantines: without what was in it,
// or without the bucket itself, nothing is lost.

import (
	"testing"

	refold "github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/host"
)

// TestBucketOfSnapshotsIsDeleted: while a host runs, the bucket is emptied, and
// then deleted. Sessions in memory go on; others wait until the bucket is made
// again, as every session-actor does at its start, and are loaded from the log.
func TestBucketOfSnapshotsIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t)
	_, js := w.js()
	opts := host.Options{SnapshotEach: 2}
	first := w.host(opts)
	w.turn(1, "s1", "s2")
	kv, err := js.Stream(w.ctx, w.bus.Names().SnapshotsStream())
	if err != nil {
		t.Fatal(err)
	}
	if err := kv.Purge(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.turn(2, "s1", "s2")
	if err := js.DeleteStream(w.ctx, w.bus.Names().SnapshotsStream()); err != nil {
		t.Fatal(err)
	}
	w.turn(3, "s1", "s2")
	w.run("s4", "nobody knows whether it is quarantined")
	conf, err := bus.ParseConf(refold.StreamsConf, w.bus.Names())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.bus.Provision(w.ctx, conf, 1); err != nil {
		t.Fatal(err)
	}
	w.asked(session.ClassLLM, "openai", "s4", "r1t1")
	first.stop(w)
	w.host(opts)
	w.turn(4, "s1", "s2")
	w.turn(1, "s3")
	for _, sid := range []string{"s1", "s2", "s3"} {
		if got, want := w.view(sid).Hash, w.folded(sid).Hash().String(); got != want {
			t.Errorf("view of %s: got %s, want %s", sid, got, want)
		}
	}
	w.run("s1", "more")
	w.asked(session.ClassLLM, "openai", "s1", "r5t1")
	w.done(w.lanes(js, "s1", "s2", "s3"))
}
