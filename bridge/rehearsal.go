package bridge

import (
	"context"
	"time"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/worker"
)

// Rehearsed is what one call came to: its settlement, and what a model is shown.
type Rehearsed struct {
	Status      string // succeeded, failed, cancelled, outcome_unknown; empty: given back, for another bridge to run
	Code        string // of what did not succeed
	Detail      string
	Retryable   bool
	Shown       string          // what the model is shown
	Output      string          // what was returned, whole; of a file, its line
	Files       []executor.File // as they were returned
	HostSession *executor.HostSession
}

// Rehearsal is how a call is rehearsed.
type Rehearsal struct {
	// RunTime is what the call may take; 0: five minutes, as in a session that
	// says nothing else.
	RunTime time.Duration
	// Stopped, if given, ends when the bridge is told to stop and its grace time
	// is over.
	Stopped context.Context
	// Secrets are what the call is given, by name.
	Secrets map[string]string
}

// Rehearse carries out one call as a bridge does, without a session and without
// NATS, and tells what it comes to: it runs for so long at most, panics are
// caught, and what is not returned in time is given up five seconds later. The
// end of ctx withdraws the call. Package bridgetest has the call for tests.
//
// What a session does before it asks, and what a claim decides, is not a part of
// it: a Function checks arguments by itself.
func Rehearse(ctx context.Context, e executor.Executor, call executor.Call, o Rehearsal) Rehearsed {
	return Rehearsed(worker.Rehearse(ctx, e, call, worker.Rehearsal(o)))
}
