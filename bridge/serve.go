package bridge

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/refold/refold/internal/worker"
	"github.com/refold/refold/subjects"
)

// ServeOption changes how one target is served.
type ServeOption struct{ apply func(*serving) }

// serving is a target, and what is wrong with its options.
type serving struct {
	worker.Target
	wrong []error
}

func (s *serving) fail(format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Errorf(format, args...))
}

// Concurrency is how many effects of a target run at once in this process, 1
// to 1024; 16 without it. What comes beyond that waits at the server, where
// other bridges of the target take it.
func Concurrency(n int) ServeOption {
	return ServeOption{func(s *serving) { s.Concurrency = n }}
}

// Rate is how many requests a provider takes: N in each Per. A burst of N is
// allowed, and no more than N are sent in any Per that begins without one.
type Rate struct {
	N   int           // 1 to 1,000,000
	Per time.Duration // 1 ms to 24 h
}

// Limit holds the generations of a provider to a rate, in this process: model
// is one of the provider's models, or empty for all of them together. Each
// start takes from both. What has to wait for long is given back, so that it
// keeps no slot, and no other bridge from taking it. What the provider asks to
// wait, as with HTTP's Retry-After, everybody waits; see [executor.Request.Tried].
func Limit(model string, r Rate) ServeOption {
	return ServeOption{func(s *serving) {
		if err := r.validate(); err != nil {
			s.fail("rate of %q: %w", model, err)
			return
		}
		s.Limit(model, r.N, r.Per)
	}}
}

func (r Rate) validate() error {
	switch {
	case r.N < 1 || r.N > worker.RateMax:
		return fmt.Errorf("%d is not of 1 to %d", r.N, worker.RateMax)
	case r.Per < time.Millisecond || r.Per > 24*time.Hour:
		return fmt.Errorf("per %v is not of 1ms to 24h", r.Per)
	}
	return nil
}

// Breaker stops starting generations of a provider after faults tries in a row
// failed because it could not be reached or was overloaded, for the time pause;
// then one is tried, and only if it is answered, the rest. What comes meanwhile
// is given back: another bridge may reach the provider, and the breaker fails
// nothing that has time. faults is 1 to 1,000, pause 1 s to 1 h.
func Breaker(faults int, pause time.Duration) ServeOption {
	return ServeOption{func(s *serving) {
		if faults < 1 || faults > worker.BreakerFaultsMax || pause < time.Second || pause > time.Hour {
			s.fail("breaker: %d faults and %v: want 1 to %d, and 1s to 1h", faults, pause, worker.BreakerFaultsMax)
			return
		}
		s.BreakAfter(faults, pause)
	}}
}

// Fair gives the slots of a target to sessions by turns. Up to ahead effects
// more than run are pulled, 1 to 4096, and wait: whenever a slot is free, the
// session whose turn was longest ago gets it, for the effect that it pulled
// first. So a session that asks for all it can, a batch of session.CallsMax
// calls, does not keep the others waiting for all of them, as far as ahead
// reaches: what lies beyond it at the server is not seen. It is of use for tools:
// a session has one generation open, and one step.
//
// What is pulled is kept from other bridges, also from those that have slots
// free, and from all for the time of a lease if this one is killed: use it where
// one bridge serves the target, or where ahead effects don't take long.
func Fair(ahead int) ServeOption {
	return ServeOption{func(s *serving) {
		if ahead < 1 || ahead > worker.LookAheadMax {
			s.fail("fair among %d: want 1 to %d", ahead, worker.LookAheadMax)
		}
		s.Ahead = ahead
	}}
}

// Priority says which target goes first where the targets of a process share
// [Options.Slots]: a slot that is free goes to the one with the greatest
// priority that waits for it, and among equals to who came first. It is 0
// without it, and from -100 to 100. What has begun is never stopped for
// another, so what comes may wait until the next slot is free.
//
// Nobody waits for ever: when slotsPassed slots in a row went past somebody
// with a lower priority, the next one is for whoever of those has waited for the
// longest.
func Priority(n int) ServeOption {
	return ServeOption{func(s *serving) {
		if n < -worker.PriorityMax || n > worker.PriorityMax {
			s.fail("priority %d: want %d to %d", n, -worker.PriorityMax, worker.PriorityMax)
		}
		s.Priority = n
	}}
}

// Lacks says in a sentence what a target lacks that it is served with, as a
// key: `refold bridge doctor` tells it.
func Lacks(text string) ServeOption { return ServeOption{func(s *serving) { s.Lacks = text }} }

func (b *Bridge) serve(target worker.Target, options []ServeOption) error {
	s := serving{Target: target}
	s.Concurrency = worker.ConcurrencyDefault
	s.Counts = new(worker.TargetCounts)
	for _, option := range options {
		option.apply(&s)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := subjects.ValidTarget(s.Name); err != nil {
		return fmt.Errorf("serve %s: %w", s.String(), err)
	}
	switch {
	case s.Concurrency < 1 || s.Concurrency > worker.ConcurrencyMax:
		return fmt.Errorf("serve %s: concurrency is %d: 1 to %d", s.String(), s.Concurrency, worker.ConcurrencyMax)
	case len(s.wrong) > 0:
		return fmt.Errorf("serve %s: %w", s.String(), errors.Join(s.wrong...))
	case s.Priority != 0 && b.options.Slots == 0:
		return fmt.Errorf("serve %s: priority %d: it is among targets that share slots: give Options.Slots", s.String(), s.Priority)
	case s.Pace != nil && s.Model == nil:
		return fmt.Errorf("serve %s: rates and breakers are of models", s.String())
	case !s.Served():
		return fmt.Errorf("serve %s: nothing carries it out", s.String())
	case b.ran:
		return fmt.Errorf("serve %s: the bridge runs already: give it all targets before Run", s.String())
	case slices.ContainsFunc(b.served, func(other worker.Target) bool { return other.String() == s.String() }):
		return fmt.Errorf("serve %s: it is served already", s.String())
	}
	if s.Model != nil {
		s.Paced() // what the provider asks to wait is heeded, whatever else holds it
	}
	b.served = append(b.served, s.Target)
	return nil
}
