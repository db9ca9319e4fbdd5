package worker

// What a worker reads for the turns of models: its own settlements are cached as
// the log has them, and a turn whose transcript can't be read is left to other
// bridges.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/prompt"
	"github.com/refold/refold/planner"
)

// A generation whose request can't be built is settled as failed, only by the
// bridge that holds its claim; one that can't be read now is given back.
func TestOnlyTheClaimHolderSettlesAnUnreadableGeneration(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, q *queue) {
		away := 3
		w.eventsLost = func() error {
			if away--; away < 0 {
				return nil
			}
			return errors.New("away")
		}
		b := startBridge(t, w, "me", q, Target{Class: session.ClassLLM, Name: "p", Model: modelFunc(func(context.Context, executor.Request, func(string)) (executor.Answer, error) {
			t.Error("asked")
			return executor.Answer{}, nil
		})})
		g := generation("r1t1", session.Item{Role: session.RoleUser, Seq: 99})
		q.ask(t, session.ClassLLM, "p", "s1", "r1t1", g)
		pass(time.Minute)
		b.stop()
		w.wantSettled(t, "r1t1 failed transcript_unreadable")
		if len(w.claims) != 1 {
			t.Errorf("claims: got %v, want ours", w.claims)
		}
		if _, returned := q.counts(); returned != 3 {
			t.Errorf("given back %d times, want 3: the log was away as often", returned)
		}
	})
}

// A bridge does not read its own settlements for the next turn.
func TestOwnSettlementIsNotReadAgain(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, q *queue) {
		b := startBridge(t, w, "me", q, Target{Class: session.ClassLLM, Name: "p", Model: modelFunc(func(_ context.Context, r executor.Request, _ func(string)) (executor.Answer, error) {
			return executor.Answer{Text: fmt.Sprintf("seen %d", len(r.Messages))}, nil
		})})
		defer b.stop()
		var items []session.Item
		for run := range 3 {
			w.requests = nil
			seq := w.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: session.Content{Text: "and?"}})
			items = append(items, session.Item{Role: session.RoleUser, Seq: seq})
			effect := fmt.Sprintf("r%dt1", run+1)
			q.ask(t, session.ClassLLM, "p", "s1", effect, generation(effect, items...))
			pass(time.Second / 10) // the connection is not lost meanwhile, as far as the bridge knows
			last, err := w.LastModelEvent(t.Context(), "s1")
			if err != nil || !strings.Contains(string(last.Payload), fmt.Sprintf("seen %d", len(items))) {
				t.Fatalf("run %d: %q, %v", run, last.Payload, err)
			}
			items = append(items, session.Item{Role: session.RoleAssistant, Seq: last.Seq})
			if want := []int{1}; run > 0 && !slices.Equal(w.requests, want) {
				t.Errorf("run %d: requests for %v events, want %v: what the user said", run, w.requests, want)
			}
		}
	})
}

// A cached settlement is the same to the next turn as the log's.
func TestCachedSettlementEqualsTheLogs(t *testing.T) {
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
			b := New(w, "one", "one", time.Now, slog.New(slog.DiscardHandler))
			asked := w.say(t, session.DoorLLM, "s1", session.TypeToolCallsObserved, session.ToolCallsObserved{Effect: "r1t1", Calls: []session.ObservedCall{{ToolName: "stat"}}})
			e, item := effect{generation: &session.Generation{}}, session.Item{Role: session.RoleAssistant, Seq: asked + 1}
			e.name.Session, e.name.Effect, e.name.Class = "s1", "r1t2a2", session.ClassLLM
			if c.outcome.answer == nil && c.name != "a failed turn" {
				call := toolCall("r1t1c0a2", false)
				e.call, e.generation = &call, nil
				e.name.Effect, e.name.Class = "r1t1c0a2", session.ClassTool
				item.Role = session.RoleTool
			}
			c.outcome.at = time.Now()
			if err := b.settle(t.Context(), &execution{effect: &e}, c.outcome); err != nil {
				t.Fatal(err)
			}
			g := generation("r2t1", session.Item{Role: session.RoleAssistant, Seq: asked}, item)
			got, fault, err := b.reader.Request(t.Context(), &g)
			if fault != nil || err != nil {
				t.Fatal(fault, err)
			}
			if read := w.requests[0] == 2; read != c.read {
				t.Errorf("it is read: %v, want %v", read, c.read)
			}
			want, _, err := prompt.New(w).Request(t.Context(), &g)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Messages, got.Messages); diff != "" {
				t.Errorf("(-read +kept):\n%s", diff)
			}
		})
	}
}

// A thousand items are read from a server.
func BenchmarkColdTranscript(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { coldTranscript(b, n) })
	}
}

func coldTranscript(b *testing.B, n int) {
	nc, items := storedSession(b, n)
	g := generation("r900t1", items...)
	b.ReportAllocs()
	for b.Loop() {
		request, fault, err := prompt.New(NewNATS(nc)).Request(b.Context(), &g)
		if err != nil || fault != nil || len(request.Messages) != n {
			b.Fatal(request, fault, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "ms/transcript")
}

// storedSession stores a session of n items on a server, with as many events of
// others between.
func storedSession(b *testing.B, n int) (*bus.Bus, []session.Item) {
	b.Helper()
	nc := newNatsWire(b, bustest.Server(b)).Bus
	var items []session.Item
	said := strings.Repeat("word ", 100)
	for i := range n {
		typ, door, role, body := session.TypeRunRequested, session.DoorIn, session.RoleUser, any(session.RunRequested{Input: session.Content{Text: said}})
		if i%2 == 1 {
			typ, door, role = session.TypeGenerationSettled, session.DoorLLM, session.RoleAssistant
			body = session.GenerationSettled{Effect: fmt.Sprintf("r%dt1", i), Status: "ok", Text: &session.Content{Text: said}}
		}
		payload, err := session.Envelope{Type: typ, V: session.Version}.With(body)
		if err != nil {
			b.Fatal(err)
		}
		seq, err := nc.Publish(b.Context(), door, "s1", payload, "")
		if err == nil && i%3 == 0 {
			_, err = nc.Publish(b.Context(), door, fmt.Sprintf("other-%d", i%7), payload, "")
		}
		if err != nil {
			b.Fatal(err)
		}
		items = append(items, session.Item{Role: role, Seq: seq})
	}
	return nc, items
}
