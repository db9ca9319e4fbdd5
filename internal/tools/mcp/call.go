package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/internal/tools/retry"
)

// Codes of failed calls.
const (
	CodeServerMissing = "server_missing"  // it can't be started or reached; nothing took effect
	CodeToolNotServed = "tool_not_served" // the config does not have its server
	CodeToolNotPinned = "tool_not_pinned" // it was never imported
	CodeToolChanged   = "tool_changed"    // it differs from what was imported
	CodeToolGone      = "tool_gone"       // the server no longer lists it
	CodeToolError     = "tool_error"      // the tool reports a failure
	CodeServerError   = "server_error"    // the server reports a failure
	CodeSecretMissing = "secret_missing"  // a secret for its server is missing; nothing was started
	CodeNeedsInput    = "needs_input"     // the server requests input from the user, whom a bridge does not have

	codeTryAgain = "try_again"
	codeUnknown  = "outcome_unknown"
)

// codeRejected is the SDK's own code for a request that failed on the way.
const codeRejected = -32005

// again says whether a call may be sent again.
type again int

const (
	never   again = iota
	renewal       // the server refuses it, perhaps since it does not know this session; nothing took effect
	refusal       // the server refuses it for now, or is not there; nothing took effect
	lost          // the answer was lost, and a repetition does no harm
)

// errIdle is the cause for ending a call that makes no progress.
var errIdle = fmt.Errorf("neither an answer nor progress came for too long: %w", context.DeadlineExceeded)

// try is one attempt of a call.
type try struct {
	session *session
	idle    time.Duration
	again   again
	broken  bool // the session accepts no more calls
	stuck   bool // the server does not answer in time
}

func (t *try) clip(text string) string { return t.session.server.clip(text, errorTextMax) }

type tryKey struct{}

// Execute carries out one call. It waits up to half a minute, within the call's
// run time, for a server that is not there.
func (s *Servers) Execute(ctx context.Context, call executor.Call) (executor.Result, error) {
	pack := call.Pack()
	if pack != "" { // the pack's name replaces the first part
		call.ToolID = idPrefix + strings.TrimPrefix(call.ToolID, pack+".")
	}
	server := s.of(call.ToolID)
	if server == nil {
		return failed(CodeToolNotServed, "no server of this bridge's config has %s; it has %s", call.ToolID, strings.Join(slices.Sorted(maps.Keys(s.servers)), ", "))
	}
	pin, ok := server.lock[call.ToolID]
	if !ok {
		return failed(CodeToolNotPinned, "%s was not imported: refold tools import mcp does it, and then the bridge is started again", call.ToolID)
	}
	with, err := server.fill(ctx, pack)
	if err != nil {
		return failed(CodeSecretMissing, "server %s, and nothing was started: %v", server.name, err)
	}
	call.Hide(server.given.Values()...)
	wait := againWaitMin
	for n := 1; ; n++ {
		result, once, err := server.once(ctx, call, pin, with)
		switch {
		case err != nil, once == never, once == renewal && n > 1, n == triesMax, !retry.Fits(ctx, time.Now().Add(wait)):
			return result, err
		}
		if err := executor.Wait(ctx, wait); err != nil {
			return result, err
		}
		wait = min(2*wait, againWaitMax)
	}
}

func (s *server) once(ctx context.Context, call executor.Call, pin Pin, with filled) (executor.Result, again, error) {
	before := ctx
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		before, cancel = context.WithDeadline(ctx, end.Add(-retry.EndMargin))
		defer cancel()
	}
	session, err := s.acquire(before, with)
	if err != nil {
		if ctx.Err() != nil {
			return executor.Result{}, never, err
		}
		result, _ := failed(CodeServerMissing, "server %s is not there, and nothing took effect: %s", s.name, err)
		result.Error.Retryable = true
		if !errors.Is(err, executor.ErrStopping) {
			err = nil
		}
		return result, never, err
	}
	t := try{session: session, idle: s.config.Idle}
	defer func() { s.release(session, t.broken, t.stuck) }()
	tool, refused, err := session.look(before, call.ToolID)
	if err != nil {
		t.stuck = errors.Is(err, context.DeadlineExceeded)
		t.broken = ctx.Err() == nil && !t.stuck
		result, _ := failed(CodeServerMissing, "server %s does not answer, and nothing took effect: %s", s.name, err)
		result.Error.Retryable = true
		return result, refusal, nil
	}
	if fault := s.objection(call, pin, tool, refused); fault != nil {
		return executor.Result{Error: fault}, never, nil
	}
	result, err := tool.Function.Execute(context.WithValue(ctx, tryKey{}, &t), call)
	return result, t.again, s.outOfError(err)
}

