package worker

// The content of settlements, how they are stored, and that none exceeds the limit.

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/prompt"
	"github.com/refold/refold/subjects"
)

// settleOne has a model's answer settled, and returns the envelope.
func settleOne(t *testing.T, w *world, a executor.Answer) session.Envelope {
	t.Helper()
	q := newQueue()
	input := w.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: session.Content{Text: "hi"}})
	b := startBridge(t, w, "me", q, Target{Class: session.ClassLLM, Name: "p", Model: modelFunc(func(context.Context, executor.Request, func(string)) (executor.Answer, error) {
		return a, nil
	})})
	q.ask(t, session.ClassLLM, "p", "s1", "r1t1", generation("r1t1", session.Item{Role: session.RoleUser, Seq: input}))
	pass(time.Minute)
	b.stop()
	if acked, _ := q.counts(); acked != 1 {
		t.Fatalf("acked %d, want 1", acked)
	}
	if size := len(w.events[len(w.events)-1].Payload); size > min(session.EventBytesMax, w.payloadMax) {
		t.Errorf("the settlement has %d bytes", size)
	}
	return w.last(t)
}

func TestAnswerWithCallsSettlesAsToolCallsObserved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		env := settleOne(t, w, executor.Answer{
			Text: "I'll look", Model: "m-1", FinishReason: "tool_calls", Usage: executor.Usage{InputTokens: 3, OutputTokens: -1},
			Opaque: json.RawMessage(`{"b":[1,2.5],"a":null}`),
			Calls: []executor.AnswerCall{
				{ID: "same", Name: "stat", Arguments: `{"path":"a"}`},
				{ID: "same", Name: "st\xffat", Arguments: "{not json \xff"},
				{ID: strings.Repeat("é", 200), Name: "", Arguments: ""},
			},
		})
		got := body[session.ToolCallsObserved](t, env)
		want := []session.ObservedCall{
			{ToolName: "stat", Arguments: `{"path":"a"}`, ProviderCallID: "same"},
			{ToolName: "st\uFFFDat", Arguments: "{not json \uFFFD", ProviderCallID: "same"},
			{ProviderCallID: strings.Repeat("é", session.ByBytesMax/2)},
		}
		if !slices.Equal(got.Calls, want) {
			t.Errorf("calls: got %+v, want %+v", got.Calls, want)
		}
		cut := settleOne(t, newWorld(), executor.Answer{FinishReason: "length", Calls: []executor.AnswerCall{{Name: "stat", Arguments: `{"pa`}}})
		if finish := body[session.ToolCallsObserved](t, cut).FinishReason; got.FinishReason != "" || finish != "length" {
			t.Errorf("finish reasons: got %q and %q, want none and length", got.FinishReason, finish)
		}
		if got.Effect != "r1t1" || got.Model != "m-1" || got.Text.Text != "I'll look" || *got.Usage != (session.Usage{InputTokens: 3}) {
			t.Errorf("got %+v, text %+v, usage %+v", got, got.Text, got.Usage)
		}
		if opaque, err := codec.ToJSON(got.Opaque); err != nil || string(opaque) != `{"a":null,"b":[1,2.5]}` {
			t.Errorf("opaque: got %s (%v)", opaque, err)
		}
	})
}

func TestAnswerWithTextSettlesAsGenerationSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("x", session.TextBytesMax)
		for _, c := range []struct {
			text   string
			inline bool
		}{{"hello", true}, {"", true}, {long, true}, {long + "x", false}} {
			w := newWorld()
			got := body[session.GenerationSettled](t, settleOne(t, w, executor.Answer{Text: c.text, FinishReason: "stop"}))
			text := ""
			switch {
			case got.Text == nil:
			case c.inline:
				text = got.Text.Text
			default:
				text = string(w.blobs[*got.Text.Blob])
				if got.Text.Size != int64(len(c.text)) || got.Text.MediaType != "text/plain; charset=utf-8" || got.Text.Text != "" {
					t.Errorf("blob: got size %d, type %q", got.Text.Size, got.Text.MediaType)
				}
			}
			if text != c.text || got.Status != "ok" || got.FinishReason != "stop" || got.Error != nil || got.Usage != nil {
				t.Errorf("%d bytes: got %d, %+v", len(c.text), len(text), got)
			}
		}
	})
}

