package bridgetest

import (
	"context"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/bridge/function"
)

// Start is one start of a tool's function: an entry of the ledger. A call that was
// started again has several, with the same Key.
type Start struct {
	Effect    string // r1t1c0
	Tool      string // its tool_id
	Key       string // idempotency key, the same for all starts of a call
	Arguments string
	Start     string // ULID of this start
	Bridge    int    // number of the bridge: 1, and one more after each kill
	Returned  bool   // the function returned
	Heard     bool   // it returned before its bridge was killed
}

// Ledger returns every start so far, in order.
func (s *Session) Ledger() []Start {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Start, len(s.ledger))
	for i, start := range s.ledger {
		all[i] = *start
	}
	return all
}

// Starts returns how often a call was started.
func (s *Session) Starts(effect string) int {
	n := 0
	for _, start := range s.Ledger() {
		if start.Effect == effect {
			n++
		}
	}
	return n
}

// recorder executes the tools of one target in one process, and keeps the ledger.
type recorder struct {
	session *Session
	process *process
	tools   map[string]*function.Function
}

// Execute executes one call.
func (r *recorder) Execute(ctx context.Context, call executor.Call) (executor.Result, error) {
	tool := r.tools[call.ToolID]
	if tool == nil {
		return executor.Result{}, &executor.Error{Code: "tool_not_served", Detail: "Options.Tools has no tool " + call.ToolID}
	}
	s := r.session
	start := &Start{
		Effect: call.Effect, Tool: call.ToolID, Key: call.IdempotencyKey, Arguments: string(call.Arguments), Start: call.Start, Bridge: r.process.n,
	}
	s.mu.Lock()
	s.ledger = append(s.ledger, start)
	s.mu.Unlock()
	result, err := tool.Execute(context.WithValue(ctx, processKey{}, r.process), call)
	s.mu.Lock()
	start.Returned, start.Heard = true, s.process == r.process
	s.mu.Unlock()
	return result, err
}
