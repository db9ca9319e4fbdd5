package worker

// The rules of claims, each as a case: the claims stored before a bridge receives
// an effect, the events after that, and the result in the end. Time is virtual.

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/subjects"
)

// claimCase is one rule. The bridge is "me"; the effect is r1t1c0, a tool call
// that is not retry-safe, or r1t1, a model turn.
type claimCase struct {
	name   string
	model  bool
	safe   bool // the tool call is retry-safe
	again  bool // it was delivered before
	late   bool // it is past start_by when delivered
	old    bool // it was asked so long before that its name may be forgotten
	claims map[int]Claim
	beats  []string // other instances that are alive
	lost   int      // so many answers to claims are lost
	slow   bool     // the first claim is acknowledged after start_by
	cut    bool     // nobody hears us for 8 s, until the first claim is acknowledged
	silent int      // this claim is stored, and for 8 s nothing is answered and nobody hears us
	quiet  bool     // nobody hears us from 5 s before the effect comes, for 10 s
	before func(t *testing.T, w *world)
	later  func(t *testing.T, w *world) // after 20 s

	settled []string
	started int
	acked   bool
	stands  map[int]Claim // claims in the end; those that were there stand anyway
}

var (
	byMe      = Claim{By: "me"}
	byOther   = Claim{By: "other"}
	byThird   = Claim{By: "third"}
	byFourth  = Claim{By: "fourth"}
	withdrawn = Claim{Withdrawn: true}
	released  = Claim{By: "other", Released: true}
)

// isOpenAt makes the session's view say that r1t1 is open, or not.
func isOpenAt(open bool, seq uint64) func(*testing.T, *world) {
	return func(_ *testing.T, w *world) {
		v := session.View{Shown: session.Shown{Session: "s1", Seq: seq, Clock: time.Now().UnixMilli()}}
		if open {
			v.Open = []session.ViewEffect{{Effect: "r1t1", Class: session.ClassLLM}}
		}
		w.setView("s1", v)
	}
}

