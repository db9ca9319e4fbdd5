package worker

// The outcomes of a start: it returns, fails, panics, runs too long, is
// withdrawn, or the bridge stops. One row a case; time is virtual.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/subjects"
)

// untilStopped is an executor's body that ends with its context.
func untilStopped(ctx context.Context, _ executor.Call) (executor.Result, error) {
	<-ctx.Done()
	return executor.Result{Output: "so far"}, ctx.Err()
}

type startCase struct {
	name    string
	execute func(context.Context, executor.Call) (executor.Result, error)
	cancel  bool // the session withdraws it after a second
	stop    bool // the bridge is told to stop after a second
	unsafe  string
	safe    string // "": given back, not settled
}

var startCases = []startCase{
	{
		name: "succeeds",
		execute: func(context.Context, executor.Call) (executor.Result, error) {
			return executor.Result{Output: "ok"}, nil
		},
		unsafe: "r1t1c0 succeeded", safe: "r1t1c0 succeeded",
	},
	{
		name: "tells a failure",
		execute: func(context.Context, executor.Call) (executor.Result, error) {
			return executor.Result{Error: &executor.Error{Code: "not_there", Detail: "look elsewhere"}}, nil
		},
		unsafe: "r1t1c0 failed not_there", safe: "r1t1c0 failed not_there",
	},
	{
		name: "fails itself",
		execute: func(context.Context, executor.Call) (executor.Result, error) {
			return executor.Result{}, errors.New("no disk")
		},
		unsafe: "r1t1c0 failed executor_error", safe: "r1t1c0 failed executor_error",
	},
	{
		name: "fails itself, with a code",
		execute: func(context.Context, executor.Call) (executor.Result, error) {
			return executor.Result{}, fmt.Errorf("x: %w", &executor.Error{Code: "full"})
		},
		unsafe: "r1t1c0 failed full", safe: "r1t1c0 failed full",
	},
	{
		// What was sent before a time-out may have arrived.
		name: "fails by a time-out of its own",
		execute: func(context.Context, executor.Call) (executor.Result, error) {
			return executor.Result{}, fmt.Errorf("post: %w", context.DeadlineExceeded)
		},
		unsafe: "r1t1c0 outcome_unknown outcome_unknown", safe: "r1t1c0 failed deadline_exceeded",
	},
	{
		name: "can't tell",
		execute: func(context.Context, executor.Call) (executor.Result, error) {
			return executor.Result{Unknown: true}, nil
		},
		unsafe: "r1t1c0 outcome_unknown outcome_unknown", safe: "r1t1c0 outcome_unknown outcome_unknown",
	},
	{
		name:    "panics",
		execute: func(context.Context, executor.Call) (executor.Result, error) { panic("boom") },
		unsafe:  "r1t1c0 outcome_unknown outcome_unknown", safe: "r1t1c0 failed executor_panic",
	},
	{
		// As a test's Fatal does.
		name: "ends its goroutine",
		execute: func(context.Context, executor.Call) (executor.Result, error) {
			runtime.Goexit()
			return executor.Result{}, nil
		},
		unsafe: "r1t1c0 outcome_unknown outcome_unknown", safe: "r1t1c0 failed executor_panic",
	},
	{
		name: "runs too long", execute: untilStopped,
		unsafe: "r1t1c0 outcome_unknown outcome_unknown", safe: "r1t1c0 failed deadline_exceeded",
	},
	{
		// What it says after the end of its time is not believed.
		name: "succeeds too late",
		execute: func(ctx context.Context, _ executor.Call) (executor.Result, error) {
			<-ctx.Done()
			return executor.Result{Output: "ok"}, nil
		},
		unsafe: "r1t1c0 outcome_unknown outcome_unknown", safe: "r1t1c0 failed deadline_exceeded",
	},
	{
		name: "does not return in time",
		execute: func(context.Context, executor.Call) (executor.Result, error) {
			<-time.After(time.Hour)
			return executor.Result{}, nil
		},
		unsafe: "r1t1c0 outcome_unknown outcome_unknown", safe: "r1t1c0 failed deadline_exceeded",
	},
	{
		name: "is withdrawn", execute: untilStopped, cancel: true,
		unsafe: "r1t1c0 outcome_unknown outcome_unknown", safe: "r1t1c0 cancelled cancelled",
	},
	{
		name: "ends within the grace time", stop: true,
		execute: func(context.Context, executor.Call) (executor.Result, error) {
			<-time.After(10 * time.Second)
			return executor.Result{}, nil
		},
		unsafe: "r1t1c0 succeeded", safe: "r1t1c0 succeeded",
	},
	{
		// Whoever takes a retry-safe call next runs it again.
		name: "does not end within the grace time", execute: untilStopped, stop: true,
		unsafe: "r1t1c0 outcome_unknown outcome_unknown", safe: "",
	},
}

