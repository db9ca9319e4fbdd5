package worker

// A step hook: its request, the settlement of its answer, and the answers refused
// before they are published.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/subjects"
)

func stepEffect(name string) session.Step {
	now := time.Now()
	return session.Step{
		At: now.UnixMilli(), Class: session.ClassStep, Effect: name, Facts: codec.Pairs{}, Hook: "router", Model: "m", Provider: "p",
		RunMS: testRun.Milliseconds(), Session: "s1", StartBy: now.Add(testStartBy).UnixMilli(), Used: []string{}, V: 1,
	}
}

type hookCase struct {
	name    string
	prepare func(context.Context, executor.StepRequest) (executor.StepChoice, error)
	cancel  bool // the session withdraws it after a second
	stop    bool // the bridge is told to stop after a second
	late    bool // it is delivered when it may not be started any more
	want    string
}

func untilOver(ctx context.Context, _ executor.StepRequest) (executor.StepChoice, error) {
	<-ctx.Done()
	return executor.StepChoice{Model: "late"}, nil
}

func failing(err error) func(context.Context, executor.StepRequest) (executor.StepChoice, error) {
	return func(context.Context, executor.StepRequest) (executor.StepChoice, error) {
		return executor.StepChoice{}, err
	}
}

func choosing(c executor.StepChoice) func(context.Context, executor.StepRequest) (executor.StepChoice, error) {
	return func(context.Context, executor.StepRequest) (executor.StepChoice, error) { return c, nil }
}

func TestStepSettlesTheHooksAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []hookCase{
		{name: "chooses nothing", prepare: choosing(executor.StepChoice{}), want: "r1t2s ok"},
		{name: "fails", prepare: failing(errors.New("no idea")), want: "r1t2s failed hook_failed"},
		{name: "fails with a code", prepare: failing(fmt.Errorf("x: %w", &executor.Error{Code: "closed"})), want: "r1t2s failed closed"},
		{name: "fails by a time-out of its own", prepare: failing(fmt.Errorf("x: %w", context.DeadlineExceeded)), want: "r1t2s failed deadline_exceeded"},
		{name: "panics", prepare: func(context.Context, executor.StepRequest) (executor.StepChoice, error) { panic("boom") }, want: "r1t2s failed hook_failed"},
		{
			name: "ends its goroutine",
			prepare: func(context.Context, executor.StepRequest) (executor.StepChoice, error) {
				runtime.Goexit()
				return executor.StepChoice{}, nil
			},
			want: "r1t2s failed hook_failed",
		},
		{name: "panics as JSON", prepare: choosing(executor.StepChoice{Context: unencodable{}}), want: "r1t2s failed hook_failed"},
		{name: "runs too long", prepare: untilOver, want: "r1t2s failed deadline_exceeded"},
		{name: "is withdrawn", prepare: untilOver, cancel: true, want: "r1t2s failed cancelled"},
		{name: "comes too late", prepare: choosing(executor.StepChoice{}), late: true, want: "r1t2s failed deadline_exceeded"},
		{name: "does not end within the grace time", prepare: untilOver, stop: true},
		{
			name: "ends within the grace time", stop: true, want: "r1t2s ok",
			prepare: func(context.Context, executor.StepRequest) (executor.StepChoice, error) {
				<-time.After(10 * time.Second)
				return executor.StepChoice{}, nil
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, c.run)
		})
	}
}

// unencodable can't be encoded.
type unencodable struct{}

func (unencodable) MarshalJSON() ([]byte, error) { panic("unencodable") }

func (c hookCase) run(t *testing.T) {
	w, q := newWorld(), newQueue()
	p := stepEffect("r1t2s")
	if c.late {
		pass(testStartBy + time.Second)
	}
	b := startBridge(t, w, "me", q, Target{Class: session.ClassStep, Name: "router", Hook: executor.PrepareStep(c.prepare)})
	q.ask(t, session.ClassStep, "router", "s1", "r1t2s", p)
	pass(time.Second)
	if c.cancel {
		b.Cancelled("s1", []byte(`{"effects":["r1t2s"]}`))
		pass(time.Second)
	} else if !c.stop {
		pass(2 * testRun)
	}
	b.stop()
	var want []string
	if c.want != "" {
		want = []string{c.want}
	}
	w.wantSettled(t, want...)
	if acked, returned := q.counts(); acked != len(want) || acked+returned != 1 {
		t.Errorf("acked %d, given back %d; want %d settled and acked, and no more", acked, returned, len(want))
	}
	name := subjects.ClaimName{EffectName: subjects.EffectName{Class: session.ClassStep, Target: "router", Session: "s1", Effect: "r1t2s"}, N: 1}
	if got, there := w.claimOf(name); there != (c.want == "") || there && got != (Claim{By: "me", Released: true}) {
		t.Errorf("claims: got %v, want none, or that it is released if it is given back", w.claims)
	}
	if got := len(b.executions.byName); got != 0 {
		t.Errorf("flights: got %d, want 0", got)
	}
}