var toolCases = []claimCase{
	{name: "free: claimed, started, settled", settled: []string{"r1t1c0 succeeded"}, started: 1, acked: true, stands: map[int]Claim{1: byMe}},
	{name: "retry-safe: no claim", safe: true, settled: []string{"r1t1c0 succeeded"}, started: 1, acked: true, stands: map[int]Claim{}},
	{name: "retry-safe, late: nothing is started", safe: true, late: true, settled: []string{"r1t1c0 failed deadline_exceeded"}, acked: true, stands: map[int]Claim{}},
	{name: "retry-safe, again: claimed", safe: true, again: true, settled: []string{"r1t1c0 succeeded"}, started: 1, acked: true, stands: map[int]Claim{1: byMe}},
	{name: "retry-safe, again, late: nothing is started", safe: true, again: true, late: true, settled: []string{"r1t1c0 failed deadline_exceeded"}, acked: true, stands: map[int]Claim{}},
	{name: "retry-safe, again, withdrawn", safe: true, again: true, claims: map[int]Claim{1: withdrawn}, acked: true},
	{name: "retry-safe, again, held, holder alive: later", safe: true, again: true, claims: map[int]Claim{1: byOther}, beats: []string{"other"}, settled: []string{"r1t1c0 failed deadline_exceeded"}, acked: true},
	{
		name: "retry-safe, again, holder gone: the next claim", safe: true, again: true, claims: map[int]Claim{1: byOther},
		settled: []string{"r1t1c0 succeeded"}, started: 1, acked: true, stands: map[int]Claim{2: byMe},
	},
	{
		// With the first start, which has no claim, three bridges died.
		name: "retry-safe, again, two holders gone: failed", safe: true, again: true, claims: map[int]Claim{1: byOther, 2: byThird},
		settled: []string{"r1t1c0 failed bridge_lost"}, acked: true, stands: map[int]Claim{3: byMe},
	},
	{
		name: "retry-safe, again, first released", safe: true, again: true, claims: map[int]Claim{1: released, 2: byThird, 3: byFourth},
		settled: []string{"r1t1c0 succeeded"}, started: 1, acked: true, stands: map[int]Claim{4: byMe},
	},
	{
		name: "retry-safe, again, a holder released it", safe: true, again: true, claims: map[int]Claim{1: byOther, 2: released, 3: byThird},
		settled: []string{"r1t1c0 succeeded"}, started: 1, acked: true, stands: map[int]Claim{4: byMe},
	},
	{
		// An instance dies once.
		name: "retry-safe, again, two claims of one holder", safe: true, again: true, claims: map[int]Claim{1: byOther, 2: byOther},
		settled: []string{"r1t1c0 succeeded"}, started: 1, acked: true, stands: map[int]Claim{3: byMe},
	},
	{
		name: "retry-safe, again, claims of other bytes", safe: true, again: true,
		claims:  map[int]Claim{1: {By: "other", Hash: "00"}, 2: {By: "third", Hash: "00"}, 3: {Withdrawn: true, Hash: "00"}},
		settled: []string{"r1t1c0 succeeded"}, started: 1, acked: true, stands: map[int]Claim{4: byMe},
	},
	{name: "withdrawn: nothing to say", claims: map[int]Claim{1: withdrawn}, acked: true},
	{name: "held, holder alive: later", claims: map[int]Claim{1: byOther}, beats: []string{"other"}},
	{name: "held, holder gone: the outcome is unknown", claims: map[int]Claim{1: byOther}, settled: []string{"r1t1c0 outcome_unknown outcome_unknown"}, acked: true},
	{
		name: "held, holder dies later", claims: map[int]Claim{1: byOther}, beats: []string{"other"},
		later:   func(_ *testing.T, w *world) { w.beat("other", false) },
		settled: []string{"r1t1c0 outcome_unknown outcome_unknown"}, acked: true,
	},
	{name: "late, free: withdrawn first", late: true, settled: []string{"r1t1c0 failed deadline_exceeded"}, acked: true, stands: map[int]Claim{1: withdrawn}},
	{
		// Perhaps by a bridge that died before it could say so.
		name: "late, withdrawn: settled", late: true, claims: map[int]Claim{1: withdrawn},
		settled: []string{"r1t1c0 failed deadline_exceeded"}, acked: true,
	},
	{name: "asked long ago, free: the outcome is unknown", old: true, settled: []string{"r1t1c0 outcome_unknown outcome_unknown"}, acked: true, stands: map[int]Claim{1: withdrawn}},
	{name: "asked long ago, retry-safe", old: true, safe: true, settled: []string{"r1t1c0 failed deadline_exceeded"}, acked: true, stands: map[int]Claim{}},
	{name: "late, holder alive: later", late: true, claims: map[int]Claim{1: byOther}, beats: []string{"other"}},
	{name: "late, holder gone: the outcome is unknown", late: true, claims: map[int]Claim{1: byOther}, settled: []string{"r1t1c0 outcome_unknown outcome_unknown"}, acked: true},
	{name: "answer lost: the claim is found to be ours", lost: 1, settled: []string{"r1t1c0 succeeded"}, started: 1, acked: true, stands: map[int]Claim{1: byMe}},
	{name: "three answers lost", lost: 3, settled: []string{"r1t1c0 succeeded"}, started: 1, acked: true, stands: map[int]Claim{1: byMe}},
	{name: "acknowledged after start_by: ours, and not started", slow: true, settled: []string{"r1t1c0 failed deadline_exceeded"}, acked: true, stands: map[int]Claim{1: byMe}},
}