func TestStart(t *testing.T) {
	t.Parallel()
	for _, c := range startCases {
		for _, safe := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/retry_safe=%v", c.name, safe), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { c.run(t, safe) })
			})
		}
	}
}

func (c startCase) run(t *testing.T, safe bool) {
	w, q := newWorld(), newQueue()
	b := startBridge(t, w, "me", q, Target{Class: session.ClassTool, Name: "host", Executor: executorFunc(c.execute)})
	var told heard
	b.observer = &told
	q.ask(t, session.ClassTool, "host", "s1", "r1t1c0", toolCall("r1t1c0", safe))
	pass(time.Second)
	if c.cancel {
		b.Cancelled("s1", []byte(`{"effects":["r1t1c0","r1t1c7"]}`))
		pass(time.Second)
	} else if !c.stop {
		pass(2 * testRun)
	}
	b.stop()
	want := []string{c.unsafe}
	if safe {
		want = []string{c.safe}
	}
	if want[0] == "" {
		want = nil
	}
	w.wantSettled(t, want...)
	if acked, returned := q.counts(); acked != len(want) || acked+returned != 1 {
		t.Errorf("acked %d, given back %d; want %d settled and acked, and no more", acked, returned, len(want))
	}
	if got := len(b.executions.byName); got != 0 {
		t.Errorf("flights: got %d, want 0", got)
	}
	told.check(t, "r1t1c0", want)
	pass(2 * time.Hour) // what was abandoned returns
}

// The session withdraws an effect while its claim is being stored: the claim is
// ours, so we settle that it did not start.
func TestEffectWithdrawnDuringItsClaimIsSettledUnstarted(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, q *queue) {
		b := startBridge(t, w, "me", q, Target{Class: session.ClassTool, Name: "host", Executor: executorFunc(func(context.Context, executor.Call) (executor.Result, error) {
			t.Error("started")
			return executor.Result{}, nil
		})})
		w.claimLost = func(subjects.ClaimName) error {
			b.Cancelled("s1", []byte(`{"effects":["r1t1c0"]}`))
			return nil
		}
		q.ask(t, session.ClassTool, "host", "s1", "r1t1c0", toolCall("r1t1c0", false))
		pass(time.Second)
		b.stop()
		w.wantSettled(t, "r1t1c0 cancelled cancelled")
	})
}

func TestExecutorReceivesTheCallAndItsResultIsSettled(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, q *queue) {
		var got executor.Call
		b := startBridge(t, w, "me", q, Target{Class: session.ClassTool, Name: "host", Executor: executorFunc(func(_ context.Context, c executor.Call) (executor.Result, error) {
			got = c
			<-time.After(1500 * time.Millisecond)
			return executor.Result{Output: "a\xffb", HostSession: &executor.HostSession{ID: "h1", Status: "ready", Route: "me"}}, nil
		})})
		call := toolCall("r1t1c0", false)
		call.HostSession = &session.HostSession{ID: "h0", Status: "closed", Route: "there"}
		call.ProviderCallID = "call_1"
		call.Context = raw(t, `{"order":7}`)
		q.ask(t, session.ClassTool, "host", "s1", "r1t1c0", call)
		pass(10 * time.Second)
		b.stop()
		want := executor.Call{
			Session: "s1", Effect: "r1t1c0", Start: got.Start, ToolID: "host.fs.stat", ToolName: "stat", ProviderCallID: "call_1",
			IdempotencyKey: "s1.r1t1c0", HostSession: &executor.HostSession{ID: "h0", Status: "closed", Route: "there"},
		}
		if string(got.Arguments) != `{"x":1}` || string(got.Context) != `{"order":7}` || len(got.Start) != 26 {
			t.Errorf("call: arguments %s, context %s, start %q", got.Arguments, got.Context, got.Start)
		}
		got.Arguments, got.Context = nil, nil
		if fmt.Sprintf("%+v %+v", got, *got.HostSession) != fmt.Sprintf("%+v %+v", want, *want.HostSession) && *got.HostSession != *want.HostSession {
			t.Errorf("call: got %+v, want %+v", got, want)
		}
		env := w.last(t)
		if env.By != "test/me" || env.At == 0 || env.ID != "" {
			t.Errorf("envelope: got by %q, at %d, id %q", env.By, env.At, env.ID)
		}
		s := body[session.ToolCallSettled](t, env)
		if s.Output == nil || s.Output.Text != "a\uFFFDb" || s.DurationMS != 1500 || s.PlanHash != call.PlanHash.String() {
			t.Errorf("settlement: got %+v with output %+v", s, s.Output)
		}
		if s.HostSession == nil || *s.HostSession != (session.HostSession{ID: "h1", Status: "ready", Route: "me"}) {
			t.Errorf("host session: got %+v", s.HostSession)
		}
	})
}