// asked has a hook answer one step, and returns its request and the settlement.
func asked(t *testing.T, p session.Step, c executor.StepChoice) (executor.StepRequest, session.Envelope) {
	t.Helper()
	w, q := newWorld(), newQueue()
	var shown executor.StepRequest
	b := startBridge(t, w, "me", q, Target{Class: session.ClassStep, Name: "router", Hook: executor.PrepareStep(func(ctx context.Context, s executor.StepRequest) (executor.StepChoice, error) {
		if until, ok := ctx.Deadline(); !ok || until.After(time.Now().Add(testRun)) {
			t.Errorf("deadline: got %v, %v", until, ok)
		}
		shown = s
		return c, nil
	})})
	q.ask(t, session.ClassStep, "router", "s1", p.Effect, p)
	pass(time.Second)
	b.stop()
	return shown, w.last(t)
}

func TestHookReceivesTheStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := stepEffect("r1t3s")
		p.Step = 2
		p.Calls = []session.StepCall{
			{Status: session.CallSucceeded, Step: 0, ToolID: "a.open", ToolName: "open"},
			{Status: session.CallIgnored, Code: "tool_unknown", Step: 1, ToolName: "nope"},
			{Status: session.CallFailed, Step: 1, ToolID: "a.read", ToolName: "read_it"},
			{
				Arguments: `{"a"`, ArgumentsCut: true, CallsSeq: 5, Code: "invalid_arguments", Edit: 6, Effect: "r1t2c2", Seq: 7,
				Status: session.CallFailed, Step: 1, ToolID: "a.write", ToolName: "write",
			},
		}
		p.InputSeq, p.Tools = 3, []session.StepTool{{ToolID: "a.open", ToolName: "open"}}
		p.Used = []string{"a.open", "a.read"}
		p.Roles = []string{"clerk"}
		p.Context = raw(t, `{"order":7}`)
		p.Usage = session.UsageTotal{CacheWriteTokens: 5, CachedTokens: 1, InputTokens: 2, OutputTokens: 3, ReasoningTokens: 4}
		tier, err := codec.Marshal("gold")
		if err != nil {
			t.Fatal(err)
		}
		p.Facts = codec.Pairs{{Key: "tier", Value: tier}}
		got, env := asked(t, p, executor.StepChoice{})
		calls := []executor.StepCall{
			{ToolID: "a.open", ToolName: "open", Status: "succeeded"},
			{ToolName: "nope", Status: "ignored", Code: "tool_unknown", Step: 1},
			{ToolID: "a.read", ToolName: "read_it", Status: "failed", Step: 1},
			{
				Arguments: `{"a"`, ArgumentsCut: true, CallsSeq: 5, Code: "invalid_arguments", Edit: 6, Effect: "r1t2c2", Seq: 7,
				ToolID: "a.write", ToolName: "write", Status: "failed", Step: 1,
			},
		}
		want := executor.StepRequest{
			Session: "s1", Effect: "r1t3s", Start: got.Start, Hook: "router", Step: 2, Calls: calls, Used: p.Used, InputSeq: 3, Tools: []executor.StepTool{{ToolID: "a.open", ToolName: "open"}},
			Facts: map[string]string{"tier": "gold"}, Roles: p.Roles, Context: json.RawMessage(`{"order":7}`),
			Usage: executor.Usage{InputTokens: 2, OutputTokens: 3, CachedTokens: 1, CacheWriteTokens: 5, ReasoningTokens: 4}, Provider: "p", Model: "m",
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(executor.StepRequest{}, "Log")); diff != "" || len(got.Start) != 26 {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(calls[1:], got.Last()); diff != "" {
			t.Errorf("last (-want +got):\n%s", diff)
		}
		for name, want := range map[string]bool{"a.open": true, "open": true, "read_it": true, "a.write": false, "write": false, "nope": false, "": false} {
			if got.HasUsedTool(name) != want {
				t.Errorf("HasUsedTool(%q): got %v", name, !want)
			}
		}
		if got.Fact("tier") != "gold" || got.Fact("x") != "" || !got.HasRole("clerk") || got.HasRole("boss") {
			t.Errorf("facts and roles: %+v", got)
		}
		var carried struct{ Order int }
		if err := got.DecodeContext(&carried); err != nil || carried.Order != 7 {
			t.Errorf("context: got %+v, %v", carried, err)
		}
		if err := got.DecodeContext(new(int)); err == nil || !strings.Contains(err.Error(), "r1t3s") {
			t.Errorf("context as a number: got %v", err)
		}
		if err := (executor.StepRequest{}).DecodeContext(&carried); err != nil || carried.Order != 7 {
			t.Errorf("no context: got %+v, %v", carried, err)
		}
		if b := body[session.StepPrepared](t, env); !cmp.Equal(b, session.StepPrepared{Effect: "r1t3s", Status: "ok"}) || env.By != "test/me" {
			t.Errorf("a choice of nothing: got %+v by %s", b, env.By)
		}
	})
}

