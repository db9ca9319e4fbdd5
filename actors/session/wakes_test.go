package session_test

// Wakes are bounded, and none of them is just forgotten.

import (
	"fmt"
	"slices"
	"testing"

	"github.com/refold/refold/actors/session"
)

// Each run has an earlier deadline than all before, so each opens a wake. Beyond
// WakesMax the wake due last is withdrawn: an earlier one comes before it, and
// opens the next.
func TestWakesAreBounded(t *testing.T) {
	t.Parallel()
	w := newTold(t)
	for i := range session.WakesMax + 3 {
		w.run(map[string]any{"deadlines_ms": map[string]any{"turn": 60_000 - i*1000}})
		var want []session.Withdrawal
		if i >= session.WakesMax {
			want = []session.Withdrawal{{Name: fmt.Sprintf("w%d", i-session.WakesMax+1), Class: session.ClassWake, Target: "-"}}
		}
		if got := w.state.Withdrawals(); !slices.Equal(got, want) {
			t.Errorf("run %d withdrew %v, want %v", i+1, got, want)
		}
		w.open(fmt.Sprintf("w%d", i+1))
		w.must(w.tell(session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": fmt.Sprintf("r%dt1", i+1), "status": "ok"}))
	}
	if got := len(w.state.Wakes); got != session.WakesMax {
		t.Errorf("%d wakes are open, want %d", got, session.WakesMax)
	}

	// A withdrawn wake still fires. It changes nothing, and nobody is told.
	if notices, err := w.tell(session.DoorWake, session.TypeWakeSettled, map[string]any{"effect": "w1"}); err != nil || len(notices) > 0 {
		t.Errorf("got %d notices (%v), want none", len(notices), err)
	}

	// What is due first wakes the session for all that is due later.
	w.run(map[string]any{"deadlines_ms": map[string]any{"turn": 70_000}})
	due := w.state.Wakes[len(w.state.Wakes)-1].Due
	w.must(w.tell(session.DoorWake, session.TypeWakeSettled, map[string]any{"effect": fmt.Sprintf("w%d", session.WakesMax+3)}))
	if w.state.Clock != due || w.state.Run == nil {
		t.Errorf("the clock is %d, want %d; the run ended: %v", w.state.Clock, due, w.state.Run == nil)
	}
}
