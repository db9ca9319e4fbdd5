package worker

// The effect of a session with many calls on other sessions, without and with
// Fair, and the effect of Fair on other bridges. The tests compare the order of
// starts and the outcomes of calls.

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

// slow returns a target whose calls take so long, and notes their starts.
func slow(starts *ledger, who string, took time.Duration, s Target) Target {
	s.Class, s.Name = session.ClassTool, "host"
	s.Executor = executorFunc(func(_ context.Context, c executor.Call) (executor.Result, error) {
		starts.add(who + c.Session)
		<-time.After(took)
		return executor.Result{}, nil
	})
	return s
}

// askCalls asks for n calls of a session, as a session-actor does.
func askCalls(t *testing.T, q *queue, sid string, n int) {
	t.Helper()
	for i := range n {
		call := toolCall(fmt.Sprintf("r1t1c%d", i), true)
		call.Session, call.IdempotencyKey = sid, sid+"."+call.Effect
		call.RunMS = testStartBy.Milliseconds()
		q.ask(t, session.ClassTool, "host", sid, call.Effect, call)
		synctest.Wait()
	}
}

// A session has one batch of calls open, and publishes the next when all of these
// have a result. So without options another session's call waits for at most the
// batch; under Fair for one call of it, so that it is among those that start as
// soon as slots are free. Starts at the same moment have no order.
func TestCallWaitsForAtMostOneBatchOfAnotherSession(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ ahead, want int }{{0, session.CallsMax / ConcurrencyDefault}, {session.CallsMax, 1}} {
		inWorld(t, func(t *testing.T, w *world, q *queue) {
			var starts ledger
			b := startBridge(t, w, "me", q, slow(&starts, "", time.Second, Target{Concurrency: ConcurrencyDefault, Ahead: c.ahead}))
			askCalls(t, q, "noisy", session.CallsMax)
			askCalls(t, q, "quiet", 1)
			pass(time.Minute)
			got := starts.all()
			if at := slices.Index(got, "quiet"); len(got) != session.CallsMax+1 || at/ConcurrencyDefault != c.want {
				t.Errorf("%d pulled ahead: the quiet session's call is start %d of %d, want one of the %d that begin after %d s", c.ahead, at, len(got), ConcurrencyDefault, c.want)
			}
			b.stop()
		})
	}
}

// Why prefetching is not the default. A bridge that prefetches holds all the
// calls: a second bridge has free slots and receives none of them, and the last
// calls are too late to start. Without prefetching, both bridges execute them in
// time.
func TestPrefetchedCallsAreKeptFromOtherBridges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ahead, late int
		helps       bool
	}{{0, 0, true}, {8, 4, false}} {
		inWorld(t, func(t *testing.T, w *world, q *queue) {
			var starts ledger
			took := testStartBy * 2 / 5 // three of them begin before the last is late
			first := startBridge(t, w, "first", q, slow(&starts, "1 ", took, Target{Concurrency: 2, Ahead: c.ahead}))
			for n := range 10 {
				askCalls(t, q, fmt.Sprint("s", n), 1)
			}
			second := startBridge(t, w, "second", q, slow(&starts, "2 ", took, Target{Concurrency: 2, Ahead: c.ahead}))
			pass(time.Hour)
			here, late := 0, 0
			for _, start := range starts.all() {
				if strings.HasPrefix(start, "2 ") {
					here++
				}
			}
			for _, settled := range w.settlements(t) {
				if strings.HasSuffix(settled, session.CodeDeadlineExceeded) {
					late++
				}
			}
			if (here > 0) != c.helps || late != c.late {
				t.Errorf("%d pulled ahead: the second bridge started %d calls, and %d were late; want some: %t, and %d", c.ahead, here, late, c.helps, c.late)
			}
			first.stop()
			second.stop()
		})
	}
}

// Sessions with one effect each, as of a model, are served in order of arrival,
// so Fair changes nothing.
func TestFairKeepsOrderOfArrivalForOneEffectEach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		line := &slots{free: 1, byTurn: true}
		var starts, want ledger
		for n := range 20 {
			want.add(fmt.Sprint("s", n))
			go func() {
				if line.enter(t.Context(), fmt.Sprint("s", n), 0) {
					starts.add(fmt.Sprint("s", n))
					<-time.After(time.Second)
					line.leave()
				}
			}()
			synctest.Wait()
		}
		pass(time.Minute)
		if !slices.Equal(starts.all(), want.all()) {
			t.Errorf("got %q, want %q", starts.all(), want.all())
		}
	})
}
