package worker

import (
	"context"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
)

const (
	adoptAtOnce         = 4       // calls of one lost worker that this process settles at once
	statusHostError     = "error" // of a host session that is lost
	codeHostSessionLost = "host_session_lost"
)

// LostTarget is the target of a worker of a fleet that is gone: its calls are
// settled, and none is executed.
func LostTarget(target string) Target {
	return Target{Class: session.ClassTool, Name: target, Executor: lostWorker{}, Concurrency: adoptAtOnce, Counts: new(TargetCounts), lost: true}
}

// lostWorker executes what a worker that is gone was asked.
type lostWorker struct{}

// Execute says that the host session is lost. What was claimed and may have
// taken effect does not come here: it is settled by its claim. A call that may
// run twice has no claim, so nobody can tell whether it ran there; its files are
// gone with the worker either way.
func (lostWorker) Execute(_ context.Context, c executor.Call) (executor.Result, error) {
	return executor.Result{Error: &executor.Error{
		Code:   codeHostSessionLost,
		Detail: "the worker that held the host session is gone, with its files, and the call was not run elsewhere. Call open_session to open another",
	}}, nil
}

// lostHost is the host session of a call that can't be executed any more.
func lostHost(c *session.ToolCall) *executor.HostSession {
	if c == nil || c.HostSession == nil {
		return nil
	}
	return &executor.HostSession{ID: c.HostSession.ID, Route: c.HostSession.Route, Status: statusHostError}
}
