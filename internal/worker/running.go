package worker

import (
	"context"
	"sync"
	"time"
)

// executionContext is an executor's context: it ends when the run time is over,
// or when it is cancelled with a cause.
//
// It also decides which goroutine finishes the execution: the executor's, when the
// executor returns, or another one, stopGrace after the context ended. The first to
// call finish or abandon does.
type executionContext struct {
	context.Context
	cancel  context.CancelCauseFunc
	release func() // frees the timer of Context
	unwatch func() bool

	worker    *Worker
	execution *execution

	mu        sync.Mutex
	stopTimer *time.Timer   // runs stopGrace from the end of the context; nil: it has not ended
	finished  bool          // a goroutine finishes the execution
	gone      chan struct{} // closed when another goroutine has finished the execution; nil: none does
}

// newExecutionContext returns a context for at most the execution's run time. It
// has the values of the grace context and does not end with it: endAll ends it.
func newExecutionContext(w *Worker, f *execution) *executionContext {
	r := &executionContext{worker: w, execution: f}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(f.life.grace))
	r.cancel = cancel
	r.Context, r.release = context.WithTimeoutCause(ctx, f.runTime, errRunTime)
	r.unwatch = context.AfterFunc(r.Context, r.wait)
	return r
}

// setStarted records when the executor is called. abandon, in another goroutine,
// reads it.
func (r *executionContext) setStarted(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.execution.started = now
}

// close ends the context of an executor that has returned, or never started.
func (r *executionContext) close() {
	r.release()
	r.cancel(nil)
}

// wait gives the executor stopGrace to return: its context has ended.
func (r *executionContext) wait() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.finished {
		r.stopTimer = time.AfterFunc(stopGrace, r.abandon)
	}
}

// finish reports whether the executor's goroutine finishes the execution, because
// it has not been abandoned.
func (r *executionContext) finish() bool {
	r.unwatch()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished {
		return false
	}
	r.finished = true
	if r.stopTimer != nil {
		r.stopTimer.Stop()
	}
	return true
}

// abandon finishes the execution without the executor.
func (r *executionContext) abandon() {
	r.mu.Lock()
	if r.finished {
		r.mu.Unlock()
		return
	}
	r.finished, r.gone = true, make(chan struct{})
	r.mu.Unlock()
	defer close(r.gone)
	r.worker.logFor(r.execution).Error("executor_does_not_return", "waited_ms", stopGrace.Milliseconds())
	r.worker.continueExecution(r.execution, &returned{abandoned: true, cause: context.Cause(r)})
}
