package worker

// Slots go to sessions in turn. The tests compare the order of starts.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
)

// One slot, a thousand effects of one session, and then two of each of three
// others: these have ended after the eighth start.
func TestLargeQueueOfOneSessionDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		line := &slots{free: 1, byTurn: true}
		var starts ledger
		enter := func(sid string) {
			go func() {
				if line.enter(t.Context(), sid, 0) {
					starts.add(sid)
					<-time.After(time.Second)
					line.leave()
				}
			}()
			synctest.Wait()
		}
		for range 1000 {
			enter("noisy")
		}
		for range 2 {
			enter("a")
			enter("b")
			enter("c")
		}
		pass(time.Hour)
		got := starts.all()
		want := "noisy noisy a b c noisy a b c noisy noisy"
		if len(got) != 1006 || strings.Join(got[:11], " ") != want {
			t.Errorf("%d starts: got %q, want 1006, the first %q", len(got), got[:11], want)
		}
		if line.free != 1 || len(line.waiting) != 0 {
			t.Errorf("left: %+v", line)
		}
	})
}

// Sessions that queue again as soon as they were served do not keep another one
// from its second slot.
func TestReturningSessionsDoNotStarveOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		line := &slots{free: 1, byTurn: true}
		var starts ledger
		serve := func(sid string) bool {
			if !line.enter(t.Context(), sid, 0) {
				return false
			}
			starts.add(sid)
			<-time.After(time.Second)
			line.leave()
			return true
		}
		for range 4 {
			go serve("n")
			synctest.Wait()
		}
		for _, sid := range []string{"d", "e"} {
			go func() {
				for range 10 {
					serve(sid)
				}
			}()
			synctest.Wait()
		}
		pass(time.Hour)
		got := starts.all()
		if want := "n n d e n d n e d e"; len(got) != 24 || strings.Join(got[:10], " ") != want {
			t.Errorf("%d starts: got %q, want 24, the first %q", len(got), got, want)
		}
	})
}

// A waiting effect leaves the queue when it is withdrawn or replaced by another
// effect of its name.
func TestWithdrawnEffectLeavesTheQueue(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, q *queue) {
		var starts ledger
		s := Target{Class: session.ClassTool, Name: "host", Concurrency: 1, Ahead: 4, Executor: executorFunc(func(ctx context.Context, c executor.Call) (executor.Result, error) {
			starts.add(c.Effect)
			<-ctx.Done()
			return executor.Result{}, nil
		})}
		b := startBridge(t, w, "me", q, s)
		defer b.stop()
		for n := range 2 {
			call := toolCall(fmt.Sprintf("r1t1c%d", n), true)
			q.ask(t, session.ClassTool, "host", call.Session, call.Effect, call)
			synctest.Wait()
		}
		b.Cancelled("s1", []byte(`{"effects":["r1t1c1"]}`))
		synctest.Wait()
		if acked, _ := q.counts(); acked != 1 || len(starts.all()) != 1 {
			t.Errorf("acked %d, started %q; want the withdrawn effect acked at once, and not started", acked, starts.all())
		}
	})
}

// The same through a worker that prefetches effects.
func TestWorkerServesSessionsInTurn(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, q *queue) {
		var starts ledger
		s := Target{Class: session.ClassTool, Name: "host", Concurrency: 1, Ahead: 40, Executor: executorFunc(func(_ context.Context, c executor.Call) (executor.Result, error) {
			starts.add(c.Session)
			<-time.After(time.Second)
			return executor.Result{}, nil
		})}
		b := startBridge(t, w, "me", q, s)
		ask := func(sid string, n int) {
			call := toolCall(fmt.Sprintf("r1t1c%d", n), true)
			call.Session, call.IdempotencyKey = sid, sid+"."+call.Effect
			q.ask(t, session.ClassTool, "host", sid, call.Effect, call)
			synctest.Wait()
		}
		for n := range 30 {
			ask("s1", n)
		}
		ask("s2", 0)
		ask("s3", 0)
		pass(10*time.Second + time.Millisecond)
		if got, want := starts.all()[:6], []string{"s1", "s1", "s2", "s3", "s1", "s1"}; !slices.Equal(got, want) {
			t.Errorf("starts: got %q, want %q", got, want)
		}
		before := len(starts.all())
		b.stop() // what waits is given back, what runs ends
		if acked, returned := q.counts(); acked != before || acked+returned != 32 {
			t.Errorf("acked %d, given back %d; want %d acked of 32", acked, returned, before)
		}
	})
}

// A waiter whose context ends leaves the queue; a slot granted meanwhile goes to
// the next.
func TestCancelledWaiterLeavesTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		line := &slots{free: 1, byTurn: true}
		if !line.enter(t.Context(), "a", 0) {
			t.Fatal("a free slot is not given")
		}
		ctx, cancel := context.WithCancel(t.Context())
		var ended ledger
		for _, sid := range []string{"a", "b", "a"} {
			go func() { ended.add(fmt.Sprint(sid, line.enter(ctx, sid, 0))) }()
			synctest.Wait()
		}
		cancel()
		synctest.Wait()
		got := ended.all()
		slices.Sort(got)
		if want := []string{"afalse", "afalse", "bfalse"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		line.leave()
		if line.free != 1 || len(line.waiting) != 0 {
			t.Errorf("left: %+v", line)
		}
	})
}
