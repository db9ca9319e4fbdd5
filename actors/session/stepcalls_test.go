package session_test

// What is kept of calls for the next step: as much as its rules or its hook may
// ask for, and no longer than that.

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
)

// calling reports that a turn made n calls of look with these arguments.
func (w *told) calling(effect string, n int, arguments string) {
	w.t.Helper()
	calls := make([]any, n)
	for i := range calls {
		calls[i] = map[string]any{"tool_name": "look", "arguments": arguments}
	}
	w.must(w.tell(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{"effect": effect, "calls": calls}))
}

// argumentsOf returns an object of n bytes.
func argumentsOf(n int) string {
	return `{"text":"` + strings.Repeat("x", n-len(`{"text":""}`)) + `"}`
}

func TestHookIsShownLatestArguments(t *testing.T) {
	t.Parallel()
	w := hooked(t, nil, nil)
	for turn := 1; turn <= 2; turn++ {
		effect := fmt.Sprintf("r1t%d", turn)
		w.prepared(effect+"s", map[string]any{})
		w.calling(effect, session.CallsMax, argumentsOf(session.StepArgumentBytesMax))
		for i := range session.CallsMax {
			w.settled(fmt.Sprintf("%sc%d", effect, i))
		}
	}
	for i, c := range w.step("r1t3s").Calls {
		if want := i < session.CallsMax; c.ArgumentsCut != want || (c.Arguments == "") != want {
			t.Errorf("call %d: %d bytes of arguments are shown, cut: %v", i, len(c.Arguments), c.ArgumentsCut)
		}
	}
}

func TestArgumentsAreKeptOnlyForRulesThatAsk(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		when string
		kept bool
	}{
		"asks for calls": {`calls.exists(c, has(c.args.text))`, true}, "asks for names": {`"look" in last`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := toldUnder(t, stepInstall(t, nil, nil))
			w.must(w.tell(session.DoorCtl, session.TypeRunRequested, map[string]any{
				"input":  map[string]any{"text": "hi"},
				"config": map[string]any{"provider": "openai", "model": "m", "turns_max": 1, "steps": []any{map[string]any{"when": c.when, "tool_choice": "none"}}},
			}))
			before := w.state.Weight()
			w.calling("r1t1", 2, argumentsOf(4<<10))
			w.settled("r1t1c0")
			calls := w.state.Turn.Batch.Calls
			if kept := calls[0].Arguments != ""; kept != c.kept {
				t.Errorf("a call with a result keeps %d bytes of arguments", len(calls[0].Arguments))
			}
			if got := w.state.Weight() - before; got < len(calls[0].Arguments)+len(calls[1].Arguments) {
				t.Errorf("the batch weighs %d bytes", got)
			}
			// Its run has no other turn: nothing is kept for a step that does not come.
			w.settled("r1t1c1")
			if text, err := json.Marshal(w.state.Turn.Batch.Calls); err != nil || w.state.Run != nil || strings.Contains(string(text), "xxx") {
				t.Errorf("the run ended and keeps %d bytes of its last calls", len(text))
			}
		})
	}
}
