package function_test

// Go functions as tools: their arguments, their results, and tools refused before a
// bridge runs. Time is virtual.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/bridge/function"
)

type cityArguments struct {
	City string `json:"city" minLength:"1"`
	Days int    `json:"days,omitempty" maximum:"10"`
}

// answers returns a tool that returns out and err.
func answers[Out any](out Out, err error, options ...function.Option) *function.Function {
	return function.New("x.answer", func(context.Context, struct{}) (Out, error) { return out, err }, options...)
}

// callOf is a call of a tool as a session publishes it.
func callOf(f *function.Function, arguments string) executor.Call {
	return executor.Call{
		Session: "s1", Effect: "r1t1c0", ToolID: f.ToolID(), ToolName: f.ToolName(), Arguments: json.RawMessage(arguments),
		IdempotencyKey: "s1.r1t1c0", RetrySafe: f.RetrySafe(),
	}
}

func TestArgumentsAreDecodedOrRefused(t *testing.T) {
	t.Parallel()
	var got []cityArguments
	f := function.New("x.city", func(_ context.Context, in cityArguments) (string, error) {
		got = append(got, in)
		return "ok", nil
	})
	for _, c := range []struct{ arguments, shown string }{
		{`{"city":"Bergen"}`, "ok"},
		{`{"city":"Bergen","days":3.0}`, "ok"}, // an integer, as JSON Schema has it
		{`{"city":"Bergen","days":1e1}`, "ok"},
		{`{}`, `error: invalid_arguments: needs the member "city"`},
		{``, `error: invalid_arguments: needs the member "city"`},
		{`{"city":""}`, `error: invalid_arguments: /city: has at least 1 character`},
		{`{"city":1}`, `error: invalid_arguments: /city: is of type string`},
		{`{"city":null}`, `error: invalid_arguments: /city: is of type string`},
		{`{"city":"Bergen","days":11}`, `error: invalid_arguments: /days: is at most 10`},
		{`{"city":"Bergen","days":-1e30}`, `error: invalid_arguments: /days: a number -1e30 does not fit a Go int`},
		{`{"City":"Bergen"}`, `error: invalid_arguments: `},
		{`{"city":"Bergen","land":"Norway"}`, `error: invalid_arguments: there is no "land" here`},
		{`{"city":"Bergen","city":"Oslo"}`, `error: invalid_arguments: cannot be read: the key "city" stands twice`},
		{`{"city":"Bergen"} {}`, `error: invalid_arguments: cannot be read`},
		{`["Bergen"]`, `error: invalid_arguments: not a JSON object`},
		{`{"city":`, `error: invalid_arguments: cannot be read`},
	} {
		r := bridge.Rehearse(t.Context(), f, callOf(f, c.arguments), bridge.Rehearsal{})
		if !strings.HasPrefix(r.Shown, c.shown) {
			t.Errorf("%s: shown %q, want %q", c.arguments, r.Shown, c.shown)
		}
	}
	if want := []cityArguments{{City: "Bergen"}, {"Bergen", 3}, {"Bergen", 10}}; !slices.Equal(got, want) {
		t.Errorf("called with %+v, want %+v", got, want)
	}
}

func TestResultsAreShownByType(t *testing.T) {
	t.Parallel()
	png := []byte("\x89PNG\r\n\x1a\n\x00\x00")
	for name, c := range map[string]struct {
		tool  *function.Function
		shown string
		files int
	}{
		"a string":                {answers("rain\n", nil), "rain\n", 0},
		"an empty string":         {answers("", nil), "(no output)", 0},
		"invalid UTF-8":           {answers("r\xffn", nil), "r\uFFFDn", 0},
		"nothing":                 {answers(struct{}{}, nil), "(no output)", 0},
		"a struct":                {answers(struct{ A string }{"<x>"}, nil), `{"A":"<x>"}`, 0},
		"nil":                     {answers[any](nil, nil), "null", 0},
		"text in bytes":           {answers([]byte("sun"), nil), "sun", 0},
		"an image":                {answers(png, nil), "[image/png, 10 bytes, sha256-", 1},
		"bytes that are no text":  {answers([]byte("a\xff"), nil), "[application/octet-stream, 2 bytes, sha256-", 1},
		"raw JSON":                {answers(json.RawMessage(`{"a": 1}`), nil), `{"a":1}`, 0},
		"a result":                {answers(executor.Result{Output: "as it is", Error: &executor.Error{Code: "x"}}, nil), "error: x\nas it is", 0},
		"a text and a file":       {answers(executor.Result{Output: "look", Files: []executor.File{{Data: []byte{0}}}}, nil), "look\n[application/octet-stream, 1 bytes, sha256-", 1},
		"a text that is too long": {answers(strings.Repeat("é", 256<<10), nil), strings.Repeat("é", 32<<10) + "\n[442368 of 524288 bytes are left out here; the whole is sha256-", 0},
	} {
		r := bridge.Rehearse(t.Context(), c.tool, callOf(c.tool, ""), bridge.Rehearsal{})
		if !strings.HasPrefix(r.Shown, c.shown) || len(r.Files) != c.files {
			t.Errorf("%s: shown %.200q with %d files, want %.200q and %d", name, r.Shown, len(r.Files), c.shown, c.files)
		}
	}
}

