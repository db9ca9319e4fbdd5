package worker

import (
	"sync"
	"time"

	"github.com/refold/refold/bridge/executor"
)

// Codes of faults of models, which a breaker tells apart.
const (
	codeNetwork       = "network"    // the provider, or the way to it, is down
	codeOverloaded    = "overloaded" // the same
	codeRateLimited   = "rate_limited"
	codeAuth          = "auth"
	codeBadRequest    = "bad_request"
	codeContentFilter = "content_filter"
	codeContextLength = "context_length_exceeded"
)

// States of a breaker, as Stats tell them.
const (
	breakerClosed = "closed"    // all start
	breakerOpen   = "open"      // none
	breakerTrial  = "half_open" // one is tried, or the next one is
)

// breaker is one provider's. nil lets everything pass.
type breaker struct {
	faultsMax int
	pause     time.Duration

	mu     sync.Mutex
	faults int        // in a row
	until  time.Time  // zero: closed; else open until then, and half open after
	trial  *execution // that is tried; nil: none is
}

// admit reports whether f may start, or how long it is to wait.
func (b *breaker) admit(f *execution, now time.Time) (wait time.Duration, ok bool) {
	if b == nil {
		return 0, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.until.IsZero():
		return 0, true
	case now.Before(b.until):
		return b.until.Sub(now), false
	case b.trial != nil:
		return breakerTrialDelay, false
	}
	b.trial = f
	return 0, true
}

// faulted counts a fault. An open breaker's time does not begin anew by those
// that started before; the trial's, once it is half open, begins it.
func (b *breaker) faulted(fault *executor.Error, now time.Time) {
	if b == nil || fault == nil {
		return
	}
	switch fault.Code {
	case codeNetwork, codeOverloaded:
	case codeRateLimited, codeAuth, codeBadRequest, codeContentFilter, codeContextLength:
		b.answered() // if not as one likes
		return
	default:
		return // it tells nothing of the provider
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults++
	if b.faults >= b.faultsMax && !now.Before(b.until) {
		b.until = now.Add(b.pause)
	}
}

// answered closes the breaker.
func (b *breaker) answered() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults, b.until = 0, time.Time{}
}

// leave ends f, which may be the trial: if it told nothing, another is tried.
func (b *breaker) leave(f *execution) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.trial == f {
		b.trial = nil
	}
}

// openUntil returns until when nothing starts; zero: it may.
func (b *breaker) openUntil() time.Time {
	if b == nil {
		return time.Time{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.until
}

// state returns what Stats tell; empty without a breaker.
func (b *breaker) state(now time.Time) string {
	if b == nil {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.until.IsZero():
		return breakerClosed
	case now.Before(b.until):
		return breakerOpen
	}
	return breakerTrial
}
