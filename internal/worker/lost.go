package worker

import (
	"context"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
)

const (
	adoptAtOnce         = 4       // calls of one lost worker that this process settles concurrently
	statusHostError     = "error" // of a host session that is lost
	codeHostSessionLost = "host_session_lost"
)

// LostTarget is the target of a fleet's worker that is gone: this process settles
// its calls and executes none.
func LostTarget(target string) Target {
	return Target{Class: session.ClassTool, Name: target, Executor: lostWorker{}, Concurrency: adoptAtOnce, Counts: new(TargetCounts), lost: true}
}

// lostWorker stands in for a worker that is gone.
type lostWorker struct{}

// Execute reports that the host session is lost. A claimed call, which may have
// taken effect, is settled by its claim and does not get here. A retry-safe call
// has no claim, so it may have run there; its files are gone with the worker
// either way.
func (lostWorker) Execute(_ context.Context, c executor.Call) (executor.Result, error) {
	return executor.Result{Error: &executor.Error{
		Code:   codeHostSessionLost,
		Detail: "the worker that held the host session is gone, with its files, and the call was not run elsewhere. Call open_session to open another",
	}}, nil
}

// lostHost returns the host session of a call whose worker is gone.
func lostHost(c *session.ToolCall) *executor.HostSession {
	if c == nil || c.HostSession == nil {
		return nil
	}
	return &executor.HostSession{ID: c.HostSession.ID, Route: c.HostSession.Route, Status: statusHostError}
}
