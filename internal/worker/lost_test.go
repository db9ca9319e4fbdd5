package worker

// A bridge when the server has lost the unsynced end of its streams: stored
// effects, claims and settlements are gone, or some of them are, and sequences
// and names are used again. Time is virtual.

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
)

// lose removes the events from a sequence on, and has all bridges reconnect.
func (w *world) lose(from uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.incarnation++
	w.events = w.events[:from-1]
	for id, at := range w.ids {
		if at >= len(w.events) {
			delete(w.ids, id)
		}
	}
}

// A running effect is lost with the event that opened it, but its claim is not, and
// another effect gets its name. The first is stopped and not settled; the other one
// runs under a claim of its own.
func TestEffectReplacesALostOneOfItsName(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, q *queue) {
		var starts ledger
		b := startBridge(t, w, "me", q, Target{Class: session.ClassTool, Name: "host", Concurrency: 2, Executor: executorFunc(func(ctx context.Context, c executor.Call) (executor.Result, error) {
			starts.add(string(c.Arguments))
			if string(c.Arguments) == `{"x":1}` {
				<-ctx.Done()
			}
			return executor.Result{}, nil
		})})
		lost := toolCall("r1t1c0", false)
		q.ask(t, session.ClassTool, "host", "s1", "r1t1c0", lost)
		pass(time.Second)
		w.lose(1)
		other := lost
		other.Arguments = `{"x":2}`
		q.ask(t, session.ClassTool, "host", "s1", "r1t1c0", other)
		pass(20 * time.Second)
		b.stop()
		if got, want := starts.all(), []string{`{"x":1}`, `{"x":2}`}; !slices.Equal(got, want) {
			t.Errorf("started %q, want %q", got, want)
		}
		w.wantSettled(t, "r1t1c0 succeeded")
		for n, of := range []session.ToolCall{lost, other} {
			raw, err := codec.Marshal(of)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := w.claims[callClaim("r1t1c0", n+1)], (Claim{By: "me", Hash: codec.Sum(raw).String()}); got != want {
				t.Errorf("claim %d: got %+v, want %+v", n+1, got, want)
			}
		}
	})
}

// A claim of other bytes is skipped, whatever it states; one of the same bytes is
// valid.
func TestClaimOfOtherBytesIsSkipped(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stands  Claim
		same    bool // the claim is of the same bytes
		started int
		acked   int
	}{
		"another's, who is alive":                 {stands: byOther, started: 1, acked: 1},
		"another's, who is alive, of the same":    {stands: byOther, same: true},
		"ours, of an effect that was lost":        {stands: byMe, started: 1, acked: 1},
		"withdrawn":                               {stands: withdrawn, started: 1, acked: 1},
		"withdrawn, of the same":                  {stands: withdrawn, same: true, acked: 1},
		"another's, who is gone":                  {stands: byThird, started: 1, acked: 1},
		"another's, who is gone, and of the same": {stands: byThird, same: true, acked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world, q *queue) {
				w.beat("other", true)
				call := toolCall("r1t1c0", false)
				raw, err := codec.Marshal(call)
				if err != nil {
					t.Fatal(err)
				}
				test.stands.Hash = codec.Sum([]byte("other bytes")).String()
				if test.same {
					test.stands.Hash = codec.Sum(raw).String()
				}
				w.setClaim(callClaim("r1t1c0", 1), test.stands)
				var starts ledger
				b := startBridge(t, w, "me", q, Target{Class: session.ClassTool, Name: "host", Executor: starts.executor()})
				q.ask(t, session.ClassTool, "host", "s1", "r1t1c0", call)
				pass(20 * time.Second)
				b.stop()
				if acked, _ := q.counts(); len(starts.all()) != test.started || acked != test.acked {
					t.Errorf("started %q, acked %d; want %d, %d", starts.all(), acked, test.started, test.acked)
				}
			})
		})
	}
}

// A settled effect is delivered again over another connection. While the log has
// its settlement, it is acked. If the settlement was lost, a call that is not
// retry-safe is settled as unknown, an effect that may run twice runs again, and
// a model's turn is claimed again.
func TestSettlementThatIsLost(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		model, safe, kept bool
		started           int
		settled           []string
	}{
		"call":                     {started: 1, settled: []string{"r1t1c0 outcome_unknown outcome_unknown"}},
		"call, not lost":           {kept: true, started: 1, settled: []string{"r1t1c0 succeeded"}},
		"retry-safe call":          {safe: true, started: 2, settled: []string{"r1t1c0 succeeded"}},
		"model's turn":             {model: true, started: 2, settled: []string{"r1t1 ok"}},
		"model's turn, not lost":   {model: true, kept: true, started: 1, settled: []string{"r1t1 ok"}},
		"retry-safe call not lost": {safe: true, kept: true, started: 1, settled: []string{"r1t1c0 succeeded"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world, q *queue) {
				input := w.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: session.Content{Text: "hi"}})
				isOpenAt(true, 9)(t, w)
				var starts ledger
				s := Target{Class: session.ClassTool, Name: "host", Executor: starts.executor()}
				if test.model {
					s = Target{Class: session.ClassLLM, Name: "p", Model: starts.model()}
				}
				b := startBridge(t, w, "me", q, s)
				call, turn := toolCall("r1t1c0", test.safe), generation("r1t1", session.Item{Role: session.RoleUser, Seq: input})
				ask := func() {
					if test.model {
						q.ask(t, session.ClassLLM, "p", "s1", "r1t1", turn)
					} else {
						q.ask(t, session.ClassTool, "host", "s1", "r1t1c0", call)
					}
					pass(10 * time.Second)
				}
				ask()
				if test.kept {
					w.lose(input + 2)
				} else {
					w.lose(input + 1)
				}
				ask()
				ask() // over the same connection
				b.stop()
				if got := len(starts.all()); got != test.started {
					t.Errorf("started %d times, want %d", got, test.started)
				}
				w.wantSettled(t, test.settled...)
				if acked, _ := q.counts(); acked != 3 {
					t.Errorf("acked %d, want 3", acked)
				}
				if _, anew := w.claimOf(turnClaim("r1t1", 2)); anew != (test.model && !test.kept) {
					t.Errorf("claimed anew: %t", anew)
				}
			})
		})
	}
}

// A model is shown the log's events, not those that had these sequences before
// the log lost its end.
func TestTranscriptAfterALossIsReadAgain(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, q *queue) {
		var shown ledger
		b := startBridge(t, w, "me", q, Target{Class: session.ClassLLM, Name: "p", Model: modelFunc(func(_ context.Context, r executor.Request, _ func(string)) (executor.Answer, error) {
			shown.add(r.Messages[0].Text)
			return executor.Answer{Text: "hello"}, nil
		})})
		for n, text := range []string{"what is lost", "what is said then"} {
			w.lose(1)
			input := w.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: session.Content{Text: text}})
			name := []string{"r1t1", "r1t2"}[n]
			q.ask(t, session.ClassLLM, "p", "s1", name, generation(name, session.Item{Role: session.RoleUser, Seq: input}))
			pass(time.Second)
		}
		b.stop()
		if got, want := shown.all(), []string{"what is lost", "what is said then"}; !slices.Equal(got, want) {
			t.Errorf("shown %q, want %q", got, want)
		}
	})
}
