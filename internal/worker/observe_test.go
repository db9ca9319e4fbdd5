package worker

// The observer of a bridge receives every start, and its end once, whatever the
// outcome; the cases of TestStart have one too.

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
)

// heard is an observer that keeps what it receives.
type heard struct {
	mu     sync.Mutex
	starts []executor.Start
	ends   []executor.End
	open   map[string]bool // starts without an end, by id
	wrong  []string
}

const handedOn = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func (h *heard) Started(s executor.Start) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open == nil {
		h.open = map[string]bool{}
	}
	if h.open[s.ID] {
		h.wrong = append(h.wrong, "started twice: "+s.ID)
	}
	h.open[s.ID] = true
	h.starts = append(h.starts, s)
	return handedOn
}

func (h *heard) Ended(s executor.Start, e executor.End) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.open[s.ID] {
		h.wrong = append(h.wrong, "ended without a start, or twice: "+s.ID)
	}
	delete(h.open, s.ID)
	h.ends = append(h.ends, e)
}

// check compares the reports with the settlements of an effect: one start and one
// end with the same status and code, or no status if nothing was settled.
func (h *heard) check(t *testing.T, effect string, settlements []string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.wrong) > 0 || len(h.open) > 0 || len(h.starts) != 1 || len(h.ends) != 1 {
		t.Fatalf("heard %d starts, %d ends, %d without an end, %q; want one of each", len(h.starts), len(h.ends), len(h.open), h.wrong)
	}
	s, e := h.starts[0], h.ends[0]
	if s.Effect != effect || s.ID == "" || s.At.IsZero() || e.At.Before(s.At) {
		t.Errorf("heard a start %+v that ended %+v", s, e)
	}
	got := strings.TrimSpace(effect + " " + e.Status + " " + e.Code)
	want := effect
	if len(settlements) > 0 {
		want = settlements[0]
	}
	if got != want {
		t.Errorf("heard that it ended %q, want %q", got, want)
	}
}

func TestObserverReceivesEachTryOfAModel(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, q *queue) {
		input := w.say(t, session.DoorIn, "s1", session.TypeRunRequested, map[string]any{"input": map[string]any{"text": "hi"}})
		tries := 0
		b := startBridge(t, w, "me", q, Target{Class: session.ClassLLM, Name: "p", Model: modelFunc(func(_ context.Context, _ executor.Request, delta func(string)) (executor.Answer, error) {
			if tries++; tries == 1 {
				return executor.Answer{}, &executor.Error{Code: "overloaded", Retryable: true}
			}
			<-time.After(time.Second)
			delta("hel")
			delta("lo")
			return executor.Answer{Text: "hello", Model: "m1-0824", FinishReason: "stop", Usage: executor.Usage{InputTokens: 3, OutputTokens: 1}}, nil
		})})
		var told heard
		b.observer = &told
		q.ask(t, session.ClassLLM, "p", "s1", "r1t1", generation("r1t1", session.Item{Role: session.RoleUser, Seq: input}))
		pass(testRun)
		b.stop()
		if len(told.wrong) > 0 || len(told.open) > 0 || len(told.starts) != 2 || len(told.ends) != 2 {
			t.Fatalf("heard %d starts and %d ends, %q; want two of each", len(told.starts), len(told.ends), told.wrong)
		}
		if e := told.ends[0]; e.Code != "overloaded" || !e.FirstText.IsZero() {
			t.Errorf("the first try ended %+v; want overloaded, and no text", e)
		}
		s, e := told.starts[1], told.ends[1]
		if e.Status != "succeeded" || e.Model != "m1-0824" || e.Finish != "stop" || e.Usage.InputTokens != 3 || e.Text != "hello" {
			t.Errorf("the second try ended %+v", e)
		}
		if got := e.FirstText.Sub(s.At); got != time.Second {
			t.Errorf("its first words came after %v, want 1s", got)
		}
		if len(s.Messages) != 1 || s.Messages[0].Text != "hi" || s.Model == "" {
			t.Errorf("it was asked with %+v", s)
		}
	})
}

func TestCallCarriesTheTraceparent(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, q *queue) {
		var got string
		b := startBridge(t, w, "me", q, Target{Class: session.ClassTool, Name: "host", Executor: executorFunc(func(_ context.Context, c executor.Call) (executor.Result, error) {
			got = c.Traceparent
			return executor.Result{}, errors.New("no disk")
		})})
		b.observer = &heard{}
		q.ask(t, session.ClassTool, "host", "s1", "r1t1c0", toolCall("r1t1c0", false))
		pass(time.Second)
		b.stop()
		if got != handedOn {
			t.Errorf("the tool was given %q, want %q", got, handedOn)
		}
	})
}
