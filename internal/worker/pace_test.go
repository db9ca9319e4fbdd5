package worker

// Rates, pauses that providers ask for, and the breaker, with whole workers in
// virtual time. The tests compare when generations start, and the outcomes of
// those that don't.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
)

// pacedBridge is a bridge of the provider p, whose model records its starts.
// answer is called for each start; nil: all are answered.
type pacedBridge struct {
	*bridgeInWorld
	t      *testing.T
	q      *queue
	began  time.Time
	starts ledger
	served Target
	seq    uint64
}

func limited(model string, n int, per time.Duration) func(*Target) {
	return func(s *Target) { s.Limit(model, n, per) }
}

func breaking(faults int, pause time.Duration) func(*Target) {
	return func(s *Target) { s.BreakAfter(faults, pause) }
}

func startPaced(t *testing.T, answer func(r executor.Request) error, options ...func(*Target)) *pacedBridge {
	t.Helper()
	w := newWorld()
	b := &pacedBridge{t: t, q: newQueue(), began: time.Now()}
	b.served = Target{Class: session.ClassLLM, Name: "p", Concurrency: 8, Counts: new(TargetCounts)}
	for _, option := range options {
		option(&b.served)
	}
	b.served.Model = modelFunc(func(_ context.Context, r executor.Request, _ func(string)) (executor.Answer, error) {
		b.starts.add(fmt.Sprintf("%s at %v", r.Effect, time.Since(b.began).Round(10*time.Millisecond)))
		if answer != nil {
			if err := answer(r); err != nil {
				return executor.Answer{}, err
			}
		}
		return executor.Answer{Text: "yes"}, nil
	})
	b.seq = w.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: session.Content{Text: "hi"}})
	b.bridgeInWorld = startBridge(t, w, "me", b.q, b.served)
	return b
}

// ask publishes a generation, and waits until the bridge is idle.
func (b *pacedBridge) ask(name, model string) {
	b.t.Helper()
	g := generation(name, session.Item{Role: session.RoleUser, Seq: b.seq})
	g.Model = model
	b.q.ask(b.t, session.ClassLLM, "p", "s1", name, g)
	synctest.Wait()
}

func (b *pacedBridge) started(what string, want ...string) {
	b.t.Helper()
	if got := b.starts.all(); !slices.Equal(got, want) {
		b.t.Errorf("%s: started %q, want %q", what, got, want)
	}
}

func (b *pacedBridge) settled(what string, want ...string) {
	b.t.Helper()
	if got := b.world.settlements(b.t); !slices.Equal(got, want) {
		b.t.Errorf("%s: settled %q, want %q", what, got, want)
	}
}

// Two start at once and then one each five seconds; a generation that would wait
// in its slot for more than ten seconds is given back until then.
func TestRateSpacesStarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := startPaced(t, nil, limited("", 2, 10*time.Second))
		for n := range 6 {
			b.ask(fmt.Sprintf("r%dt1", n+1), "m")
		}
		if _, returned := b.q.counts(); returned != 2 {
			t.Errorf("given back: %d, want 2", returned)
		}
		pass(9 * time.Second)
		b.started("after 9 s", "r1t1 at 0s", "r2t1 at 0s", "r3t1 at 5s")
		pass(20 * time.Second)
		var at []string
		for _, line := range b.starts.all() {
			_, when, _ := strings.Cut(line, " at ")
			at = append(at, when)
		}
		if want := []string{"0s", "0s", "5s", "10s", "15s", "20s"}; !slices.Equal(at, want) {
			t.Errorf("starts: got %q, want %q", at, want)
		}
		if got := b.served.Counts; got.Done.Load() != 6 || got.GivenBack.Load() != 2 || got.InFlight.Load() != 0 || got.TookMax.Load() != int64(10*time.Second) {
			t.Errorf("counts: got %+v", got)
		}
		b.stop()
	})
}

// A model's rate delays that model only; its starts count for the provider's rate
// too.
func TestRateOfOneModelDelaysOnlyThatModel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := startPaced(t, nil, limited("slow", 1, 4*time.Second), limited("", 3, 24*time.Second))
		b.ask("r1t1", "slow")
		b.ask("r2t1", "slow")
		b.ask("r3t1", "m")
		b.ask("r4t1", "m")
		pass(9 * time.Second)
		b.started("each by its rates", "r1t1 at 0s", "r3t1 at 0s", "r2t1 at 4s", "r4t1 at 8s")
		b.stop()
	})
}