var modelCases = []claimCase{
	{name: "asked long ago", model: true, old: true, settled: []string{"r1t1 failed deadline_exceeded"}, acked: true, stands: map[int]Claim{1: withdrawn}},
	{name: "free", model: true, settled: []string{"r1t1 ok"}, started: 1, acked: true, stands: map[int]Claim{1: byMe}},
	{name: "withdrawn", model: true, claims: map[int]Claim{1: withdrawn}, acked: true},
	{name: "holder alive", model: true, claims: map[int]Claim{1: byOther}, beats: []string{"other"}, before: isOpenAt(true, 9)},
	{
		name: "holder gone, open: taken over", model: true, claims: map[int]Claim{1: byOther}, before: isOpenAt(true, 9),
		settled: []string{"r1t1 ok"}, started: 1, acked: true, stands: map[int]Claim{2: byMe},
	},
	{
		name: "two holders gone: the third claim", model: true, claims: map[int]Claim{1: byOther, 2: byThird}, before: isOpenAt(true, 9),
		settled: []string{"r1t1 ok"}, started: 1, acked: true, stands: map[int]Claim{3: byMe},
	},
	{
		name: "three holders gone: failed", model: true, claims: map[int]Claim{1: byOther, 2: byThird, 3: byFourth}, before: isOpenAt(true, 9),
		settled: []string{"r1t1 failed bridge_lost"}, acked: true, stands: map[int]Claim{4: byMe},
	},
	{
		name: "three holders gone, not open", model: true, claims: map[int]Claim{1: byOther, 2: byThird, 3: byFourth}, before: isOpenAt(false, 9), acked: true,
	},
	{
		name: "a holder released it", model: true, claims: map[int]Claim{1: byOther, 2: released, 3: byThird}, before: isOpenAt(true, 9),
		settled: []string{"r1t1 ok"}, started: 1, acked: true, stands: map[int]Claim{4: byMe},
	},
	{name: "second holder alive", model: true, claims: map[int]Claim{1: byOther, 2: byThird}, beats: []string{"third"}, before: isOpenAt(true, 9)},
	{name: "second claim withdrawn", model: true, claims: map[int]Claim{1: byOther, 2: withdrawn}, before: isOpenAt(true, 9), acked: true},
	{name: "holder gone, not open", model: true, claims: map[int]Claim{1: byOther}, before: isOpenAt(false, 9), acked: true},
	{name: "holder gone, no view: later", model: true, claims: map[int]Claim{1: byOther}},
	{
		name: "no view at first", model: true, claims: map[int]Claim{1: byOther}, later: isOpenAt(true, 9),
		settled: []string{"r1t1 ok"}, started: 1, acked: true, stands: map[int]Claim{2: byMe},
	},
	{
		// A view that has not seen the effect asked says that it is not open.
		name: "an old view is no answer", model: true, claims: map[int]Claim{1: byOther}, before: isOpenAt(false, 0), later: isOpenAt(true, 9),
		settled: []string{"r1t1 ok"}, started: 1, acked: true, stands: map[int]Claim{2: byMe},
	},
	{
		// Nor is one that has the inputs, and not the event that asked: that of
		// a session that was stopped there, say.
		name: "a view with an old clock is no answer", model: true, claims: map[int]Claim{1: byOther},
		before: func(_ *testing.T, w *world) {
			w.setView("s1", session.View{Shown: session.Shown{Session: "s1", Seq: 9, Clock: time.Now().UnixMilli() - 1}})
		},
		later:   isOpenAt(true, 9),
		settled: []string{"r1t1 ok"}, started: 1, acked: true, stands: map[int]Claim{2: byMe},
	},
	{
		// Somebody may have found us gone before we knew that we had won.
		name: "cut off while claiming, nobody took over: claimed again", model: true, cut: true, before: isOpenAt(true, 9),
		settled: []string{"r1t1 ok"}, started: 1, acked: true, stands: map[int]Claim{1: byMe, 2: byMe},
	},
	{
		name: "cut off while claiming, taken over", model: true, cut: true, before: isOpenAt(true, 9),
		claims: map[int]Claim{2: byOther}, beats: []string{"other"}, stands: map[int]Claim{1: byMe},
	},
	{
		name: "cut off while claiming, taken over and settled", model: true, cut: true, before: isOpenAt(true, 9),
		claims: map[int]Claim{2: byOther}, beats: []string{"other"}, later: isOpenAt(false, 10), acked: true, stands: map[int]Claim{1: byMe},
	},
	{
		// The effect was given back meanwhile, and the last ask is answered at
		// once.
		name: "silent after claiming, nobody took over: claimed again", model: true, silent: 1, before: isOpenAt(true, 9),
		settled: []string{"r1t1 ok"}, started: 1, acked: true, stands: map[int]Claim{1: byMe, 2: byMe},
	},
	{
		name: "silent after claiming, taken over", model: true, silent: 1, before: isOpenAt(true, 9),
		claims: map[int]Claim{2: byOther}, beats: []string{"other"}, stands: map[int]Claim{1: byMe},
	},
	{
		name: "silent after claiming, taken over and settled", model: true, silent: 1,
		claims: map[int]Claim{2: byOther}, before: func(t *testing.T, w *world) {
			isOpenAt(true, 9)(t, w)
			w.say(t, session.DoorLLM, "s1", session.TypeGenerationSettled, session.GenerationSettled{Effect: "r1t1", Status: "ok"})
		},
		settled: []string{"r1t1 ok"}, acked: true, stands: map[int]Claim{1: byMe},
	},
	{
		name: "silent after claiming a second time, nobody took over: claimed again", model: true, silent: 2, before: isOpenAt(true, 9),
		claims:  map[int]Claim{1: byOther},
		settled: []string{"r1t1 ok"}, started: 1, acked: true, stands: map[int]Claim{2: byMe, 3: byMe},
	},
	{
		name: "silent after claiming a second time, taken over", model: true, silent: 2, before: isOpenAt(true, 9),
		claims: map[int]Claim{1: byOther, 3: byThird}, beats: []string{"third"}, stands: map[int]Claim{2: byMe},
	},
	{
		// The claim comes through before our heartbeats do: others that see it
		// take us for gone.
		name: "not heard yet after a silence", model: true, quiet: true, before: isOpenAt(true, 9),
		settled: []string{"r1t1 ok"}, started: 1, acked: true, stands: map[int]Claim{1: byMe, 2: byMe},
	},
	{
		// The view is not asked: it may lag behind the log.
		name: "its holder settled it", model: true, claims: map[int]Claim{1: byOther},
		before: func(t *testing.T, w *world) {
			isOpenAt(true, 9)(t, w)
			w.say(t, session.DoorLLM, "s1", session.TypeGenerationSettled, session.GenerationSettled{Effect: "r1t1", Status: "ok"})
		},
		settled: []string{"r1t1 ok"}, acked: true,
	},
	{
		name: "another effect's settlement is none of this", model: true, claims: map[int]Claim{1: byOther},
		before: func(t *testing.T, w *world) {
			isOpenAt(true, 9)(t, w)
			w.say(t, session.DoorLLM, "s1", session.TypeGenerationSettled, session.GenerationSettled{Effect: "r1t0", Status: "ok"})
		},
		settled: []string{"r1t0 ok", "r1t1 ok"}, started: 1, acked: true, stands: map[int]Claim{2: byMe},
	},
	{name: "late, free", model: true, late: true, settled: []string{"r1t1 failed deadline_exceeded"}, acked: true, stands: map[int]Claim{1: withdrawn}},
	{
		name: "late, holder gone, open: the second claim is withdrawn", model: true, late: true, claims: map[int]Claim{1: byOther}, before: isOpenAt(true, 9),
		settled: []string{"r1t1 failed deadline_exceeded"}, acked: true, stands: map[int]Claim{2: withdrawn},
	},
	{name: "answer lost", model: true, lost: 2, settled: []string{"r1t1 ok"}, started: 1, acked: true, stands: map[int]Claim{1: byMe}},
	{name: "acknowledged after start_by", model: true, slow: true, settled: []string{"r1t1 failed deadline_exceeded"}, acked: true, stands: map[int]Claim{1: byMe}},
}

