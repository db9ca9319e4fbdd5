package engine_test

import (
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/engine"
)

// A host is killed while sessions wait. Their schedules fire while no host runs.
// The next host settles the due wakes, though no event arrives on the sessions'
// lanes.
func TestNextHostSettlesDueWakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, js := testbus.JS(t, w.node)
	waits := func(sid string, open time.Duration) {
		w.publish(session.DoorCtl, sid, session.TypeRunRequested, map[string]any{
			"input": map[string]any{"text": "hi"}, "config": map[string]any{
				"provider": "openai", "model": "m", "deadlines_ms": map[string]any{"turn": open.Milliseconds()},
			},
		})
	}
	first := w.begin(engine.Options{SessionsMax: 1})
	waits("long", 40*time.Minute)
	waits("s1", time.Second)
	waits("s9", time.Hour/3)
	bustest.Until(t, "three wakes are scheduled", func() bool { return w.state(js, "REFOLD_TIMERS").LastSeq >= 3 })
	first.bus.Close() // its lanes are not handed over
	w.host(engine.Options{})
	if got, want := w.notices("s1", 3), "SessionOpened RunStarted RunFinished"; got != want {
		t.Errorf("s1: got %q, want %q", got, want)
	}
	if state := w.folded("long"); state.Run == nil || len(state.Wakes) != 1 {
		t.Errorf("long: the run or its wake is over: %+v", state.Wakes)
	}
	bustest.Until(t, "the two that lie ahead are left", func() bool { return w.state(js, "REFOLD_TIMERS").Msgs == 2 })
}
