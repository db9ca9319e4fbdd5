package session_test

// How long a session waits before it asks a generation again, and how often.

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/refold/refold/actors/session"
)

// The wait doubles from backoff_ms up to backoff_max_ms, and the tenth attempt is
// the last.
func TestBackoff(t *testing.T) {
	t.Parallel()
	const second, minute = int64(1000), int64(60_000)
	for name, c := range map[string]struct {
		retry map[string]any
		want  []int64
	}{
		"by default": {
			map[string]any{"attempts": 10},
			[]int64{second, 2 * second, 4 * second, 8 * second, 16 * second, 32 * second, 64 * second, 128 * second, 256 * second},
		},
		"capped by default":    {map[string]any{"attempts": 4, "backoff_ms": 2 * minute}, []int64{2 * minute, 4 * minute, 5 * minute}},
		"capped":               {map[string]any{"attempts": 5, "backoff_ms": 3, "backoff_max_ms": 7}, []int64{3, 6, 7, 7}},
		"more than its cap":    {map[string]any{"attempts": 3, "backoff_ms": 9, "backoff_max_ms": 7}, []int64{7, 7}},
		"more than any cap":    {map[string]any{"attempts": 3, "backoff_ms": session.DeadlineMaxMS}, []int64{5 * minute, 5 * minute}},
		"as long as it may be": {map[string]any{"attempts": 3, "backoff_ms": session.DeadlineMaxMS, "backoff_max_ms": session.DeadlineMaxMS}, []int64{45 * minute, 45 * minute}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTold(t)
			w.run(map[string]any{"retry": c.retry})
			effect := "r1t1"
			for i, wait := range c.want {
				w.overloaded(effect)
				if got := w.state.Turn.RetryAt - w.state.Clock; got != wait {
					t.Fatalf("before attempt %d it waits %d ms, want %d", i+2, got, wait)
				}
				w = w.restored()
				w.wants("", "retry")
				w.wakeAt(w.state.Turn.RetryAt)
				if effect = fmt.Sprintf("r1t1a%d", i+2); w.asked() != effect {
					t.Fatalf("asked is %q, want %s", w.asked(), effect)
				}
			}
			w.overloaded(effect)
			if w.state.Run != nil || w.state.Last.Code != "overloaded" {
				t.Errorf("after %s the run is %+v", effect, w.state.Last)
			}
		})
	}
}

// An empty list of codes stays empty, also after a snapshot; an absent one means
// those that the bridge reports as retryable.
func TestNoRetryCodes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		retry map[string]any
		want  session.Lifecycle
	}{
		"absent": {map[string]any{"attempts": 2}, session.Running},
		"empty":  {map[string]any{"attempts": 2, "codes": []any{}}, session.Failed},
	} {
		w := newTold(t)
		w.run(map[string]any{"retry": c.retry})
		again := w.restored()
		for _, of := range []*told{w, again} {
			if of.overloaded("r1t1"); of.state.View().Lifecycle != c.want {
				t.Errorf("%s: the run is %s, want %s", name, of.state.View().Lifecycle, c.want)
			}
		}
		if !bytes.Equal(w.state.Bytes(), again.state.Bytes()) {
			t.Errorf("%s: other bytes after a snapshot", name)
		}
	}
}

// wakeAt lets time pass until at, and settles the wakes that are due then.
func (w *told) wakeAt(at int64) {
	w.t.Helper()
	w.time = max(w.time, at)
	for _, e := range w.state.Open() {
		if e.Class == session.ClassWake && e.Deadline <= at {
			w.must(w.tell(session.DoorWake, session.TypeWakeSettled, map[string]any{"effect": e.Name}))
		}
	}
}

// An attempt's name is unique, and calls and steps have no attempts.
func TestAttemptsAreNamed(t *testing.T) {
	t.Parallel()
	w := newTold(t)
	w.run(patient())
	w.overloaded("r1t1")
	w.wakeAt(w.state.Turn.RetryAt)
	for _, name := range []string{"r1t1a0", "r1t1a1", "r1t1a02", "r1t1a3", "r1t1a11", "r1t1a", "r1t1a2a2", "r1t1c0a2", "r1t1a2c0", "r1t1sa2", "r1t1a2s"} {
		w.refused(session.RejectUnknownEffect, session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": name, "status": "ok", "text": text("x")})
	}
	w.refused(session.RejectStale, session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": "r1t1", "status": "ok", "text": text("x")})
	w.answered("r1t1a2")
}