func TestClaims(t *testing.T) {
	t.Parallel()
	for _, c := range slices.Concat(toolCases, modelCases) {
		name := "tool/" + c.name
		if c.model {
			name = "model/" + c.name
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, c.run)
		})
	}
}

func (c claimCase) effect() string {
	if c.model {
		return "r1t1"
	}
	return "r1t1c0"
}

// claim names the nth claim of the effect.
func (c claimCase) claim(n int) subjects.ClaimName {
	if c.model {
		return turnClaim(c.effect(), n)
	}
	return callClaim(c.effect(), n)
}

// turnClaim names the nth claim of a generation of s1.
func turnClaim(effect string, n int) subjects.ClaimName {
	return subjects.ClaimName{EffectName: subjects.EffectName{Class: session.ClassLLM, Target: "p", Session: "s1", Effect: effect}, N: n}
}

// callClaim names the nth claim of a tool call of s1.
func callClaim(effect string, n int) subjects.ClaimName {
	return subjects.ClaimName{EffectName: subjects.EffectName{Class: session.ClassTool, Target: "host", Session: "s1", Effect: effect}, N: n}
}

func (c claimCase) run(t *testing.T) {
	w, q := newWorld(), newQueue()
	input := w.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: session.Content{Text: "hi"}})
	for n, cl := range c.claims {
		w.setClaim(c.claim(n), cl)
	}
	for _, other := range c.beats {
		w.beat(other, true)
	}
	if c.before != nil {
		c.before(t, w)
	}
	lost, slow, cut, silent := c.lost, c.slow, c.cut, c.silent
	var heardAgain time.Time
	w.claimLost = func(name subjects.ClaimName) error {
		if lost > 0 {
			lost--
			return journal.ErrUnknownOutcome
		}
		if slow {
			slow = false
			pass(testStartBy + time.Second)
		}
		switch {
		case silent == name.N && heardAgain.IsZero():
			w.beat("me", false)
			heardAgain = time.Now().Add(8 * time.Second)
			return journal.ErrUnknownOutcome
		case silent == 0 || heardAgain.IsZero():
		case time.Now().Before(heardAgain):
			return journal.ErrUnknownOutcome
		default:
			silent = 0
			w.beat("me", true)
		}
		if cut {
			cut = false
			w.beat("me", false)
			<-time.After(8 * time.Second)
			w.beat("me", true)
		}
		return nil
	}
	var starts ledger
	s := Target{Class: session.ClassTool, Name: "host", Executor: executorFunc(func(_ context.Context, call executor.Call) (executor.Result, error) {
		starts.add(call.Effect)
		return executor.Result{Output: "done"}, nil
	})}
	if c.model {
		s = Target{Class: session.ClassLLM, Name: "p", Model: starts.model()}
	}
	call, turn := toolCall("r1t1c0", c.safe), generation("r1t1", session.Item{Role: session.RoleUser, Seq: input})
	if c.late {
		pass(testStartBy + time.Second)
	}
	if c.old {
		pass(session.DeadlineMaxMS * time.Millisecond)
	}
	b := startBridge(t, w, "me", q, s)
	if c.quiet {
		pass(time.Second)
		w.beat("me", false)
		pass(5 * time.Second)
		time.AfterFunc(5*time.Second, func() { w.beat("me", true) })
	}
	q.again = c.again
	if c.model {
		q.ask(t, session.ClassLLM, "p", "s1", "r1t1", turn)
	} else {
		q.ask(t, session.ClassTool, "host", "s1", "r1t1c0", call)
	}
	pass(20 * time.Second)
	if c.later != nil {
		c.later(t, w)
	}
	pass(testStartBy + 20*time.Second)
	b.stop()
	synctest.Wait()

	w.wantSettled(t, c.settled...)
	if got := len(starts.all()); got != c.started {
		t.Errorf("started: got %d, want %d", got, c.started)
	}
	if acked, _ := q.counts(); (acked == 1) != c.acked {
		t.Errorf("acked: got %d, want %v", acked, c.acked)
	}
	for n := 1; n <= 4; n++ {
		want, ok := c.stands[n]
		if had, there := c.claims[n]; there {
			had.Hash = ""
			want, ok = had, true
		}
		if got, there := w.claimOf(c.claim(n)); c.stands != nil && (got != want || there != ok) {
			t.Errorf("claim %d: got %+v (%v), want %+v (%v)", n, got, there, want, ok)
		}
	}
}

