package bridgetest

import (
	"context"
	"encoding/json"
	"time"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/bridge/function"
)

// T is what this package needs of a test: *testing.T implements it, and so do
// tests of other frameworks.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(fn func())
	Context() context.Context
	TempDir() string
}

// CallOption is an option of Call.
type CallOption func(*calling)

type calling struct {
	ctx  context.Context
	call executor.Call
	how  bridge.Rehearsal
}

// Under sets the call's context: its end withdraws the call, as the end of its
// run does.
func Under(ctx context.Context) CallOption { return func(c *calling) { c.ctx = ctx } }

// Within limits the call. The default is the tool's Deadline, else five minutes.
func Within(d time.Duration) CallOption { return func(c *calling) { c.how.RunTime = d } }

// Secrets sets the values of the secrets that the tool needs, by name.
func Secrets(values map[string]string) CallOption {
	return func(c *calling) { c.how.Secrets = values }
}

// StoppedBy stops the bridge when ctx ends: a running call is stopped, and
// settled or given back.
func StoppedBy(ctx context.Context) CallOption { return func(c *calling) { c.how.Stopped = ctx } }

// With changes the call, such as its session, its context or its host session.
func With(change func(*executor.Call)) CallOption { return func(c *calling) { change(&c.call) } }

// Call executes one call of a tool as a bridge does, and returns its result.
// arguments are a string, which is used as the model's own text, or a value that
// encoding/json encodes as an object; nil is a call without arguments.
//
// It fails the test if the tool has problems, so that no bridge would serve it.
func Call(t T, tool *function.Function, arguments any, options ...CallOption) bridge.Rehearsed {
	t.Helper()
	if err := tool.Err(); err != nil {
		t.Fatalf("%v", err)
	}
	c := calling{ctx: t.Context(), how: bridge.Rehearsal{RunTime: tool.Deadline()}, call: executor.Call{
		Session: sessionID, Effect: "r1t1c0", ToolID: tool.ToolID(), ToolName: tool.ToolName(), Arguments: []byte(text(t, arguments)),
		IdempotencyKey: sessionID + ".r1t1c0", RetrySafe: tool.RetrySafe(),
	}}
	for _, option := range options {
		if option != nil {
			option(&c)
		}
	}
	return bridge.Rehearse(c.ctx, tool, c.call, c.how)
}

// text returns arguments as a model would write them.
func text(t T, arguments any) string {
	t.Helper()
	out, err := encode(arguments)
	if err != nil {
		t.Fatalf("arguments: %v", err)
	}
	return out
}

func encode(arguments any) (string, error) {
	switch a := arguments.(type) {
	case nil:
		return "", nil
	case string:
		return a, nil
	}
	out, err := json.Marshal(arguments)
	return string(out), err
}