// modelCase is one way in which a generation ends.
type modelCase struct {
	name     string
	generate func(ctx context.Context, start int) (executor.Answer, error)
	cancel   bool
	stop     bool
	settled  string // "": given back
	starts   int
}

var generationCases = []modelCase{
	{
		name: "says it", starts: 1, settled: "r1t1 ok",
		generate: func(context.Context, int) (executor.Answer, error) { return executor.Answer{Text: "hello"}, nil },
	},
	{
		name: "calls tools", starts: 1, settled: "r1t1 calls 2",
		generate: func(context.Context, int) (executor.Answer, error) {
			return executor.Answer{Calls: []executor.AnswerCall{{Name: "stat"}, {Name: "stat"}}}, nil
		},
	},
	{
		name: "fails for good", starts: 1, settled: "r1t1 failed bad_request",
		generate: func(context.Context, int) (executor.Answer, error) {
			return executor.Answer{}, &executor.Error{Code: "bad_request"}
		},
	},
	{
		name: "fails without a code", starts: 1, settled: "r1t1 failed model_error",
		generate: func(context.Context, int) (executor.Answer, error) { return executor.Answer{}, errors.New("eh") },
	},
	{
		name: "fails for now, and is asked again", starts: 3, settled: "r1t1 ok",
		generate: func(_ context.Context, start int) (executor.Answer, error) {
			if start < 3 {
				return executor.Answer{}, &executor.Error{Code: "overloaded", Retryable: true}
			}
			return executor.Answer{Text: "at last"}, nil
		},
	},
	{
		name: "fails for now until its deadline", starts: -1, settled: "r1t1 failed overloaded",
		generate: func(context.Context, int) (executor.Answer, error) {
			return executor.Answer{}, &executor.Error{Code: "overloaded", Retryable: true}
		},
	},
	{
		name: "is withdrawn while it waits to be asked again", starts: -1, cancel: true, settled: "r1t1 failed cancelled",
		generate: func(context.Context, int) (executor.Answer, error) {
			return executor.Answer{}, &executor.Error{Code: "overloaded", Retryable: true}
		},
	},
	{
		name: "waits to be asked again when the bridge stops", starts: -1, stop: true, settled: "",
		generate: func(context.Context, int) (executor.Answer, error) {
			return executor.Answer{}, &executor.Error{Code: "overloaded", Retryable: true}
		},
	},
	{
		name: "panics", starts: 1, settled: "r1t1 failed executor_panic",
		generate: func(context.Context, int) (executor.Answer, error) { panic("boom") },
	},
	{
		name: "runs too long", starts: 1, settled: "r1t1 failed deadline_exceeded",
		generate: func(ctx context.Context, _ int) (executor.Answer, error) {
			<-ctx.Done()
			return executor.Answer{}, ctx.Err()
		},
	},
	{
		// It has no other effect than to be said, so it may as well be heard.
		name: "answers too late", starts: 1, settled: "r1t1 ok",
		generate: func(ctx context.Context, _ int) (executor.Answer, error) {
			<-ctx.Done()
			return executor.Answer{Text: "hello"}, nil
		},
	},
	{
		name: "is withdrawn", cancel: true, starts: 1, settled: "r1t1 failed cancelled",
		generate: func(ctx context.Context, _ int) (executor.Answer, error) {
			<-ctx.Done()
			return executor.Answer{}, ctx.Err()
		},
	},
	{
		// Another bridge takes it over, once our heartbeats have ended.
		name: "is in progress when the bridge stops", stop: true, starts: 1, settled: "",
		generate: func(ctx context.Context, _ int) (executor.Answer, error) {
			<-ctx.Done()
			return executor.Answer{}, ctx.Err()
		},
	},
}