// An effect that another bridge holds is delivered again every heldDelay, and not
// more often.
func TestHeldIsGivenBackWithDelay(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, q *queue) {
		w.beat("other", true)
		w.setClaim(callClaim("r1t1c0", 1), byOther)
		b := startBridge(t, w, "me", q, Target{Class: session.ClassTool, Name: "host", Executor: executorFunc(nil)})
		q.ask(t, session.ClassTool, "host", "s1", "r1t1c0", toolCall("r1t1c0", false))
		pass(60 * time.Second)
		b.stop()
		if acked, returned := q.counts(); acked != 0 || returned < 25 || returned > 32 {
			t.Errorf("in a minute: acked %d, given back %d times; want 0 and about 30", acked, returned)
		}
	})
}

// watchTwoGaps watches until end, and wants a gap at the start and one later.
func watchTwoGaps(t *testing.T, h *failureDetector) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	gaps, done := 0, make(chan struct{})
	go func() {
		defer close(done)
		h.watch(ctx, func() { gaps++ })
	}()
	return func() {
		t.Helper()
		cancel()
		if <-done; gaps != 2 {
			t.Errorf("gaps: got %d, want 2: at the start and after the break", gaps)
		}
	}
}

// A holder counts as gone only after five seconds of listening: not right
// after the start, and not when we were cut off ourselves.
func TestGoneTakesListening(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.beat("other", true)
		h := newFailureDetector("me", w)
		end := watchTwoGaps(t, h)
		at := func(after time.Duration, instance string, want liveness) {
			t.Helper()
			pass(after)
			if got, _ := h.stateOf(instance); got != want {
				t.Errorf("%s: got %v, want %v", instance, got, want)
			}
		}
		at(10*time.Second, "nobody", unknown) // we don't hear ourselves
		w.beat("me", true)
		at(time.Second, "nobody", unknown)
		at(0, "other", alive)
		at(3*time.Second, "nobody", unknown)
		at(2*time.Second, "nobody", gone)
		// The connection breaks: nobody is heard, ourselves included.
		w.beat("me", false)
		w.beat("other", false)
		at(20*time.Second, "other", unknown)
		w.beat("me", true)
		w.beat("other", true)
		at(time.Second, "other", alive)
		// It really dies.
		w.beat("other", false)
		at(4*time.Second, "other", alive)
		at(2*time.Second, "other", gone)
		end()
	})
}

