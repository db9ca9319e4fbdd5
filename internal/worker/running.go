package worker

import (
	"context"
	"sync"
	"time"

	"github.com/refold/refold/bridge/executor"
)

// executionContext is an executor's context: it ends when the run time is over, or
// when it is cancelled with a cause.
//
// It also decides which goroutine finishes the execution: the executor's, when the
// executor returns, or another one, stopGrace after the context ended. The first to
// call finish or abandon does.
//
// It holds its cause itself. With a context.WithCancelCause around the time limit an
// effect allocated twice as many bytes for its contexts as for all else.
type executionContext struct {
	context.Context
	release context.CancelFunc // ends Context and frees its timer

	worker    *Worker
	execution *execution
	stopTimer *time.Timer // abandons the executor stopGrace after the context ended

	mu       sync.Mutex
	cause    error         // why cancel ended the context; nil: it did not
	finished bool          // a goroutine finishes the execution
	gone     chan struct{} // closed when another goroutine has finished the execution; nil: none does
}

// newExecutionContext returns a context for at most the execution's run time. It
// has the values of the grace context and does not end with it: endAll ends it. The
// executor's waits end when the bridge accepts no more effects.
func newExecutionContext(w *Worker, f *execution) *executionContext {
	r := &executionContext{worker: w, execution: f}
	r.Context, r.release = context.WithTimeout(executor.WithStopping(context.WithoutCancel(f.life.grace), f.life.Drain), f.runTime)
	r.stopTimer = time.AfterFunc(f.runTime+stopGrace, r.abandon)
	return r
}

// setStarted records when the executor is called. abandon, in another goroutine,
// reads it.
func (r *executionContext) setStarted(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.execution.started = now
}

// cancel ends the context and gives the executor stopGrace to return.
func (r *executionContext) cancel(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished || r.Err() != nil {
		return
	}
	r.cause = cause
	r.stopTimer.Reset(stopGrace)
	r.release()
}

// ended returns why the context has ended, nil if it has not.
func (r *executionContext) ended() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cause == nil && r.Err() != nil {
		return errRunTime
	}
	return r.cause
}

// finish reports whether the executor's goroutine finishes the execution, because
// it has not been abandoned.
func (r *executionContext) finish() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished {
		return false
	}
	r.finished = true
	r.stopTimer.Stop()
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
	r.worker.continueExecution(r.execution, &returned{abandoned: true, cause: r.ended()})
}
