package bridgetest

import (
	"context"
	"encoding/json"
	"time"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/bridge/function"
)

// T is what this package needs of a test: *testing.T has it, and the tests of
// other frameworks do.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(fn func())
	Context() context.Context
	TempDir() string
}

// CallOption changes how Call calls.
type CallOption func(*calling)

// calling is one use of Call.
type calling struct {
	ctx  context.Context
	call executor.Call
	how  bridge.Rehearsal
}

// Under calls under ctx: its end withdraws the call, as the end of its run does.
func Under(ctx context.Context) CallOption { return func(c *calling) { c.ctx = ctx } }

// Within is what the call may take. Without it: the tool's Deadline, else five
// minutes.
func Within(d time.Duration) CallOption { return func(c *calling) { c.how.RunTime = d } }

// Secrets are what the call is given, by name, of what the tool needs.
func Secrets(values map[string]string) CallOption {
	return func(c *calling) { c.how.Secrets = values }
}

// StoppedBy stops the bridge when ctx ends: what still runs is stopped, and
// settled or given back.
func StoppedBy(ctx context.Context) CallOption { return func(c *calling) { c.how.Stopped = ctx } }

// With changes what the call says: its session, its context, where the host
// session is.
func With(change func(*executor.Call)) CallOption { return func(c *calling) { change(&c.call) } }

// Call carries out one call of a tool, as a bridge does, and returns what it
// came to. arguments are a text, which is taken as the model wrote it, or a
// value that encoding/json makes an object of; nil is a call without any.
//
// It fails the test if the tool is one that no bridge would serve.
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
		option(&c)
	}
	return bridge.Rehearse(c.ctx, tool, c.call, c.how)
}

// text returns arguments as a model writes them.
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
