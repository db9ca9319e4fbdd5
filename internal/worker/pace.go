package worker

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
)

// Codes of faults of models.
const (
	codeNetwork       = "network"    // the provider, or the network to it, is down
	codeOverloaded    = "overloaded" // the same
	codeRateLimited   = "rate_limited"
	codeAuth          = "auth"
	codeBadRequest    = "bad_request"
	codeContentFilter = "content_filter"
	codeContextLength = "context_length_exceeded"
)

// Pacer decides when the generations of one provider may start, and keeps the
// provider's health. Targets without a model have none.
type Pacer struct {
	limits    map[string]*rate.Limiter // by model; "" is for all; fixed before Run
	faultsMax int                      // faults in a row that open the breaker; 0: there is none
	openFor   time.Duration

	mu     sync.Mutex
	paused time.Time  // no start before it: the provider asked for a pause
	faults int        // in a row
	open   time.Time  // zero: the breaker is closed; else it is open until then, and half open after
	trial  *execution // of a half-open breaker; nil: no trial

	since  time.Time // of the first failure since the last answer; zero: the provider is healthy
	code   string    // of the latest failure
	detail string
	tries  map[digest]time.Time // when failed generations start again
}

// Limit limits the starts of a model, or of all of them, to n in each per.
func (s *Target) Limit(model string, n int, per time.Duration) {
	p := s.Paced()
	if p.limits == nil {
		p.limits = make(map[string]*rate.Limiter)
	}
	p.limits[model] = rate.NewLimiter(rate.Every(per/time.Duration(n)), n)
}

// BreakAfter stops the starts of a provider for a while after faults in a row.
func (s *Target) BreakAfter(faults int, pause time.Duration) {
	p := s.Paced()
	p.faultsMax, p.openFor = faults, pause
}

// Paced returns the target's Pacer, which it creates if there is none.
func (s *Target) Paced() *Pacer {
	if s.Pace == nil {
		s.Pace = new(Pacer)
	}
	return s.Pace
}

// State returns the breaker's state for Stats, empty without a breaker, and the
// remaining pause that the provider asked for.
func (p *Pacer) State(now time.Time) (breaker string, pausedMS int64) {
	pausedMS = p.pausedFor(now).Milliseconds()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.faultsMax == 0:
	case p.open.IsZero():
		breaker = "closed" // all start
	case now.Before(p.open):
		breaker = "open" // none starts
	default:
		breaker = "half_open" // one trial starts
	}
	return breaker, pausedMS
}

func (p *Pacer) pauseFor(d time.Duration, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := now.Add(min(d, holdMax)); until.After(p.paused) {
		p.paused = until
	}
}

func (p *Pacer) pausedFor(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, p.paused.Sub(now))
}

// breakerWait returns for how long the breaker keeps f from starting. At 0, f may
// become the trial of a half-open breaker.
func (p *Pacer) breakerWait(f *execution, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.open.IsZero():
		return 0
	case now.Before(p.open):
		return p.open.Sub(now)
	case p.trial != nil:
		return breakerTrialDelay
	}
	p.trial = f
	return 0
}

// reservations are one start's reservations: of all models, and of its model.
type reservations [2]*rate.Reservation

// reserve reserves a start and returns the time until it.
func (p *Pacer) reserve(model string, now time.Time) (wait time.Duration, taken reservations) {
	wait = p.pausedFor(now)
	for i, limiter := range [...]*rate.Limiter{p.limits[""], p.limits[model]} {
		if limiter == nil || model == "" && i > 0 {
			continue
		}
		taken[i] = limiter.ReserveN(now, 1)
		wait = max(wait, taken[i].DelayFrom(now))
	}
	return wait, taken
}

func (taken reservations) cancel(now time.Time) {
	for _, r := range taken {
		if r != nil {
			r.CancelAt(now)
		}
	}
}

// reserveRetry reserves another try of f, after d at the earliest, and returns its
// wait.
func (p *Pacer) reserveRetry(f *execution, now time.Time, d time.Duration) time.Duration {
	if p == nil {
		return d
	}
	wait, _ := p.reserve(f.generation.Model, now)
	wait = max(wait, d)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tries == nil {
		p.tries = make(map[digest]time.Time)
	}
	p.tries[f.digest] = now.Add(wait)
	return wait
}

func (p *Pacer) forgetTry(f *execution) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.tries, f.digest)
}

// failed records a failed try. Its meaning for the provider depends on the code:
//
//	code                                          the breaker       the provider
//	network, overloaded                           counts a fault    is in trouble
//	rate_limited, auth                            closes            is in trouble
//	bad_request, content_filter, context_length…  closes            is healthy
//	deadline_exceeded, other retryable ones       -                 is in trouble
//	any other                                     -                 -
func (p *Pacer) failed(fault *executor.Error, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch fault.Code {
	case codeNetwork, codeOverloaded:
		// A start from before the breaker opened does not extend that; the trial
		// of a half-open breaker opens it again.
		if p.faults++; p.faultsMax > 0 && p.faults >= p.faultsMax && !now.Before(p.open) {
			p.open = now.Add(p.openFor)
		}
	case codeRateLimited, codeAuth:
		p.faults, p.open = 0, time.Time{}
	case codeBadRequest, codeContentFilter, codeContextLength:
		p.healthy()
		return
	case session.CodeDeadlineExceeded:
	default:
		if !fault.Retryable {
			return
		}
	}
	if p.since.IsZero() {
		p.since = now
	}
	p.code, p.detail = fault.Code, fault.Detail
}

func (p *Pacer) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.healthy()
}

// healthy closes the breaker and ends the trouble. The caller holds the lock.
func (p *Pacer) healthy() { p.faults, p.open, p.since = 0, time.Time{}, time.Time{} }

// leave removes f. If it was a trial without a result, another one may follow.
func (p *Pacer) leave(f *execution) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.tries, f.digest)
	if p.trial == f {
		p.trial = nil
	}
}

// trouble returns the provider's trouble, nil if there is none.
func (p *Pacer) trouble(now time.Time) *session.Trouble {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		return nil
	}
	t := &session.Trouble{Code: p.code, Detail: p.detail, Since: p.since.UnixMilli()}
	next := p.paused
	if p.open.After(next) {
		next = p.open
	}
	if next.Before(now) {
		next = time.Time{}
	}
	for _, at := range p.tries {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	if !next.IsZero() {
		t.Next = next.UnixMilli()
	}
	return t
}