// endCase is one way in which a function ends.
type endCase struct {
	name         string
	fn           func(context.Context, int) (string, error)
	options      []function.Option
	cancel       bool
	unsafe, safe string // status code retryable
	starts       int
}

var endCases = []endCase{
	{
		name: "fails", fn: func(context.Context, int) (string, error) { return "", errors.New("no disk") },
		unsafe: "failed executor_error false", safe: "failed executor_error false", starts: 1,
	},
	{
		name: "fails with a code", fn: func(context.Context, int) (string, error) {
			return "", fmt.Errorf("x: %w", &executor.Error{Code: "not_there"})
		},
		unsafe: "failed not_there false", safe: "failed not_there false", starts: 1,
	},
	{
		name: "fails for now, then not", fn: func(_ context.Context, n int) (string, error) {
			if n < 3 {
				return "", fmt.Errorf("x: %w", &function.RetryableError{errors.New("busy")})
			}
			return "ok", nil
		},
		unsafe: "succeeded  false", safe: "succeeded  false", starts: 3,
	},
	{
		name: "fails for now", fn: func(context.Context, int) (string, error) { return "", &function.RetryableError{errors.New("busy")} },
		unsafe: "failed try_again true", safe: "failed try_again true", starts: 3,
	},
	{
		name: "fails for now, with a code", fn: func(context.Context, int) (string, error) {
			return "", &function.RetryableError{&executor.Error{Code: "busy"}}
		},
		options: []function.Option{function.Tries(1)},
		unsafe:  "failed busy true", safe: "failed busy true", starts: 1,
	},
	{
		// Nothing took effect, so it is no time-out of which nobody knows.
		name: "fails for now by a time-out", fn: func(context.Context, int) (string, error) {
			return "", &function.RetryableError{context.DeadlineExceeded}
		},
		unsafe: "failed try_again true", safe: "failed try_again true", starts: 3,
	},
	{
		name: "can't tell", fn: func(context.Context, int) (string, error) {
			return "", fmt.Errorf("x: %w", &function.UnknownOutcomeError{errors.New("reset by peer")})
		},
		unsafe: "outcome_unknown outcome_unknown false", safe: "outcome_unknown outcome_unknown false", starts: 1,
	},
	{
		name: "runs into a time-out", fn: func(context.Context, int) (string, error) { return "", context.DeadlineExceeded },
		unsafe: "outcome_unknown outcome_unknown false", safe: "failed deadline_exceeded true", starts: 1,
	},
	{
		name: "panics", fn: func(context.Context, int) (string, error) { panic("boom") },
		unsafe: "outcome_unknown outcome_unknown false", safe: "failed executor_panic false", starts: 1,
	},
	{
		name: "hangs", fn: func(context.Context, int) (string, error) {
			<-time.After(24 * time.Hour)
			return "much later", nil
		},
		unsafe: "outcome_unknown outcome_unknown false", safe: "failed deadline_exceeded false", starts: 1,
	},
	{
		name: "is withdrawn", cancel: true, fn: func(ctx context.Context, _ int) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		},
		unsafe: "outcome_unknown outcome_unknown false", safe: "cancelled cancelled false", starts: 1,
	},
	{
		name: "is withdrawn between two tries", cancel: true, options: []function.Option{function.Tries(10)},
		fn:     func(context.Context, int) (string, error) { return "", &function.RetryableError{errors.New("busy")} },
		unsafe: "outcome_unknown outcome_unknown false", safe: "cancelled cancelled false", starts: 3, // at 0, 0.2 and 0.6 s
	},
}

func TestErrorsAndPanicsSettleTheCall(t *testing.T) {
	t.Parallel()
	for _, c := range endCases {
		for _, safe := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/retry_safe=%v", c.name, safe), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { c.run(t, safe) })
			})
		}
	}
}