// objection returns why a call is not sent, or nil.
func (s *server) objection(call executor.Call, pin Pin, tool *Tool, refused string) *executor.Error {
	what := change(pin, tool, refused)
	switch {
	case what != "" && tool == nil && refused == "":
		return &executor.Error{Code: CodeToolGone, Detail: fmt.Sprintf("server %s does not list %s any more; import its tools again", s.name, pin.Tool)}
	case what != "":
		return &executor.Error{Code: CodeToolChanged, Detail: fmt.Sprintf(
			"server %s has changed %s since it was imported (%s), and it was not called: look at it, and import the tools again", s.name, pin.Tool, what)}
	case call.RetrySafe && !tool.Function.RetrySafe():
		return &executor.Error{Code: CodeToolChanged, Detail: fmt.Sprintf(
			"this session was told that %s is retry-safe, and by the bridge's config it is not: import the tools again, for sessions that open then", call.ToolID)}
	}
	return nil
}

// request sends one call, whose arguments fit the schema.
func (t *Tool) request(ctx context.Context, _ map[string]json.RawMessage) (executor.Result, error) {
	call, _ := function.CallOf(ctx)
	try, ok := ctx.Value(tryKey{}).(*try)
	if !ok {
		return executor.Result{}, errors.New("a tool of an MCP server is called through its Servers")
	}
	arguments := call.Arguments
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	params := &sdk.CallToolParams{Name: t.Name, Arguments: arguments}
	token := call.Session + "." + call.Effect + "." + call.Start
	params.SetProgressToken(token)
	if call.Traceparent != "" {
		params.Meta["traceparent"] = call.Traceparent
	}
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	m := &callProgress{}
	silent := func() {}
	if try.idle > 0 {
		timer := time.AfterFunc(try.idle, func() { cancel(errIdle) })
		defer timer.Stop()
		silent = func() { timer.Reset(try.idle) }
	}
	defer try.session.follow(token, silent)()
	answer, err := try.session.client.CallTool(context.WithValue(within, callProgressKey{}, m), params)
	sent, status, unread := m.known()
	if err == nil {
		return t.resultOf(answer, try.session.server.given.Redactor()), nil
	}
	if ctx.Err() != nil {
		return executor.Result{}, err // the bridge knows best what to do
	}
	if errors.Is(context.Cause(within), errIdle) {
		return executor.Result{}, errIdle
	}
	return t.failed(try, err, sent, status, unread)
}

// failed returns the result of a call without an answer.
func (t *Tool) failed(try *try, err error, sent bool, status int, unread bool) (executor.Result, error) {
	var protocol *jsonrpc.Error
	switch {
	case unread && !refused(status): // the session goes on
		return t.lost(try, err)
	case errors.As(err, &protocol) && !refused(status) && (protocol.Code != codeRejected || status == 200):
		code := map[int64]string{jsonrpc.CodeInvalidParams: "bad_request", jsonrpc.CodeMethodNotFound: "not_found"}[protocol.Code]
		code = cmp.Or(code, CodeServerError)
		return failed(code, "server %s answers %d: %s", t.Server, protocol.Code, try.clip(protocol.Message))
	case !sent, refused(status):
		return t.refused(try, err, status)
	}
	try.broken = true
	return t.lost(try, err)
}

// lost returns the result of a call that was sent, and whose answer is not known.
func (t *Tool) lost(try *try, err error) (executor.Result, error) {
	if t.Function.RetrySafe() {
		try.again = lost
		result, err := failed(codeTryAgain, "server %s: the answer was lost: %s", t.Server, try.clip(err.Error()))
		result.Error.Retryable = true
		return result, err
	}
	result, _ := failed(codeUnknown, "server %s: the answer was lost, and the call may have taken effect: %s", t.Server, try.clip(err.Error()))
	result.Unknown = true
	return result, nil
}

// refused returns the result of a call that did not arrive, or that the server
// refused. A server that was restarted does not know earlier sessions, and each
// server has a status of its own for that.
func (t *Tool) refused(try *try, err error, status int) (executor.Result, error) {
	var code string
	switch status {
	case 0, 404, 410:
		code, try.again, try.broken = CodeServerMissing, refusal, true
		if status != 0 {
			code, try.again = "not_found", renewal
		}
	case 401, 403:
		code = map[int]string{401: "unauthorized", 403: "forbidden"}[status]
	case 429, 503:
		code, try.again = map[int]string{429: "rate_limited", 503: "unavailable"}[status], refusal
	default:
		code, try.again, try.broken = "bad_request", renewal, true
	}
	result, _ := failed(code, "server %s did not take the call, and nothing took effect: %s", t.Server, try.clip(err.Error()))
	result.Error.Retryable = try.again == refusal
	return result, nil
}

// failed returns a failed result.
func failed(code, format string, args ...any) (executor.Result, error) {
	return executor.Result{Error: &executor.Error{Code: code, Detail: fmt.Sprintf(format, args...)}}, nil
}
