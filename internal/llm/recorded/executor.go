package recorded

import (
	"context"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
)

// Executor answers calls with the recorded results, and records every execution
// in a ledger.
type Executor struct {
	recording *Recording
	ledger    *Ledger
}

// NewExecutor returns the executor of a recording's tools. The caller closes
// the ledger.
func NewExecutor(r *Recording, ledger *Ledger) *Executor {
	return &Executor{recording: r, ledger: ledger}
}

var _ executor.Executor = (*Executor)(nil)

// Execute appends the execution to the ledger and returns the recorded result.
// A call that was not recorded at this position, or with other arguments, fails
// with recording_mismatch and is not in the ledger.
func (x *Executor) Execute(ctx context.Context, call executor.Call) (executor.Result, error) {
	recorded, bad := x.lookup(call)
	if bad != nil {
		return executor.Result{Error: bad}, nil
	}
	if err := ctx.Err(); err != nil {
		return executor.Result{}, err
	}
	if err := x.ledger.Note(call); err != nil {
		return executor.Result{}, err
	}
	return executor.Result{Output: recorded.Result}, nil
}

// lookup returns the recorded call that call repeats.
func (x *Executor) lookup(call executor.Call) (*Call, *executor.Error) {
	c, ok := x.recording.OfSession(call.Session)
	if !ok {
		return nil, llm.Fail(llm.CodeRecordingMismatch, "the recording has no conversation for session %s", call.Session)
	}
	at, ok := parsePosition(call.Effect)
	if !ok {
		return nil, llm.Fail(llm.CodeRecordingMismatch, "%s is not the name of a call", call.Effect)
	}
	recorded, ok := c.call(at)
	if !ok {
		return nil, llm.Fail(llm.CodeRecordingMismatch, "conversation %s has no call %s", c.ID, at)
	}
	if call.ToolName != recorded.Name {
		return nil, llm.Fail(llm.CodeRecordingMismatch, "%s: expected a call of %s, shown one of %s", at, recorded.Name, call.ToolName)
	}
	if !sameJSON(orEmptyObject([]byte(recorded.Arguments)), orEmptyObject(call.Arguments)) {
		want, got := llm.Difference(recorded.Arguments, string(call.Arguments))
		return nil, llm.Fail(llm.CodeRecordingMismatch, "%s, %s's arguments: expected %s, shown %s", at, recorded.Name, want, got)
	}
	return recorded, nil
}

// orEmptyObject returns the JSON text of arguments: empty text counts as {}.
func orEmptyObject(text []byte) []byte {
	if len(text) == 0 {
		return []byte("{}")
	}
	return text
}
