package bridge_test

// Step hooks in whole runs: how a run ends when its hook fails, and the context
// that a choice passes to later steps and to tools.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/client"
)

// endOfDesk returns the end of a run that calls this hook, and the clerk.
func endOfDesk(t *testing.T, hook executor.PrepareStep, tool executor.Executor, config string) client.RunEnd {
	t.Helper()
	return endOfClerk(t, strings.Replace(desk, `"fallback": "fail"`, config, 1), hook, tool, silent{})
}

// endOfClerk is endOfDesk with another record and another clerk.
func endOfClerk(t *testing.T, record string, hook executor.PrepareStep, tool executor.Executor, model executor.Model) client.RunEnd {
	t.Helper()
	return endOf(t, record, func(b *bridge.Bridge) error {
		return errors.Join(b.Step("desk", hook), b.Tool("shop", tool), b.Model("clerk", model))
	}, nil)
}

// silent is a clerk that repeats its request.
type silent struct{}

func (silent) Generate(_ context.Context, r executor.Request, _ func(string)) (executor.Answer, error) {
	if r.ToolChoice == "find_order" {
		return executor.Answer{Calls: []executor.AnswerCall{{Name: "find_order", Arguments: "{}"}}}, nil
	}
	return executor.Answer{Text: fmt.Sprintf("%s %q %s %d tools", r.Model, r.System, r.Params, len(r.Tools))}, nil
}

func TestFailedStepFollowsTheFallback(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		choice executor.StepChoice
		err    error
		code   string
		detail string
	}{
		{"an error", executor.StepChoice{}, errors.New("no idea"), "hook_failed", "no idea"},
		{"a typed error", executor.StepChoice{}, &executor.Error{Code: "closed", Detail: "come tomorrow"}, "closed", "come tomorrow"},
		{"more than a context may hold", executor.StepChoice{Context: map[string]string{"x": strings.Repeat("x", 5000)}}, nil, "bad_settlement", "context: 5006 bytes, at most 4096"},
		{"a tool that is not there", executor.StepChoice{ActiveTools: []string{"nope"}}, nil, "bad_settlement", "the settlement can't be used: unknown_tool at active_tools[0]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for fallback, lifecycle := range map[string]string{"fail": "failed", "rules": "completed"} {
				hook := func(context.Context, executor.StepRequest) (executor.StepChoice, error) { return c.choice, c.err }
				end := endOfDesk(t, hook, orders{}, `"fallback": "`+fallback+`"`)
				code, detail := c.code, c.detail
				if fallback == "rules" {
					code, detail = "", ""
				}
				if string(end.Lifecycle) != lifecycle || end.Code != code || !strings.HasPrefix(end.Detail, detail) {
					t.Errorf("%s: got %s %s %s, want %s %s %s", fallback, end.Lifecycle, end.Code, end.Detail, lifecycle, code, detail)
				}
			}
		})
	}
}

// recorder is a tool that keeps the context of its calls.
type recorder chan string

func (w recorder) Execute(_ context.Context, call executor.Call) (executor.Result, error) {
	w <- string(call.Context)
	return executor.Result{Output: "found"}, nil
}

func TestStepContextReachesLaterStepsAndTools(t *testing.T) {
	t.Parallel()
	seen := make(recorder, 1)
	steps := make(chan executor.StepRequest, 3)
	hook := func(_ context.Context, s executor.StepRequest) (executor.StepChoice, error) {
		steps <- s
		if s.Step == 0 {
			return executor.StepChoice{ToolChoice: "find_order", Context: map[string]int{"order": 7}}, nil
		}
		return executor.StepChoice{Model: "small", System: "be quick", Params: map[string]float64{"temperature": 0.5}, ToolRefs: []string{}}, nil
	}
	end := endOfDesk(t, hook, seen, `"fallback": "fail"`)
	if want := `small "be quick" {"temperature":0.5} 0 tools`; end.Output == nil || end.Output.Text != want {
		t.Errorf("got %+v with %+v, want %s", end, end.Output, want)
	}
	if got := <-seen; got != `{"order":7}` {
		t.Errorf("the tool was told %s", got)
	}
	first, second := <-steps, <-steps
	if first.Context != nil || len(first.Calls) != 0 || first.Provider != "clerk" || first.Model != "any" || first.Effect != "r1t1s" {
		t.Errorf("first step: got %+v", first)
	}
	if string(second.Context) != `{"order":7}` || len(second.Last()) != 1 || second.Last()[0].Status != "succeeded" || !second.HasUsedTool("find_order") {
		t.Errorf("second step: got %+v", second)
	}
}