func TestGeneration(t *testing.T) {
	t.Parallel()
	for _, c := range generationCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, c.run)
		})
	}
}

func (c modelCase) run(t *testing.T) {
	w, q := newWorld(), newQueue()
	input := w.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: session.Content{Text: "hi"}})
	var starts ledger
	b := startBridge(t, w, "me", q, Target{Class: session.ClassLLM, Name: "p", Model: modelFunc(func(ctx context.Context, r executor.Request, _ func(string)) (executor.Answer, error) {
		starts.add(r.Start)
		return c.generate(ctx, len(starts.all()))
	})})
	asked := time.Now()
	q.ask(t, session.ClassLLM, "p", "s1", "r1t1", generation("r1t1", session.Item{Role: session.RoleUser, Seq: input}))
	pass(100 * time.Millisecond)
	switch {
	case c.cancel:
		b.Cancelled("s1", []byte(`{"effects":["r1t1"]}`))
		pass(100 * time.Millisecond)
	case !c.stop:
		pass(testStartBy + testRun)
	}
	b.stop()
	if c.stop && time.Since(asked) > GraceDefault+stopGrace {
		t.Errorf("stopping took %v", time.Since(asked))
	}
	var want []string
	if c.settled != "" {
		want = []string{c.settled}
	}
	w.wantSettled(t, want...)
	got := starts.all()
	if len(got) != c.starts && c.starts >= 0 {
		t.Errorf("starts: got %d, want %d", len(got), c.starts)
	}
	slices.Sort(got)
	if len(slices.Compact(got)) != len(starts.all()) {
		t.Errorf("starts share a name: %q", starts.all())
	}
	if acked, returned := q.counts(); acked != len(want) || acked+returned != 1 {
		t.Errorf("acked %d, given back %d", acked, returned)
	}
}

// A generation that keeps failing starts no more often than the waits allow, and
// not after its start_by.
func TestRetriesOfAGenerationWait(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, q *queue) {
		input := w.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: session.Content{Text: "hi"}})
		var at []time.Duration
		asked := time.Now()
		b := startBridge(t, w, "me", q, Target{Class: session.ClassLLM, Name: "p", Model: modelFunc(func(context.Context, executor.Request, func(string)) (executor.Answer, error) {
			at = append(at, time.Since(asked))
			return executor.Answer{}, &executor.Error{Code: "overloaded", Retryable: true}
		})})
		q.ask(t, session.ClassLLM, "p", "s1", "r1t1", generation("r1t1", session.Item{Role: session.RoleUser, Seq: input}))
		pass(testStartBy + testRun)
		b.stop()
		if len(at) < 8 || len(at) > 30 {
			t.Errorf("started %d times in %v", len(at), testStartBy)
		}
		for i := 1; i < len(at); i++ {
			if wait := at[i] - at[i-1]; wait < modelWaitMin/2 || wait > modelWaitMax || at[i] > testStartBy {
				t.Errorf("start %d came at %v, %v after the one before", i, at[i], wait)
			}
		}
	})
}

// Deltas have effect, start and number, in order, and split between characters.
func TestDeltasAreNumberedAndSplitBetweenCharacters(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, q *queue) {
		input := w.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: session.Content{Text: "hi"}})
		b := startBridge(t, w, "me", q, Target{Class: session.ClassLLM, Name: "p", Model: modelFunc(func(_ context.Context, r executor.Request, delta func(string)) (executor.Answer, error) {
			delta("one")
			delta("")
			delta(strings.Repeat("é", deltaBytesMax/2+1))
			w.say(t, session.DoorIn, "s1", r.Start, struct{}{}) // so that the test knows the start
			return executor.Answer{Text: "…"}, nil
		})})
		q.ask(t, session.ClassLLM, "p", "s1", "r1t1", generation("r1t1", session.Item{Role: session.RoleUser, Seq: input}))
		pass(time.Second)
		b.stop()
		env, err := envelopeOf(w.events[1])
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for n, text := range []string{"one", strings.Repeat("é", deltaBytesMax/2), "é"} {
			want = append(want, fmt.Sprintf(`{"effect":"r1t1","start":%q,"n":%d,"text":%q}`, env.Type, n, text))
		}
		if !slices.Equal(w.live, want) {
			t.Errorf("got %.200q\nwant %.200q", w.live, want)
		}
	})
}

