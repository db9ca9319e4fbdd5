package worker

import (
	"context"
	"sync"
	"time"
)

// running is what an executor runs under: a context that ends when the run time
// is over, and when it is cancelled with a cause.
//
// It also says who goes on with the flight. The executor runs in the goroutine
// that carries the effect, which goes on when it has returned. If it has not
// within stopGrace after the context ended, another goroutine does: whoever
// leaves first.
type running struct {
	context.Context
	cancel  context.CancelCauseFunc
	release func() // of what the context holds
	unwatch func() bool

	worker *Worker
	flight *flight

	mu       sync.Mutex
	patience *time.Timer   // since the context ended; nil: it has not
	left     bool          // somebody goes on
	gone     chan struct{} // closed when another goroutine has brought the flight to its end; nil: none has it
}

// newRunning returns what runs for the flight's run time at most. Of the flight's
// life it has the values alone: who ends that ends it too. If the executor does not
// return, the worker is told that it is abandoned.
func newRunning(w *Worker, f *flight) *running {
	r := &running{worker: w, flight: f}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(f.life.grace))
	r.cancel = cancel
	r.Context, r.release = context.WithTimeoutCause(ctx, f.runTime, errRunTime)
	r.unwatch = context.AfterFunc(r.Context, r.wait)
	return r
}

// begins notes when the executor is called. The lock is for who may find it
// abandoned.
func (r *running) begins(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flight.started = now
}

// over ends the context of an executor that has returned, or never started.
func (r *running) over() {
	r.release()
	r.cancel(nil)
}

// wait leaves the executor stopGrace to return: its context has ended.
func (r *running) wait() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.left {
		r.patience = time.AfterFunc(stopGrace, r.abandon)
	}
}

// leave reports whether the executor's goroutine is to go on with the flight: it
// has not been abandoned.
func (r *running) leave() bool {
	r.unwatch()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left {
		return false
	}
	r.left = true
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
	r.worker.abandoned(r.flight, context.Cause(r))
}