func (c endCase) run(t *testing.T, safe bool) {
	var starts atomic.Int64
	options := slices.Clone(c.options)
	want := c.unsafe
	if safe {
		options, want = append(options, function.RetrySafe()), c.safe
	}
	f := function.New("x.end", func(ctx context.Context, _ struct{}) (string, error) {
		return c.fn(ctx, int(starts.Add(1)))
	}, options...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if c.cancel {
		time.AfterFunc(time.Second, cancel)
	}
	r := bridge.Rehearse(ctx, f, callOf(f, "{}"), bridge.Rehearsal{RunTime: time.Minute})
	if got := fmt.Sprint(r.Status, " ", r.Code, " ", r.Retryable); got != want || starts.Load() != int64(c.starts) {
		t.Errorf("got %q after %d starts, want %q after %d", got, starts.Load(), want, c.starts)
	}
	<-time.After(48 * time.Hour) // what was given up returns
	synctest.Wait()
}

func TestCallOfReturnsTheCall(t *testing.T) {
	t.Parallel()
	var got executor.Call
	f := function.New("x.call", func(ctx context.Context, _ struct{}) (string, error) {
		got, _ = function.CallOf(ctx)
		return "", nil
	})
	call := callOf(f, "{}")
	call.Context = json.RawMessage(`{"order":7}`)
	call.HostSession = &executor.HostSession{ID: "h1", Status: "ready"}
	r := bridge.Rehearse(t.Context(), f, call, bridge.Rehearsal{})
	if r.Status != string(session.CallSucceeded) || got.Session != "s1" || got.Effect != "r1t1c0" || got.IdempotencyKey != "s1.r1t1c0" ||
		string(got.Context) != `{"order":7}` || got.HostSession.ID != "h1" || len(got.Start) != 26 {
		t.Errorf("got %+v (%+v)", got, r)
	}
	if _, ok := function.CallOf(t.Context()); ok {
		t.Error("a context without a call has one")
	}
}

func TestInvalidToolsAreRefused(t *testing.T) {
	t.Parallel()
	good := answers("", nil)
	var none func(context.Context, struct{}) (string, error)
	for want, tools := range map[string][]*function.Function{
		"no tools are given": nil,
		"tools[1]: is nil":   {good, nil},
		"tools[1].tool_id: \"x.answer\" is that of tools[0] too":       {good, answers("", nil)},
		"tool x y: tool_id: is 1 to 128":                               {function.New("x y", func(context.Context, struct{}) (string, error) { return "", nil })},
		"tool x.answer: tool_name: is 1 to 64":                         {answers("", nil, function.ToolName("a b"))},
		"tool x.answer: executor.target: is a subject token":           {answers("", nil, function.Target("a.b"))},
		"tool x.answer: its result: chan int can't be encoded as JSON": {answers[chan int](nil, nil)},
		"tool x.nothing: the function is nil":                          {function.New("x.nothing", none)},
		"tool x.answer: its deadline is 1µs":                           {answers("", nil, function.Deadline(time.Microsecond))},
		"tool x.answer: deadline_ms is 86400000, it may be 0 to ":      {answers("", nil, function.Deadline(24*time.Hour))},
		"tool x.answer: it is tried 11 times: want 1 to 10":            {answers("", nil, function.Tries(11))},
		"tool x.answer: resource_key: ":                                {answers("", nil, function.ResourceKey("a:{"))},
		"tool x.answer: resource_kind: is text or path":                {answers("", nil, function.ResourceKey("a:{b}"), function.ResourceKind("file"))},
		"tool x.answer: approval: is never, always, or a condition: ":  {answers("", nil, function.Approval("args.a >"))},
		"tool x.answer: requires[1]: \"a\" is listed before":           {answers("", nil, function.Requires("a", "a"))},
	} {
		_, specs := function.Specs(tools...)
		for how, err := range map[string]error{"Specs": specs, "Functions": (&bridge.Bridge{}).Functions(tools)} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q in it", how, err, want)
			}
		}
	}
	if err := answers("", nil, function.Approval(`used("shell") && args.a > 1`)).Err(); err != nil {
		t.Errorf("an approval that names a tool of elsewhere: %v", err)
	}
}

// A tool without a target of its own gets that of the program that serves it.
func TestServedByKeepsTheOptionTarget(t *testing.T) {
	t.Parallel()
	fn := func(context.Context, struct{}) (string, error) { return "", nil }
	plain := function.New("weather.get", fn)
	if got := plain.ServedBy("helper").Target(); got != "helper" {
		t.Errorf("got %s, want helper", got)
	}
	if got := plain.Target(); got != "weather" {
		t.Errorf("the tool itself: got %s, want weather", got)
	}
	if got := function.New("weather.get", fn, function.Target("weather")).ServedBy("helper").Target(); got != "weather" {
		t.Errorf("with the option: got %s, want weather", got)
	}
}
