package bridge

import (
	"context"
	"errors"
	"sync"
	"time"
)

// running is what an executor runs under: a context that ends when the run time
// is over, and when end is called. context.WithTimeoutCause on top of
// WithCancelCause would be the same with two contexts for each effect.
//
// It also says who goes on with the flight. The executor runs in the goroutine
// that carries the effect, which goes on when it has returned. If it has not
// within stopGrace after the context ended, another goroutine does: whoever
// leaves first.
type running struct {
	context.Context
	cancel   context.CancelCauseFunc
	deadline time.Time
	overtime *time.Timer
	giveUp   func(cause error) // goes on when the executor does not return

	mu       sync.Mutex
	cause    error         // why it ended; nil: it has not
	patience *time.Timer   // since it ended
	left     bool          // somebody goes on
	gone     chan struct{} // closed when another goroutine has brought the flight to its end; nil: none has it
}

// newRunning returns what runs for d at most. Of parent it has the values alone:
// who ends that ends it too.
func newRunning(parent context.Context, d time.Duration, giveUp func(cause error)) *running {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	r := &running{Context: inner, cancel: cancel, deadline: time.Now().Add(d), giveUp: giveUp}
	r.overtime = time.AfterFunc(d, func() { r.end(errRunTime) })
	return r
}

// Deadline returns when the run time is over.
func (r *running) Deadline() (time.Time, bool) { return r.deadline, true }

// Err returns context.DeadlineExceeded if it was the run time that ended it.
func (r *running) Err() error {
	err := r.Context.Err()
	if err != nil && errors.Is(context.Cause(r.Context), errRunTime) {
		return context.DeadlineExceeded
	}
	return err
}

// end ends the context, and leaves the executor stopGrace to return.
func (r *running) end(cause error) {
	r.mu.Lock()
	first := r.cause == nil && !r.left
	if first {
		r.cause = cause
		r.patience = time.AfterFunc(stopGrace, r.abandon)
	}
	r.mu.Unlock()
	if first {
		r.cancel(cause)
	}
}

// leave reports whether the executor's goroutine is to go on with the flight: it
// has not been abandoned.
func (r *running) leave() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left {
		return false
	}
	r.left = true
	r.overtime.Stop()
	if r.patience != nil {
		r.patience.Stop()
	}
	return true
}

// abandon goes on without the executor.
func (r *running) abandon() {
	r.mu.Lock()
	if r.left {
		r.mu.Unlock()
		return
	}
	r.left, r.gone = true, make(chan struct{})
	r.mu.Unlock()
	defer close(r.gone)
	r.giveUp(r.cause)
}
