package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
)

// outcome is the result of an effect, from which its settlement is made.
type outcome struct {
	status    session.CallStatus    // of a generation or a step: succeeded or failed
	fault     *executor.Error       // nil only when succeeded
	output    string                // of a tool call
	files     []executor.File       // of a tool call
	host      *executor.HostSession // of a tool call; nil: unchanged
	answer    *executor.Answer      // of a generation that succeeded
	offloaded map[int]bool          // calls of answer whose arguments go to blobs, because no event can hold all
	settled   *settled              // of a safeClass: the settlement, if it succeeded
	duration  time.Duration         // of a tool call; 0: it did not run
	at        time.Time             // when it was known; for people
}

// Why the context of an executor ended.
var (
	errWithdrawn = errors.New("the session withdrew it")
	errRunTime   = errors.New("its run time is over")
	errDraining  = errors.New("this bridge is stopping")
)

// errGoexit takes the place of a panic if an executor ended its goroutine.
var errGoexit = errors.New("it called runtime.Goexit")

// Codes of settlements that the bridge itself gives.
const (
	codeExecutorError   = "executor_error"
	codeExecutorPanic   = "executor_panic"
	codeHookFailed      = "hook_failed"
	codeModelError      = "model_error"
	codeCancelled       = "cancelled"
	codeAnswerTooLarge  = "answer_too_large"
	codeManifestMissing = "manifest_missing" // of the pack whose tool is called
	codeSecretMissing   = "secret_missing"
)

// deadlineExceeded is the outcome of an effect that did not start in time.
func deadlineExceeded(e *effect) outcome {
	return failed(session.CodeDeadlineExceeded, "no bridge started it by "+e.startBy.UTC().Format(time.RFC3339))
}

// tooLate is the outcome of an effect that is late. REFOLD_FX keeps claims for
// longer than the longest deadline, but not for ever. A bridge that was cut off
// until then finds no claim of a call that may have started.
func tooLate(e *effect, now time.Time) outcome {
	if e.call == nil || e.safe() || now.UnixMilli()-e.call.At < session.DeadlineMaxMS {
		return deadlineExceeded(e)
	}
	return outcomeUnknown("it was asked so long ago that a claim of it may be forgotten: it may have taken effect", outcome{})
}

// failed is the outcome of an effect that certainly failed.
func failed(code, detail string) outcome {
	return outcome{status: session.CallFailed, fault: &executor.Error{Code: code, Detail: detail}}
}

// outcomeUnknown is the outcome of an effect that may have happened. partial
// holds its output. Two bridges with the same reason give the same bytes.
func outcomeUnknown(detail string, partial outcome) outcome {
	partial.status, partial.host = session.CallUnknown, nil
	partial.fault = &executor.Error{Code: session.CodeOutcomeUnknown, Detail: detail}
	return partial
}

// returned is what an executor returned.
type returned struct {
	result    executor.Result
	answer    executor.Answer
	settled   *settled // by an executor of a safeClass
	err       error
	cause     error // why its context had ended when it returned; nil: it had not
	panicked  any   // the value of its panic
	abandoned bool  // it did not return in time
	stopping  bool  // it only waited, and returned because this bridge stops
}

// returned decides what follows after the executor of f has returned, or was
// abandoned.
func (w *Worker) returned(f *execution, r *returned) decision {
	now := w.now()
	r.stopping = errors.Is(r.err, executor.ErrStopping) && f.life.Drain.Err() != nil
	o, again := classOps[f.name.Class].outcome(w, f, r, now)
	if again {
		return giveBack(stoppingDelay, "this bridge is stopping")
	}
	o.at = now
	return settleAs(o)
}

// toolOutcome returns the outcome of a tool call. again says that it is not
// settled: the call may run again elsewhere.
func toolOutcome(e *effect, r *returned, took time.Duration) (o outcome, again bool) {
	o = outcome{output: r.result.Output, files: r.result.Files, duration: took}
	switch {
	case r.panicked != nil && e.safe():
		return failed(codeExecutorPanic, fmt.Sprint("the executor panicked: ", r.panicked)), false
	case r.panicked != nil:
		return outcomeUnknown(fmt.Sprint("the executor panicked, the call may have taken effect: ", r.panicked), o), false
	case r.cause != nil && e.safe():
		stopped, again := r.outcome(e, "executor", codeExecutorPanic, codeExecutorError)
		if o.status, o.fault = stopped.status, stopped.fault; codeOf(o.fault) == codeCancelled {
			o.status = session.CallCancelled
		}
		return o, again
	case r.cause != nil:
		return outcomeUnknown("stopped while it ran, it may have taken effect: "+r.cause.Error(), o), false
	case r.stopping && e.safe():
		return outcome{}, true
	case r.stopping && r.result.Error == nil:
		return outcomeUnknown("this bridge stopped while the call waited, it may have taken effect", o), false
	case r.err != nil && !e.safe() && timedOut(r.err):
		return outcomeUnknown("the executor ran into a time-out, the call may have taken effect: "+r.err.Error(), o), false
	case r.err != nil && !r.stopping:
		o.status, o.fault = session.CallFailed, faultOf(r.err, codeExecutorError)
		return o, false
	case r.result.Unknown:
		o = outcomeUnknown("the executor can't tell the outcome: it may have taken effect", o)
		if r.result.Error != nil {
			o.fault = r.result.Error
		}
		o.host = r.result.HostSession
		return o, false
	}
	o.status, o.fault, o.host = session.CallSucceeded, r.result.Error, r.result.HostSession
	if o.fault != nil {
		o.status = session.CallFailed
	}
	return o, false
}

// outcome returns the outcome of an effect whose executor has no other effect. name
// is the executor's kind in texts. again says that it is not settled: it may run
// elsewhere.
func (r *returned) outcome(e *effect, name, panicCode, code string) (o outcome, again bool) {
	switch {
	case r.panicked != nil:
		return failed(panicCode, fmt.Sprintf("the %s panicked: %v", name, r.panicked)), false
	case errors.Is(r.cause, errDraining), r.cause == nil && r.stopping:
		return outcome{}, true
	case errors.Is(r.cause, errWithdrawn):
		return failed(codeCancelled, "withdrawn while it ran"), false
	case r.cause != nil:
		return failed(session.CodeDeadlineExceeded, "it ran for longer than "+e.runTime.String()), false
	case r.err != nil:
		return outcome{status: session.CallFailed, fault: faultOf(r.err, code)}, false
	}
	return outcome{status: session.CallSucceeded, settled: r.settled}, false
}

// timedOut reports whether err is a time-out that leaves the call's outcome open.
func timedOut(err error) bool {
	var e *executor.Error
	return errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &e)
}

// faultOf returns the *Error in err, or a new one with code and the text of err.
func faultOf(err error, code string) *executor.Error {
	var e *executor.Error
	if errors.As(err, &e) && e != nil {
		return e
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &executor.Error{Code: session.CodeDeadlineExceeded, Detail: err.Error(), Retryable: true}
	}
	return &executor.Error{Code: code, Detail: err.Error()}
}

func codeOf(e *executor.Error) string {
	if e == nil {
		return ""
	}
	return e.Code
}
