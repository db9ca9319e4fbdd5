package worker

// A settlement that is kept says to the next turn what the log would.

import (
	"encoding/json"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/planner"
)

func TestKeptIsWhatIsRead(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", inlineBytesMax+1)
	calls := []executor.AnswerCall{{ID: "p1", Name: "stat", Arguments: `{"path":"a"}`}, {Name: "stat", Arguments: "\xff"}}
	for _, c := range []struct {
		name    string
		outcome outcome
		read    bool // it is left to be read
	}{
		{name: "a result", outcome: outcome{status: session.CallSucceeded, output: "done"}},
		{name: "no output", outcome: outcome{status: session.CallSucceeded}},
		{name: "bytes", outcome: outcome{status: session.CallSucceeded, output: "a\xffb"}},
		{name: "a failure", outcome: outcome{status: session.CallFailed, output: "half", fault: &executor.Error{Code: "full", Detail: "free some", Retryable: true}}},
		{name: "unknown", outcome: outcomeUnknown("gone", outcome{})},
		{name: "a long result", outcome: outcome{status: session.CallSucceeded, output: long}, read: true},
		{name: "words", outcome: outcome{answer: &executor.Answer{Text: "hello", FinishReason: "stop", Opaque: json.RawMessage(`[{"b":1,"a":[1.5,null]}]`)}}},
		{name: "no words", outcome: outcome{answer: &executor.Answer{}}},
		{name: "long words", outcome: outcome{answer: &executor.Answer{Text: long}}, read: true},
		{name: "calls", outcome: outcome{answer: &executor.Answer{Text: "so", Calls: calls, Opaque: json.RawMessage(`{"id":"x"}`)}}},
		{name: "calls and long words", outcome: outcome{answer: &executor.Answer{Text: long, Calls: calls}}, read: true},
		{name: "long arguments", outcome: outcome{answer: &executor.Answer{Calls: []executor.AnswerCall{{Name: "stat", Arguments: strings.Repeat("y", planner.ArgumentsBytesMax+1)}}}}},
		{name: "a failed turn", outcome: failed("auth", "the key is wrong")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			b := New(w, "one", "one", slog.New(slog.DiscardHandler))
			e := effect{generation: &session.Generation{}}
			e.name.Session, e.name.Effect, e.name.Class = "s1", "r1t1a2", session.ClassLLM
			if c.outcome.answer == nil && c.name != "a failed turn" {
				call := toolCall("r1t1c0a2", false)
				e.call, e.generation = &call, nil
				e.name.Effect, e.name.Class = "r1t1c0a2", session.ClassTool
			}
			c.outcome.at = time.Now()
			if err := b.settle(t.Context(), &execution{effect: e}, c.outcome); err != nil {
				t.Fatal(err)
			}
			found := wordsAt(1)
			kept := len(b.reader.events.look("s1", found)) == 0
			got := found[0].entry
			if kept == c.read {
				t.Fatalf("kept: %v, want %v", kept, !c.read)
			}
			want, err := b.reader.said(t.Context(), w.events[0])
			if err != nil {
				t.Fatal(err)
			}
			if kept && !reflect.DeepEqual(got, want) {
				t.Errorf("kept %+v\nread %+v", got, want)
			}
		})
	}
}
