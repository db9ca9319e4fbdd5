package worker

import (
	"context"
	"sync"
	"time"
)

// executionContext is what an executor runs under: a context that ends when the run time
// is over, and when it is cancelled with a cause.
//
// It also says who goes on with the execution. The executor runs in the goroutine
// that carries the effect, which goes on when it has returned. If it has not
// within stopGrace after the context ended, another goroutine does: whoever
// leaves first.
type executionContext struct {
	context.Context
	cancel  context.CancelCauseFunc
	release func() // of what the context holds
	unwatch func() bool

	worker    *Worker
	execution *execution

	mu       sync.Mutex
	patience *time.Timer   // since the context ended; nil: it has not
	left     bool          // somebody goes on
	gone     chan struct{} // closed when another goroutine has brought the execution to its end; nil: none has it
}

// newExecutionContext returns what runs for the execution's run time at most. Of the execution's
// life it has the values alone: who ends that ends it too. If the executor does not
// return, the worker is told that it is abandoned.
func newExecutionContext(w *Worker, f *execution) *executionContext {
	r := &executionContext{worker: w, execution: f}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(f.life.grace))
	r.cancel = cancel
	r.Context, r.release = context.WithTimeoutCause(ctx, f.runTime, errRunTime)
	r.unwatch = context.AfterFunc(r.Context, r.wait)
	return r
}

// begins notes when the executor is called. The lock is for who may find it
// abandoned.
func (r *executionContext) begins(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.execution.started = now
}

// over ends the context of an executor that has returned, or never started.
func (r *executionContext) over() {
	r.release()
	r.cancel(nil)
}

// wait leaves the executor stopGrace to return: its context has ended.
func (r *executionContext) wait() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.left {
		r.patience = time.AfterFunc(stopGrace, r.abandon)
	}
}

// leave reports whether the executor's goroutine is to go on with the execution: it
// has not been abandoned.
func (r *executionContext) leave() bool {
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
func (r *executionContext) abandon() {
	r.mu.Lock()
	if r.left {
		r.mu.Unlock()
		return
	}
	r.left, r.gone = true, make(chan struct{})
	r.mu.Unlock()
	defer close(r.gone)
	r.worker.abandoned(r.execution, context.Cause(r))
}