// watch reports a gap even if another caller of look found it first.
func TestWatchReportsGapThatAnotherCallFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.beat("me", true)
		h := newFailureDetector("me", w)
		end := watchTwoGaps(t, h)
		pass(time.Second)
		w.beat("me", false)
		pass(10*time.Second + aliveEvery/2)
		w.beat("me", true)
		h.stateOf("other")
		pass(time.Second)
		end()
	})
}

// The server loses acks and delivers an effect that was settled long ago: it is
// neither started nor settled again.
func TestSettledEffectIsNotStartedAgain(t *testing.T) {
	t.Parallel()
	for _, safe := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world, q *queue) {
			var starts ledger
			b := startBridge(t, w, "me", q, Target{Class: session.ClassTool, Name: "host", Executor: starts.executor()})
			call := toolCall("r1t1c0", safe)
			for range 3 {
				q.ask(t, session.ClassTool, "host", "s1", "r1t1c0", call)
				pass(time.Minute)
			}
			b.stop()
			if got := starts.all(); len(got) != 1 {
				t.Errorf("safe %v: started %q, want once", safe, got)
			}
			if got := w.settlements(t); len(got) != 1 {
				t.Errorf("safe %v: settled %q, want once", safe, got)
			}
			if acked, _ := q.counts(); acked != 3 {
				t.Errorf("safe %v: acked %d, want 3", safe, acked)
			}
		})
	}
}