// Bytes that are no effect are acked, counted, and settle nothing.
func TestForeignMessagesAreAckedAndCounted(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, q *queue) {
		b := startBridge(t, w, "me", q, Target{Class: session.ClassTool, Name: "host", Executor: executorFunc(func(context.Context, executor.Call) (executor.Result, error) {
			t.Error("executed")
			return executor.Result{}, nil
		})})
		q.waiting <- &message{queue: q, subject: "refold.fx.tool.host.s1.r1t1c0", payload: []byte("hello")}
		q.waiting <- &message{queue: q, subject: "refold.fx.tool.host.s1.r1t1c0", payload: nil}
		other := toolCall("r1t1c1", false) // the name of another effect
		q.ask(t, session.ClassTool, "host", "s1", "r1t1c0", other)
		noTime := toolCall("r1t1c0", false)
		noTime.RunMS = 0
		q.ask(t, session.ClassTool, "host", "s1", "r1t1c0", noTime)
		pass(time.Second)
		b.stop()
		if acked, _ := q.counts(); acked != 4 || b.stats.Foreign.Load() != 4 {
			t.Errorf("acked %d, counted %d, want 4", acked, b.stats.Foreign.Load())
		}
		w.wantSettled(t)
		if _, ok := w.claimOf(callClaim("r1t1c0", 1)); ok {
			t.Error("claimed")
		}
	})
}

// An effect that this release can't read is left to newer bridges: an ack would
// lose it.
func TestNewerEffectsAreLeftToOthers(t *testing.T) {
	t.Parallel()
	newer := toolCall("r1t1c0", false)
	newer.V = 2
	more := struct {
		session.ToolCall
		Zone string `msgpack:"zone"`
	}{toolCall("r1t1c0", false), "b"}
	for name, payload := range map[string]any{"version": newer, "field": more} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world, q *queue) {
				b := startBridge(t, w, "me", q, Target{Class: session.ClassTool, Name: "host", Executor: executorFunc(func(context.Context, executor.Call) (executor.Result, error) {
					t.Error("executed")
					return executor.Result{}, nil
				})})
				beat := b.Heartbeats([]string{"tool/host"}, []Target{{Class: session.ClassTool, Name: "host"}}, func() int64 { return 0 })
				begun := time.Now()
				q.ask(t, session.ClassTool, "host", "s1", "r1t1c0", payload)
				pass(time.Minute)
				wantTrouble(t, beat(), "tool/host", session.TroubleNewer, begun)
				b.stop()
				pass(newerKept)
				wantTrouble(t, beat(), "", "", begun)
				if acked, returned := q.counts(); acked != 0 || returned < 2 || returned > 12 {
					t.Errorf("acked %d, given back %d times in a minute", acked, returned)
				}
				w.wantSettled(t)
			})
		})
	}
}

// wantTrouble checks the one trouble that a heartbeat reports, or that it has none if
// target is empty. It began within a second of a time.
func wantTrouble(t *testing.T, beat []byte, target, code string, begun time.Time) {
	t.Helper()
	var said presence.Heartbeat
	if err := json.Unmarshal(beat, &said); err != nil {
		t.Fatal(err)
	}
	if target == "" && len(said.Troubles) == 0 {
		return
	}
	if len(said.Troubles) != 1 || said.Troubles[0].Target != target || said.Troubles[0].Code != code ||
		said.Troubles[0].Next <= said.Troubles[0].Since || said.Troubles[0].Since-begun.UnixMilli() > 1000 {
		t.Errorf("the heartbeat reports %+v, want %s of %s since %d", said.Troubles, code, target, begun.UnixMilli())
	}
}

// Text that a model produces after its context ended is not published.
func TestDeltasEndWithTheContext(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, q *queue) {
		input := w.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: session.Content{Text: "hi"}})
		b := startBridge(t, w, "me", q, Target{Class: session.ClassLLM, Name: "p", Model: modelFunc(func(ctx context.Context, _ executor.Request, delta func(string)) (executor.Answer, error) {
			delta("before")
			<-ctx.Done()
			delta("after")
			return executor.Answer{}, ctx.Err()
		})})
		q.ask(t, session.ClassLLM, "p", "s1", "r1t1", generation("r1t1", session.Item{Role: session.RoleUser, Seq: input}))
		pass(time.Second)
		b.Cancelled("s1", []byte(`{"effects":["r1t1"]}`))
		pass(time.Second)
		b.stop()
		if len(w.live) != 1 || !strings.Contains(w.live[0], "before") {
			t.Errorf("got %q, want the first alone", w.live)
		}
	})
}
