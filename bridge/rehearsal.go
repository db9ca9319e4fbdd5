package bridge

import (
	"context"
	"time"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/worker"
)

// Rehearsed is the result of one rehearsed call: its settlement, and what a model
// is shown.
type Rehearsed struct {
	Status      string // succeeded, failed, cancelled, outcome_unknown; empty: given back, for another bridge to run
	Code        string // unless it succeeded
	Detail      string
	Retryable   bool
	Shown       string          // what the model is shown
	Output      string          // the whole output; of a file, its line
	Files       []executor.File // as they were returned
	HostSession *executor.HostSession
}

// Rehearsal holds the options of a rehearsed call.
type Rehearsal struct {
	// RunTime limits the call; 0: five minutes, a session's default.
	RunTime time.Duration
	// Stopped, if given, ends when the bridge stops and its grace time is over.
	Stopped context.Context
	// Secrets are the call's secrets, by name.
	Secrets map[string]string
}

// Rehearse executes one call as a bridge does, without a session and without
// NATS: its run time is limited, panics are caught, and an executor that does not
// return is abandoned five seconds after its context ended. The end of ctx
// withdraws the call. Package bridgetest has the call for tests.
//
// The session's checks before a call, and claims, are left out. A Function checks
// arguments itself.
func Rehearse(ctx context.Context, e executor.Executor, call executor.Call, o Rehearsal) Rehearsed {
	return Rehearsed(worker.Rehearse(ctx, e, call, worker.Rehearsal(o)))
}
