package worker

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
)

// Two bridges answer at once for a worker that is gone, and both receive one call
// (the server lost a lease). Both settle it with the same bytes, though one of
// them is slow: the fold then treats the second as a repeat.
func TestTwoBridgesSettleForALostWorkerAlike(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		lost := func(e executor.Executor) Target {
			return Target{Class: session.ClassTool, Name: "host-w1", Executor: e, Counts: new(TargetCounts), lost: true}
		}
		slow := executorFunc(func(ctx context.Context, c executor.Call) (executor.Result, error) {
			<-time.After(40 * time.Millisecond) // a busy machine
			return lostWorker{}.Execute(ctx, c)
		})
		one, two := newQueue(), newQueue()
		first, second := startBridge(t, w, "b1", one, lost(lostWorker{})), startBridge(t, w, "b2", two, lost(slow))
		pass(2 * time.Second) // each hears itself
		ask := func(name string, safe bool) {
			c := toolCall(name, safe)
			c.HostSession = &session.HostSession{ID: "h1", Route: "host-w1", Status: "ready"}
			one.ask(t, session.ClassTool, "host-w1", "s1", name, c)
			two.ask(t, session.ClassTool, "host-w1", "s1", name, c)
		}
		ask("r1t1c0", true)
		pass(time.Second)
		ask("r1t1c1", false)
		pass(time.Minute)
		first.stop()
		second.stop()
		want := []string{"r1t1c0 failed host_session_lost", "r1t1c0 failed host_session_lost", "r1t1c1 failed host_session_lost"}
		got := w.settlements(t)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("settled\n%q, want\n%q", got, want)
		}
		said := map[string]string{}
		for _, e := range w.events {
			env, err := envelopeOf(e)
			if err != nil {
				t.Fatal(err)
			}
			b := body[session.ToolCallSettled](t, env)
			if b.HostSession == nil || *b.HostSession != (session.HostSession{ID: "h1", Route: "host-w1", Status: "error"}) {
				t.Errorf("%s leaves the host session %+v", b.Effect, b.HostSession)
			}
			if was, again := said[b.Effect]; again && was != string(env.Data) {
				t.Errorf("%s is settled twice, and differently", b.Effect)
			}
			said[b.Effect] = string(env.Data)
		}
	})
}
