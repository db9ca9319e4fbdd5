package recorded

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/llm"
)

// Hooks run with each execution, on its goroutine; nil runs nothing. An error
// ends the execution with it. Tests hold executions with them, to kill a
// process at a known point.
type Hooks struct {
	Before func(ctx context.Context, call bridge.Call) error // nothing has happened yet
	After  func(ctx context.Context, call bridge.Call) error // the ledger has it, nobody else knows
}

// Pause returns a hook that waits for d, or until ctx is cancelled.
func Pause(d time.Duration) func(ctx context.Context, call bridge.Call) error {
	return func(ctx context.Context, _ bridge.Call) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Executor answers calls with the recorded results, and keeps account of every
// execution in a ledger.
type Executor struct {
	recording *Recording
	ledger    *Ledger
	hooks     Hooks
}

// NewExecutor returns the executor of a recording's tools. The ledger stays
// the caller's to close.
func NewExecutor(r *Recording, ledger *Ledger, hooks Hooks) *Executor {
	return &Executor{recording: r, ledger: ledger, hooks: hooks}
}

var _ bridge.Executor = (*Executor)(nil)

// Execute appends the execution to the ledger and returns the recorded result.
// A call that was not recorded at this position, or with other arguments, fails
// with recording_mismatch and leaves the ledger as it was.
func (x *Executor) Execute(ctx context.Context, call bridge.Call) (bridge.Result, error) {
	recorded, bad := x.lookup(call)
	if bad != nil {
		return bridge.Result{Error: bad}, nil
	}
	if err := run(ctx, x.hooks.Before, call); err != nil {
		return bridge.Result{}, err
	}
	err := x.ledger.Append(Entry{
		Session: call.Session, Effect: call.Effect, Tool: call.ToolName, Arguments: orEmptyObject(call.Arguments),
		IdempotencyKey: call.IdempotencyKey, Start: call.Start, RetrySafe: call.RetrySafe,
	})
	if err != nil {
		return bridge.Result{}, err
	}
	if err := run(ctx, x.hooks.After, call); err != nil {
		return bridge.Result{}, err
	}
	return bridge.Result{Output: recorded.Result}, nil
}

// run runs a hook, if there is one and it is not too late for it.
func run(ctx context.Context, hook func(context.Context, bridge.Call) error, call bridge.Call) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if hook == nil {
		return nil
	}
	return hook(ctx, call)
}

// lookup returns the recorded call that this one repeats.
func (x *Executor) lookup(call bridge.Call) (*Call, *bridge.Error) {
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
	if !sameArguments(recorded.Arguments, call.Arguments) {
		want, got := llm.Difference(recorded.Arguments, string(call.Arguments))
		return nil, llm.Fail(llm.CodeRecordingMismatch, "%s, %s's arguments: expected %s, shown %s", at, recorded.Name, want, got)
	}
	return recorded, nil
}

// sameArguments compares as JSON: the way of a call through the log need not
// keep white space. Empty text counts as {}.
func sameArguments(recorded string, given json.RawMessage) bool {
	want, err := codec.FromJSON(orEmptyObject([]byte(recorded)))
	if err != nil {
		return false
	}
	got, err := codec.FromJSON(orEmptyObject(given))
	return err == nil && bytes.Equal(want, got)
}

func orEmptyObject(text []byte) []byte {
	if len(text) == 0 {
		return []byte("{}")
	}
	return text
}
