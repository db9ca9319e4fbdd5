package streams_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/streams"
)

// TestConvert: a log that nobody may delete from becomes one that an eraser may: sequences,
// times and the positions of lanes are the same, also after a conversion that ended when the
// stream was deleted and not restored. A second conversion does nothing.
func TestConvert(t *testing.T) {
	t.Parallel()
	for _, stopped := range []bool{false, true} {
		t.Run(fmt.Sprint("stopped ", stopped), func(t *testing.T) {
			t.Parallel()
			node := bustest.Server(t)
			b, ctx := testbus.Provisioned(t, node, "deny_delete: false", "deny_delete: true"), testbus.Context(t)
			_, js := testbus.JS(t, node)
			for i := range 500 {
				_, err := b.Publish(ctx, session.DoorIn, fmt.Sprint("s", i%7), make([]byte, 1000), "")
				bustest.OK(t, err)
			}
			before, err := b.EventAt(ctx, 77)
			bustest.OK(t, err)
			lanes := func() (positions string) {
				t.Helper()
				for i := range 8 {
					c, err := js.Consumer(ctx, "REFOLD_LOG", fmt.Sprint("l", i))
					bustest.OK(t, err)
					positions += fmt.Sprintln(c.CachedInfo().Config.FilterSubjects, c.CachedInfo().NumPending)
				}
				return positions
			}
			were, dir := lanes(), t.TempDir()
			convert := func() (done []streams.Converted, err error) {
				err = b.Convert(ctx, dir, func(c streams.Converted) { done = append(done, c) })
				return done, err
			}
			if stopped {
				// A file in place of the directory of the second stream's backup ends it there.
				bustest.OK(t, os.MkdirAll(filepath.Join(dir, "KV_REFOLD_SNAPSHOTS.snapshot"), 0o700))
				if done, err := convert(); err == nil || len(done) != 1 {
					t.Fatalf("got %+v, %v, want an error at the second stream", done, err)
				}
				bustest.OK(t, os.Remove(filepath.Join(dir, "KV_REFOLD_SNAPSHOTS.snapshot")))
				bustest.OK(t, js.DeleteStream(ctx, "REFOLD_LOG")) // as if it had ended before the restore
			}
			done, err := convert()
			if err != nil || len(done) != 2 || !done[0].Done || done[0].Messages != 500 {
				t.Fatalf("got %+v, %v, want both converted", done, err)
			}
			if after, err := b.EventAt(ctx, 77); err != nil || after.Time != before.Time || after.Session != before.Session {
				t.Errorf("event 77 is %+v (%v), was %+v", after, err, before)
			}
			if now := lanes(); now != were {
				t.Errorf("lanes are\n%s, were\n%s", now, were)
			}
			bustest.OK(t, b.Erase(ctx, "REFOLD_LOG", 77, false))
			bustest.OK(t, b.Provision(ctx, testbus.Conf(t, ""), 0))
			if done, err := convert(); err != nil || done[0].Done || done[1].Done {
				t.Errorf("again: got %+v, %v, want nothing to do", done, err)
			}
		})
	}
}
