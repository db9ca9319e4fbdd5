package refold

import (
	"errors"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

// RejectedError says that the session refused a request. Its Code is one of a closed
// set, session.Rejection.
type RejectedError = client.RejectedError

// QuarantinedError says that the session stopped at a fault that would do harm: its
// events are kept, and an operator must act.
type QuarantinedError = client.QuarantinedError

// ErrStale says that a decision did not count: the call does not wait any more, or it
// waits with other arguments than those that were shown.
var ErrStale = errors.New("the call does not wait for this decision any more: look again")

// ErrNoRun says that a session has no run with a number.
var ErrNoRun = client.ErrNoRun

// RunError is the end of a run that is not completed.
type RunError struct {
	Lifecycle session.Lifecycle // failed, cancelled or interrupted
	Code      string            // for programs; may be empty
	Detail    string            // for people; may be empty
	Answer    *Answer           // what there is of it
}

func (e *RunError) Error() string {
	text := fmt.Sprintf("run %d is %s", e.Answer.Run, e.Lifecycle)
	if e.Code != "" {
		text += ": " + e.Code
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// InUseError says that another process has the directory of an embedded runtime.
type InUseError struct {
	Dir         string
	PID         int    // 0: not known yet
	ContextFile string // by which programs join that process: refold --context FILE

	Cause error // how the directory's lock tells it
}

func (e *InUseError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("%s is in use by %s: end that, or join it with the NATS context %s", e.Dir, who, e.ContextFile)
}

// Unwrap returns the cause.
func (e *InUseError) Unwrap() error { return e.Cause }

// rejectedAs reports whether the session refused a request with a code.
func rejectedAs(err error, code session.Rejection) bool {
	var refused *RejectedError
	return errors.As(err, &refused) && refused.Code == code
}