// The settlement of any answer fits an event: texts go to blobs, a provider's own
// items may be left out, and an answer that is still too large fails.
func TestLargeAnswers(t *testing.T) {
	t.Parallel()
	quarter := strings.Repeat("x", session.TextBytesMax)
	opaque := func(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("o", n) + `"`) }
	for _, c := range []struct {
		name   string
		answer executor.Answer
		max    int // the server's max_payload, if below the default
		blobs  int
		opaque bool
		code   string
	}{
		{name: "all inline", answer: executor.Answer{Text: quarter, Calls: []executor.AnswerCall{{Name: "a", Arguments: quarter}}, Opaque: opaque(1000)}, opaque: true},
		{name: "text to a blob", answer: executor.Answer{Text: quarter, Calls: []executor.AnswerCall{{Name: "a", Arguments: quarter}}, Opaque: opaque(session.TextBytesMax - 100)}, blobs: 1, opaque: true},
		{name: "items left out", answer: executor.Answer{Text: quarter, Calls: []executor.AnswerCall{{Name: "a", Arguments: quarter}, {Name: "a", Arguments: quarter}}, Opaque: opaque(session.TextBytesMax - 100)}, blobs: 1},
		{name: "huge items left out", answer: executor.Answer{Text: "a", Opaque: opaque(session.TextBytesMax)}},
		{name: "items that are no JSON left out", answer: executor.Answer{Text: "a", Opaque: json.RawMessage(`{`)}},
		{name: "arguments beyond an event", answer: executor.Answer{Text: quarter, Calls: []executor.AnswerCall{{Name: "a", Arguments: strings.Repeat("x", session.EventBytesMax)}}, Opaque: opaque(session.TextBytesMax - 100)}, blobs: 1, opaque: true},
		{name: "more calls than a session takes", answer: executor.Answer{Calls: make([]executor.AnswerCall, session.CallsSeenMax+1)}, code: codeAnswerTooLarge},
		{name: "as many calls as a session takes", answer: executor.Answer{Calls: make([]executor.AnswerCall, session.CallsSeenMax)}},
		{name: "a server that takes less", answer: executor.Answer{Text: quarter}, max: 64 << 10, blobs: 1},
		{name: "a server that takes less than the calls", answer: executor.Answer{Calls: []executor.AnswerCall{{Name: "a", Arguments: quarter}}}, max: 64 << 10, code: codeAnswerTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				if c.max > 0 {
					w.payloadMax = c.max
				}
				env := settleOne(t, w, c.answer)
				var code string
				var kept codec.Raw
				if env.Type == session.TypeToolCallsObserved {
					b := body[session.ToolCallsObserved](t, env)
					kept = b.Opaque
					if len(b.Calls) != len(c.answer.Calls) {
						t.Errorf("calls: got %d", len(b.Calls))
					}
				} else {
					b := body[session.GenerationSettled](t, env)
					kept = b.Opaque
					if b.Error != nil {
						code = b.Error.Code
					}
				}
				if code != c.code || len(w.blobs) != c.blobs || (len(kept) > 0) != c.opaque {
					t.Errorf("got code %q, %d blobs, opaque %v; want %q, %d, %v", code, len(w.blobs), len(kept) > 0, c.code, c.blobs, c.opaque)
				}
			})
		})
	}
}

// A fault is cut to the session's limits, and always has a code.
func TestFaultsAreCutAndHaveACode(t *testing.T) {
	t.Parallel()
	if got := wireFault(nil, "x"); got != nil {
		t.Errorf("nil: got %+v", got)
	}
	got := wireFault(&executor.Error{Detail: strings.Repeat("é", 500), Code: strings.Repeat("c", 100), Retryable: true}, "x")
	if len(got.Code) != session.CodeBytesMax || len(got.Detail) != session.DetailBytesMax || !got.Retryable {
		t.Errorf("long: got %d and %d bytes, retryable %v", len(got.Code), len(got.Detail), got.Retryable)
	}
	if got := wireFault(&executor.Error{Detail: "d\xff"}, "x"); got.Code != "x" || got.Detail != "d\uFFFD" {
		t.Errorf("without a code: got %+v", got)
	}
	if got := prompt.Clip("aé", 2); got != "a" {
		t.Errorf("clip in a character: got %q", got)
	}
}

// A settlement is retried until it is stored, and stored once.
func TestSettlementIsRetriedUntilStored(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, q *queue) {
		tries := 0
		w.publishLost = func([]byte) error {
			if tries++; tries < 6 {
				return natsio.ErrStreamFull
			}
			return nil
		}
		b := startBridge(t, w, "me", q, Target{Class: session.ClassTool, Name: "host", Executor: executorFunc(func(context.Context, executor.Call) (executor.Result, error) {
			return executor.Result{}, nil
		})})
		q.ask(t, session.ClassTool, "host", "s1", "r1t1c0", toolCall("r1t1c0", false))
		pass(time.Second)
		if acked, _ := q.counts(); acked != 0 {
			t.Errorf("acked before it was stored")
		}
		pass(time.Minute)
		b.stop()
		if got := w.settlements(t); len(got) != 1 || tries != 6 {
			t.Errorf("settled %q in %d tries", got, tries)
		}
		if acked, _ := q.counts(); acked != 1 {
			t.Errorf("acked %d", acked)
		}
	})
}