// Nothing starts during a pause that the provider asked for, and the model's own
// next try waits too.
func TestProviderRetryAfterHoldsStarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var waits []time.Duration
		first := true
		b := startPaced(t, func(r executor.Request) error {
			if first {
				first = false
				r.Tried(&executor.Error{Code: codeRateLimited, Retryable: true}, 30*time.Second)
				waits = append(waits, r.Again(time.Second), r.Again(time.Minute))
			}
			return nil
		}, breaking(1, time.Minute)) // which a provider that answers does not open
		b.ask("r1t1", "m")
		b.ask("r2t1", "m")
		pass(29 * time.Second)
		b.started("while it is left alone", "r1t1 at 0s")
		pass(2 * time.Second)
		b.started("after that", "r1t1 at 0s", "r2t1 at 30s")
		if want := []time.Duration{30 * time.Second, time.Minute}; !slices.Equal(waits, want) {
			t.Errorf("further tries wait %v, want %v", waits, want)
		}
		b.stop()
	})
}

// A generation that its rate never lets start is settled when it is late, not
// before.
func TestGenerationThatItsRateNeverStartsIsSettledLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := startPaced(t, nil, limited("m", 1, time.Hour))
		b.ask("r1t1", "m")
		b.ask("r2t1", "m")
		pass(testStartBy - time.Second)
		b.settled("in time", "r1t1 ok")
		pass(2 * time.Second)
		b.settled("late", "r1t1 ok", "r2t1 failed deadline_exceeded")
		b.started("ever", "r1t1 at 0s")
		b.stop()
	})
}

// A stopping bridge gives back generations that wait for the rate.
func TestStoppingBridgeGivesBackWhatWaitsForTheRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := startPaced(t, nil, limited("m", 1, 9*time.Second))
		b.ask("r1t1", "m")
		b.ask("r2t1", "m")
		b.stop()
		if since := time.Since(b.began); since != 0 {
			t.Errorf("it stops after %v", since)
		}
		b.settled("before the end", "r1t1 ok")
	})
}

// The breaker opens after three faults in a row, lets one trial start when its
// time is over, and all when the trial is answered.
func TestBreakerOpensAfterFaultsAndTriesOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var fault atomic.Pointer[executor.Error]
		answer := func(executor.Request) error {
			if fault := fault.Load(); fault != nil {
				return fault
			}
			return nil
		}
		b := startPaced(t, answer, breaking(3, 20*time.Second))
		state := func(want string) {
			t.Helper()
			if got, _ := b.served.Pace.State(time.Now()); got != want {
				t.Errorf("breaker: got %s, want %s", got, want)
			}
		}
		b.ask("r1t1", "m")
		for n, code := range []string{codeNetwork, codeOverloaded, codeBadRequest, codeNetwork, codeNetwork} {
			fault.Store(&executor.Error{Code: code})
			b.ask(fmt.Sprintf("r%dt1", n+2), "m")
		}
		state("closed") // an answer, even a refusal, begins the count anew
		b.ask("r7t1", "m")
		state("open")
		b.ask("r8t1", "m")
		b.ask("r9t1", "m")
		pass(19 * time.Second)
		if got := len(b.starts.all()); got != 7 {
			t.Errorf("started %d, want 7: none while it is open", got)
		}
		pass(time.Second) // r8t1 and r9t1 come again: one of them is tried, in vain
		state("open")
		if got := len(b.starts.all()); got != 8 {
			t.Errorf("started %d, want 8: one for a trial", got)
		}
		fault.Store(nil)
		pass(25 * time.Second)
		state("closed")
		got := b.world.settlements(t)
		failed := 0
		for _, line := range got {
			if strings.HasSuffix(line, "failed network") || strings.HasSuffix(line, "failed overloaded") {
				failed++
			}
		}
		if len(got) != 9 || failed != 6 || !strings.HasSuffix(got[8], " ok") {
			t.Errorf("settled %q: want nine, six of them failed by the provider, and the last one ok", got)
		}
		b.stop()
	})
}

// A withdrawn trial has no result.
func TestWithdrawnTrialLeavesRoomForAnother(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p := &Pacer{faultsMax: 1, openFor: time.Second}
	p.failed(&executor.Error{Code: codeNetwork}, now)
	one, two := new(execution), new(execution)
	later := now.Add(time.Second)
	if p.breakerWait(one, now) == 0 {
		t.Error("it is open and lets one through")
	}
	if p.breakerWait(one, later) > 0 {
		t.Error("it is half open and lets none through")
	}
	if wait := p.breakerWait(two, later); wait != breakerTrialDelay {
		t.Errorf("while one is tried another waits %v", wait)
	}
	p.leave(one)
	if p.breakerWait(two, later) > 0 {
		t.Error("after a trial without an outcome it lets none through")
	}
}
