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

// serving is a target, and the problems of its options.
type serving struct {
	worker.Target
	wrong []error
}

func (s *serving) fail(format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Errorf(format, args...))
}

// Concurrency is how many effects of a target run at once in this process, 1 to
// 1024; the default is 16. Further effects wait at the server, where other
// bridges of the target may pull them.
func Concurrency(n int) ServeOption {
	return ServeOption{func(s *serving) { s.Concurrency = n }}
}

// Rate is how many requests a provider accepts: N in each Per. A burst of N is
// allowed, and no more than N are sent in any Per that begins without one.
type Rate struct {
	N   int           // 1 to 1,000,000
	Per time.Duration // 1 ms to 24 h
}

// Limit limits the generations of a provider to a rate, in this process: model is
// one of the provider's models, or empty for all of them together. Each start
// counts for both. A generation that would wait for long is given back, so that
// it holds no slot and another bridge may start it. If the provider asks for a
// pause, as with HTTP's Retry-After, all of its generations wait; see
// [executor.Request.Tried].
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
		return fmt.Errorf("%d is not 1 to %d", r.N, worker.RateMax)
	case r.Per < time.Millisecond || r.Per > 24*time.Hour:
		return fmt.Errorf("per %v is not 1ms to 24h", r.Per)
	}
	return nil
}

// Breaker stops starting generations of a provider for the time pause, after
// faults tries in a row have failed because it could not be reached or was
// overloaded. Then one generation is tried; if it is answered, the others start
// again. Generations that arrive meanwhile are given back, since another bridge
// may reach the provider; the breaker fails none before its start_by. faults is 1
// to 1,000, pause 1 s to 1 h.
func Breaker(faults int, pause time.Duration) ServeOption {
	return ServeOption{func(s *serving) {
		if faults < 1 || faults > worker.BreakerFaultsMax || pause < time.Second || pause > time.Hour {
			s.fail("breaker: %d faults and %v: want 1 to %d, and 1s to 1h", faults, pause, worker.BreakerFaultsMax)
			return
		}
		s.BreakAfter(faults, pause)
	}}
}

// Fair gives the slots of a target to sessions in turn. The bridge prefetches up
// to ahead effects, 1 to 4096, which wait: a free slot goes to the session whose
// turn was longest ago, for its first prefetched effect. So a session with a full
// batch of session.CallsMax calls does not make the others wait for all of them.
// Effects beyond ahead are still at the server and have no turn. Fair is useful
// for tools: a session has only one generation and one step open.
//
// Other bridges can't execute prefetched effects, even if they have free slots,
// and if this bridge is killed, none can until the lease ends: use Fair where one
// bridge serves the target, or where ahead effects don't take long.
func Fair(ahead int) ServeOption {
	return ServeOption{func(s *serving) {
		if ahead < 1 || ahead > worker.LookAheadMax {
			s.fail("fair among %d: want 1 to %d", ahead, worker.LookAheadMax)
		}
		s.Ahead = ahead
	}}
}

// Priority orders the targets of a process that share [Options.Slots]: a free
// slot goes to the waiting effect with the greatest priority, and among equals to
// the first. It is from -100 to 100; the default is 0. A running effect is never
// stopped for another, which may have to wait until a slot is free.
//
// No effect waits for ever: after seven slots in a row that passed over a lower
// priority, the next one goes to the longest waiting of the effects passed over.
func Priority(n int) ServeOption {
	return ServeOption{func(s *serving) {
		if n < -worker.PriorityMax || n > worker.PriorityMax {
			s.fail("priority %d: want %d to %d", n, -worker.PriorityMax, worker.PriorityMax)
		}
		s.Priority = n
	}}
}

// Lacks says in a sentence what a target lacks, such as a key. `refold bridge
// doctor` shows it.
func Lacks(text string) ServeOption { return ServeOption{func(s *serving) { s.Lacks = text }} }

func (b *Bridge) serve(target worker.Target, options []ServeOption) error {
	s := serving{Target: target}
	s.Concurrency = worker.ConcurrencyDefault
	s.Counts = new(worker.TargetCounts)
	for _, option := range options {
		if option.apply != nil {
			option.apply(&s)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := subjects.ValidTarget(s.Name); err != nil {
		return fmt.Errorf("serve %s: %w", s.String(), err)
	}
	switch {
	case s.Concurrency < 1 || s.Concurrency > worker.ConcurrencyMax:
		return fmt.Errorf("serve %s: concurrency is %d: want 1 to %d", s.String(), s.Concurrency, worker.ConcurrencyMax)
	case len(s.wrong) > 0:
		return fmt.Errorf("serve %s: %w", s.String(), errors.Join(s.wrong...))
	case s.Priority != 0 && b.options.Slots == 0:
		return fmt.Errorf("serve %s: priority %d: it orders targets that share slots: set Options.Slots", s.String(), s.Priority)
	case s.Pace != nil && s.Model == nil:
		return fmt.Errorf("serve %s: only models have rates and breakers", s.String())
	case !s.Served():
		return fmt.Errorf("serve %s: it has no executor", s.String())
	case b.ran:
		return fmt.Errorf("serve %s: the bridge already runs: add all targets before Run", s.String())
	case slices.ContainsFunc(b.served, func(other worker.Target) bool { return other.String() == s.String() }):
		return fmt.Errorf("serve %s: it is already served", s.String())
	}
	if s.Model != nil {
		s.Paced() // also without rates, a pause that the provider asks for applies
	}
	b.served = append(b.served, s.Target)
	return nil
}