func TestSettlementHoldsTheHooksChoice(t *testing.T) {
	t.Parallel()
	ref := codec.RefOf([]byte("x"))
	none := []string{}
	for _, c := range []struct {
		name   string
		choice executor.StepChoice
		want   session.StepPrepared
	}{
		{
			"everything", executor.StepChoice{ActiveTools: []string{"open", "a.read"}, ToolChoice: "open", System: "be quick", Model: "small", Params: json.RawMessage(`{"b":1,"a":2.5}`), Context: map[string]any{"order": 7}},
			session.StepPrepared{ActiveTools: &[]string{"open", "a.read"}, ToolChoice: "open", System: "be quick", Model: "small", Params: raw(t, `{"a":2.5,"b":1}`), Context: raw(t, `{"order":7}`)},
		},
		{"no tools", executor.StepChoice{ActiveTools: none}, session.StepPrepared{ActiveTools: &none}},
		{"descriptors", executor.StepChoice{ToolRefs: []string{ref.String()}}, session.StepPrepared{ToolRefs: &[]codec.Ref{ref}}},
		{"no descriptors", executor.StepChoice{ToolRefs: none}, session.StepPrepared{ToolRefs: &[]codec.Ref{}}},
		{"null", executor.StepChoice{Context: map[string]any(nil), Params: json.RawMessage(nil)}, session.StepPrepared{}},
		{"as much as may be", executor.StepChoice{System: strings.Repeat("x", planner.StepSystemBytesMax), Model: strings.Repeat("m", planner.StepModelBytesMax)}, session.StepPrepared{System: strings.Repeat("x", planner.StepSystemBytesMax), Model: strings.Repeat("m", planner.StepModelBytesMax)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, env := asked(t, stepEffect("r1t1s"), c.choice)
				c.want.Effect, c.want.Status = "r1t1s", "ok"
				if diff := cmp.Diff(c.want, body[session.StepPrepared](t, env)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A choice that no session accepts fails; the detail names the field and the limit.
func TestInvalidStepChoiceIsRefused(t *testing.T) {
	t.Parallel()
	many := slices.Repeat([]string{"x"}, planner.StepToolsMax+1)
	for _, c := range []struct {
		choice executor.StepChoice
		detail string
	}{
		{executor.StepChoice{Context: map[string]string{"x": strings.Repeat("x", planner.StepContextBytesMax)}}, "context: 4102 bytes, at most 4096"},
		{executor.StepChoice{Context: []int{1}}, "context: is a JSON object"},
		{executor.StepChoice{Context: func() {}}, "context: json: unsupported type: func()"},
		{executor.StepChoice{Params: json.RawMessage(`{`)}, "params: json: "},
		{executor.StepChoice{Params: map[string]string{"x": strings.Repeat("x", planner.StepParamsBytesMax)}}, "params: 32774 bytes, at most 32768"},
		{executor.StepChoice{Params: 7}, "params: is a JSON object"},
		{executor.StepChoice{Model: strings.Repeat("m", planner.StepModelBytesMax+1)}, "model: 129 bytes, at most 128"},
		{executor.StepChoice{System: strings.Repeat("x", planner.StepSystemBytesMax+1)}, "system: 65537 bytes, at most 65536"},
		{executor.StepChoice{System: "\xff"}, "system: is not UTF-8"},
		{executor.StepChoice{ToolChoice: strings.Repeat("x", planner.ToolIDBytesMax+1)}, "tool_choice: 129 bytes, at most 128"},
		{executor.StepChoice{ToolChoice: "\xff"}, "tool_choice: is not UTF-8"},
		{executor.StepChoice{ActiveTools: many}, "active_tools: 513 tools, at most 512"},
		{executor.StepChoice{ActiveTools: []string{"a", strings.Repeat("x", planner.ToolIDBytesMax+1)}}, "active_tools[1]: 129 bytes, at most 128"},
		{executor.StepChoice{ActiveTools: []string{"\xff"}}, "active_tools[0]: is not UTF-8"},
		{executor.StepChoice{ToolRefs: many}, "tool_refs: 513 descriptors, at most 512"},
		{executor.StepChoice{ToolRefs: []string{"x"}}, "tool_refs[0]: is no sha256-… of a descriptor"},
		{executor.StepChoice{ActiveTools: []string{}, ToolRefs: []string{}}, "tool_refs: stands beside active_tools: give one of the two"},
	} {
		t.Run(strconv.Quote(c.detail), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, env := asked(t, stepEffect("r1t1s"), c.choice)
				b := body[session.StepPrepared](t, env)
				if b.Status != "failed" || b.Error == nil || b.Error.Code != session.CodeBadSettlement || !strings.HasPrefix(b.Error.Detail, c.detail) {
					t.Errorf("got %s %+v, want %s", b.Status, b.Error, c.detail)
				}
			})
		})
	}
}

func TestLargestStepChoiceFitsAnEvent(t *testing.T) {
	t.Parallel()
	size := planner.StepToolsMax*(planner.ToolIDBytesMax+5) + planner.StepSystemBytesMax + planner.StepParamsBytesMax + planner.StepContextBytesMax
	if size+16<<10 > session.EventBytesMax {
		t.Errorf("a choice may take %d bytes", size)
	}
}
