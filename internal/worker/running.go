package worker

import (
	"context"
	"sync"
	"time"
)

// executionContext is what an executor runs under: a context that ends when the run time
// is over, and when it is cancelled with a cause.
//
// It also decides which goroutine goes on with the execution: the one that the
// executor ran in, when it returns, or another one, stopGrace after the context
// ended. The first that leaves goes on.
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

// newExecutionContext returns a context for the execution's run time at most. It has
// the values of the grace context and does not end with it: endAll ends it.
func newExecutionContext(w *Worker, f *execution) *executionContext {
	r := &executionContext{worker: w, execution: f}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(f.life.grace))
	r.cancel = cancel
	r.Context, r.release = context.WithTimeoutCause(ctx, f.runTime, errRunTime)
	r.unwatch = context.AfterFunc(r.Context, r.wait)
	return r
}

// begins notes when the executor is called. abandon reads that in another goroutine.
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
	r.worker.about(r.execution).Error("executor_does_not_return", "waited_ms", stopGrace.Milliseconds())
	r.worker.goOn(r.execution, &returned{abandoned: true, cause: context.Cause(r)})
}
