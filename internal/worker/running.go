package worker

import (
	"context"
	"errors"
	"sync"
	"time"
)

// running is what an executor runs under: a context that ends when the run time
// is over, and when end is called. context.WithTimeoutCause on top of
// WithCancelCause would be the same with two contexts for each effect. This one
// makes one when it is asked for what only that can tell: who waits for nothing
// never does.
//
// It also says who goes on with the flight. The executor runs in the goroutine
// that carries the effect, which goes on when it has returned. If it has not
// within stopGrace after the context ended, another goroutine does: whoever
// leaves first.
type running struct {
	worker   *Worker
	flight   *flight
	deadline time.Time // since it begins
	overtime *time.Timer

	mu       sync.Mutex
	inner    context.Context // nil: nobody asked for it
	cancel   context.CancelCauseFunc
	cause    error         // why it ended; nil: it has not
	done     bool          // nothing runs any more
	patience *time.Timer   // since it ended
	left     bool          // somebody goes on
	gone     chan struct{} // closed when another goroutine has brought the flight to its end; nil: none has it
}

// newRunning returns what runs for the flight's run time at most. Of the flight's
// life it has the values alone: who ends that ends it too. If the executor does not
// return, the worker is told that it is abandoned.
func newRunning(w *Worker, f *flight) *running {
	r := &running{worker: w, flight: f}
	r.overtime = time.AfterFunc(f.runTime, r.overrun)
	return r
}

// begins notes when the executor is called. The lock is for who may find it
// abandoned.
func (r *running) begins(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flight.started, r.deadline = now, now.Add(r.flight.runTime)
}

func (r *running) overrun() { r.end(errRunTime) }

// whole returns the context itself.
func (r *running) whole() context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inner == nil {
		r.inner, r.cancel = context.WithCancelCause(context.WithoutCancel(r.flight.life.grace))
		if r.cause != nil || r.done {
			r.cancel(r.cause)
		}
	}
	return r.inner
}

// Deadline returns when the run time is over.
func (r *running) Deadline() (time.Time, bool) { return r.deadline, true }

// Done is that of the context.
func (r *running) Done() <-chan struct{} { return r.whole().Done() }

// Value is that of the context.
func (r *running) Value(key any) any { return r.whole().Value(key) }

// Err returns context.DeadlineExceeded if it was the run time that ended it.
func (r *running) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.inner == nil && r.cause == nil && !r.done, r.inner != nil && r.inner.Err() == nil:
		return nil
	case errors.Is(r.cause, errRunTime):
		return context.DeadlineExceeded
	}
	return context.Canceled
}

// why returns why it ended, nil if it has not.
func (r *running) why() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cause
}

// over ends the context of an executor that has returned, or never started.
func (r *running) over() {
	r.mu.Lock()
	r.done = true
	cancel := r.cancel
	r.mu.Unlock()
	if cancel != nil {
		cancel(nil)
	}
}

// end ends the context, and leaves the executor stopGrace to return.
func (r *running) end(cause error) {
	r.mu.Lock()
	first := r.cause == nil && !r.left
	if first {
		r.cause = cause
		r.patience = time.AfterFunc(stopGrace, r.abandon)
	}
	cancel := r.cancel
	r.mu.Unlock()
	if first && cancel != nil {
		cancel(cause)
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
	r.worker.abandoned(r.flight, r.cause)
}