// The table keeps a settled effect until it is late.
func TestTableForgetsWhatIsLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := newExecutions()
		for i := range 100 {
			call := toolCall("r1t1c"+string(rune('0'+i%10)), false)
			e := &effect{name: subjects.EffectName{Session: "s" + string(rune('a'+i/10)), Effect: call.Effect}, call: &call, startBy: time.Now().Add(testStartBy)}
			f, known := table.enter(e)
			if known != entryNew {
				t.Fatalf("%s: got %v, want new", e.name.Effect, known)
			}
			table.leave(f, true, time.Now())
			if _, known := table.enter(e); known != entrySettled {
				t.Errorf("%s: got %v, want settled", e.name.Effect, known)
			}
			pass(10 * time.Second)
		}
		pass(testStartBy + settledKept)
		late := &effect{name: subjects.EffectName{Session: "z", Effect: "r1t1c0"}, startBy: time.Now()}
		f, _ := table.enter(late)
		table.leave(f, false, time.Now())
		n := 0
		for _, of := range table.settled {
			n += len(of.settled) + len(of.claims)
		}
		if n > 12 {
			t.Errorf("remembered: %d of 100 effects, all but the last of which are long late", n)
		}
		if len(table.byName) != 0 {
			t.Errorf("flights: got %d, want 0", len(table.byName))
		}
	})
}

// The table keeps a claim that others may have superseded when its turn is acknowledged: the
// server may deliver the turn again over another connection, and the claim would start it.
func TestTableKeepsClaimsOfAcknowledgedTurns(t *testing.T) {
	t.Parallel()
	table := newExecutions()
	e := &effect{name: subjects.EffectName{Session: "s1", Effect: "r1t1"}, startBy: time.Now().Add(testStartBy), incarnation: 1}
	f, _ := table.enter(e)
	f.claims = claimState{passed: 2}
	table.leave(f, true, time.Now())
	again := *e
	again.incarnation = 2
	f, known := table.enter(&again)
	if known != entryNew || f.settled.claim != 2 {
		t.Errorf("delivered again: %v with the claim %d, want new, with claim 2", known, f.settled.claim)
	}
}

// A bridge dies with a call in progress, which another one then receives.
func TestRestartSettlesUnknown(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, q *queue) {
		blocked := errors.New("the process died")
		w.publishLost = func([]byte) error { return blocked }
		var starts ledger
		executor := starts.executor()
		first := startBridge(t, w, "first", q, Target{Class: session.ClassTool, Name: "host", Executor: executor})
		call := toolCall("r1t1c0", false)
		q.ask(t, session.ClassTool, "host", "s1", "r1t1c0", call)
		pass(10 * time.Second)
		first.stop() // it can't settle, and gives up when its time is over
		w.publishLost = nil
		second := startBridge(t, w, "second", q, Target{Class: session.ClassTool, Name: "host", Executor: executor})
		pass(30 * time.Second)
		second.stop()
		if got := starts.all(); len(got) != 1 {
			t.Errorf("started %q, want once", got)
		}
		w.wantSettled(t, "r1t1c0 outcome_unknown outcome_unknown")
	})
}

// Only a newer view in which the call is not open keeps it from starting.
func TestCallStartsUnlessAViewSaysItIsNotOpen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		view *session.View
		want next
	}{
		"not open any more":        {&session.View{Shown: session.Shown{Clock: 101}}, nextAck},
		"still open":               {&session.View{Shown: session.Shown{Clock: 101}, Open: []session.ViewEffect{{Effect: "r1t1c0"}}}, nextStart},
		"a view of the moment":     {&session.View{Shown: session.Shown{Clock: 100}}, nextStart},
		"a view from before":       {&session.View{Shown: session.Shown{Clock: 99}}, nextStart},
		"nobody answers":           {nil, nextStart},
		"open among other effects": {&session.View{Shown: session.Shown{Clock: 101}, Open: []session.ViewEffect{{Effect: "w1"}, {Effect: "r1t1c0"}}}, nextStart},
	} {
		world := newWorld()
		if c.view != nil {
			world.setView("s1", *c.view)
		}
		w := &Worker{wire: world}
		f := &execution{effect: &effect{call: &session.ToolCall{At: 100, Effect: "r1t1c0"}}}
		f.name.Session, f.name.Effect = "s1", "r1t1c0"
		if got := w.stillWanted(t.Context(), f); got.next != c.want {
			t.Errorf("%s: got %v, want %v", name, got.next, c.want)
		}
	}
}
