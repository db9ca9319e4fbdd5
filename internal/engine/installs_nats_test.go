package engine_test

// What install records with a fault cost a view.

import (
	"context"
	"fmt"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/engine"
)

// faultyRecords publishes install records that can't be pinned.
func (w *world) faultyRecords(n int) {
	w.t.Helper()
	for i := range n {
		if _, _, err := w.bus.PublishInstall(w.ctx, fmt.Appendf(nil, `{"v":1,"rules":1,"fault":%d}`, i), false); err != nil {
			w.t.Fatal(err)
		}
	}
}

// With 200 faulty records before a session, its first view reads them. Later views,
// and the first view of the next session, make no more requests to the log's leader
// than without them.
func TestFaultyRecordsCostAViewNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	host := w.host(engine.Options{SnapshotEach: 1 << 40}) // a view folds from the session's first event
	requested := testbus.LeaderReads(w.ctx, t, w.node, func(ctx context.Context, seq uint64) error {
		_, err := host.bus.EventAt(ctx, seq)
		return err
	})
	// What else happens meanwhile only adds requests, so the least number counts.
	requests := func(sid string) (least int) {
		w.view(sid) // what is new is read
		seen := 0   // how often the least number was
		bustest.Until(t, "three views that nothing else disturbs", func() bool {
			before := requested()
			w.view(sid)
			after := requested()
			switch n := after - before; {
			case seen == 0 || n < least:
				least, seen = n, 1
			case n == least:
				seen++
			}
			return seen == 3
		})
		return least
	}
	w.run("s1", "hi")
	w.asked(session.ClassLLM, "openai", "s1", "r1t1")
	want := requests("s1")
	w.faultyRecords(200)
	w.run("s2", "hi")
	w.asked(session.ClassLLM, "openai", "s2", "r1t1")
	if got := requests("s2"); got != want {
		t.Errorf("a view behind 200 faulty records asks the leader %d times, without them %d", got, want)
	}
}

// BenchmarkViewBehindFaultyRecords measures a view of a session with 170 faulty
// install records before it.
func BenchmarkViewBehindFaultyRecords(b *testing.B) {
	for _, faulty := range []int{0, 170} {
		b.Run(fmt.Sprint(faulty), func(b *testing.B) {
			w := newWorld(b)
			w.host(engine.Options{SnapshotEach: 1 << 40})
			w.faultyRecords(faulty)
			w.run("s1", "hi")
			w.asked(session.ClassLLM, "openai", "s1", "r1t1")
			w.view("s1")
			for b.Loop() {
				w.view("s1")
			}
		})
	}
}
