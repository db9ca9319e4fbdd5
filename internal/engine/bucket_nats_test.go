package engine_test

// REFOLD_SNAPSHOTS is a cache, but for the quarantines: without what was in it,
// or without the bucket itself, nothing is lost.

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/engine"
)

// While a host runs, the bucket of snapshots is emptied and then deleted. Sessions
// in memory go on; for others the host creates the bucket again and loads them from
// the log.
func TestBucketOfSnapshotsIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, js := testbus.JS(t, w.node)
	opts := engine.Options{SnapshotEach: 2}
	first := w.provisioned(opts)
	w.turn(1, "s1", "s2")
	kv, err := js.Stream(w.ctx, w.bus.Names().SnapshotsStream())
	if err != nil {
		t.Fatal(err)
	}
	made := kv.CachedInfo().Config
	if err := kv.Purge(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.turn(2, "s1", "s2")
	if err := js.DeleteStream(w.ctx, w.bus.Names().SnapshotsStream()); err != nil {
		t.Fatal(err)
	}
	w.turn(3, "s1", "s2")
	w.turn(1, "s4")
	bustest.Until(t, "the bucket that a snapshot is put into", func() bool {
		kv, err = js.Stream(w.ctx, w.bus.Names().SnapshotsStream())
		return err == nil
	})
	if diff := cmp.Diff(made, kv.CachedInfo().Config); diff != "" {
		t.Errorf("the bucket is made again otherwise than it was (-was +is):\n%s", diff)
	}
	first.stop(w)
	opts.SnapshotEach = 1 << 40 // it puts no snapshot, but loads
	w.provisioned(opts)
	if err := js.DeleteStream(w.ctx, w.bus.Names().SnapshotsStream()); err != nil {
		t.Fatal(err)
	}
	w.turn(4, "s1", "s2")
	w.turn(1, "s3")
	for _, sid := range []string{"s1", "s2", "s3", "s4"} {
		if got, want := w.view(sid).Hash, w.folded(sid).Hash().String(); got != want {
			t.Errorf("view of %s: got %s, want %s", sid, got, want)
		}
	}
	w.run("s1", "more")
	w.asked(session.ClassLLM, "openai", "s1", "r5t1")
	w.done(w.lanes(js, "s1", "s2", "s3", "s4"))
}