// Another publisher has used the settlement's id, to have the settlement dropped.
func TestSettlementWithATakenIDIsStored(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, q *queue) {
		w.publishLost = func(payload []byte) error { // as if the id had been guessed a moment before
			w.mu.Lock()
			defer w.mu.Unlock()
			w.ids[subjects.EventID("s1", settlementID(&subjects.EffectName{Session: "s1", Effect: "r1t1c0"}, payload))] = 0
			return nil
		}
		w.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{})
		b := startBridge(t, w, "me", q, Target{Class: session.ClassTool, Name: "host", Executor: executorFunc(func(context.Context, executor.Call) (executor.Result, error) {
			return executor.Result{}, nil
		})})
		q.ask(t, session.ClassTool, "host", "s1", "r1t1c0", toolCall("r1t1c0", false))
		pass(time.Minute)
		b.stop()
		if got := w.settlements(t); len(got) != 1 {
			t.Errorf("settled %q, want once", got)
		}
	})
}

// The stream drops a message with a known id: so the same event has the same id,
// and any other event has another.
func TestOnlyEqualSettlementsShareAnID(t *testing.T) {
	t.Parallel()
	call := toolCall("r1t1c0", false)
	b := New(newWorld(), "one", "one", time.Now, slog.New(slog.DiscardHandler))
	idOf := func(sid, name string, o outcome) string {
		e := effect{call: &call}
		e.name.Session, e.name.Effect, e.name.Class = sid, name, session.ClassTool
		s, err := b.encode(t.Context(), &e, o, inlineBytesMax)
		if err != nil {
			t.Fatal(err)
		}
		return subjects.EventID(sid, s.id)
	}
	at := time.Now()
	done := outcome{status: session.CallSucceeded, at: at}
	first := idOf("s1", "r1t1c0", done)
	if again := idOf("s1", "r1t1c0", done); again != first {
		t.Errorf("the same again: got %q and %q", first, again)
	}
	ids := []string{
		first,
		idOf("s1", "r1t1c0", outcome{status: session.CallSucceeded, at: at, output: "x"}),
		idOf("s1", "r1t1c0", outcome{status: session.CallSucceeded, at: at.Add(time.Second)}),
		idOf("s1", "r1t1c1", done),
		idOf("s2", "r1t1c0", done),
	}
	slices.Sort(ids)
	if n := len(slices.Compact(slices.Clone(ids))); n != len(ids) {
		t.Errorf("%d ids for %d events: %q", n, len(ids), ids)
	}
}

// Two bridges that consider a holder gone settle with the same bytes, so that the
// fold treats the second as a repeat.
func TestOutcomeUnknownIsTheSameForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		call := toolCall("r1t1c0", false)
		e := effect{call: &call}
		e.name.Session, e.name.Effect, e.name.Class = "s1", "r1t1c0", session.ClassTool
		var data []string
		for _, name := range []string{"one", "two"} {
			b := New(w, name, name, time.Now, slog.New(slog.DiscardHandler))
			o := outcomeUnknown("gone", outcome{})
			o.at = time.Now()
			pass(time.Second)
			s, err := b.encode(t.Context(), &e, o, inlineBytesMax)
			if err != nil {
				t.Fatal(err)
			}
			env, err := envelopeOf(session.Event{Payload: s.payload})
			if err != nil {
				t.Fatal(err)
			}
			data = append(data, string(env.Data))
		}
		if data[0] != data[1] {
			t.Errorf("got %q and %q", data[0], data[1])
		}
	})
}

// A failing blob store delays the settlement, and nothing else.
func TestSettlementWaitsForItsBlob(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, q *queue) {
		var back atomic.Bool
		w.blobsLost = func() error {
			if back.Load() {
				return nil
			}
			return errors.New("away")
		}
		b := startBridge(t, w, "me", q, Target{Class: session.ClassTool, Name: "host", Executor: executorFunc(func(context.Context, executor.Call) (executor.Result, error) {
			return executor.Result{Output: strings.Repeat("x", inlineBytesMax+1)}, nil
		})})
		q.ask(t, session.ClassTool, "host", "s1", "r1t1c0", toolCall("r1t1c0", false))
		pass(time.Minute)
		w.wantSettled(t)
		back.Store(true)
		pass(time.Minute)
		b.stop()
		s := body[session.ToolCallSettled](t, w.last(t))
		if s.Output == nil || len(w.blobs[*s.Output.Blob]) != inlineBytesMax+1 {
			t.Errorf("got %+v", s)
		}
	})
}
