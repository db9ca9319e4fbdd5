package refold_test

// An agent's definition reaches its sessions with the next Ask, whatever they had
// before, and no run has another one.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/refoldtest"
)

// repeats is a model that answers with the system text and the names of its tools, but
// read_result, which every agent has.
type repeats struct{}

func (repeats) Generate(_ context.Context, r executor.Request, _ func(string)) (executor.Answer, error) {
	text := r.System
	for _, tool := range r.Tools {
		if tool.Name != "read_result" {
			text += " " + tool.Name
		}
	}
	return executor.Answer{Text: text}, nil
}

var repeating = refold.Model(refold.ModelRef{
	Provider: "repeats", Model: "repeats", Open: func() (executor.Model, error) { return repeats{}, nil },
})

func nothing(id string) *refold.Tool {
	return refold.Func(id, func(context.Context, struct{}) (string, error) { return "", nil })
}

// ask asks a session, and returns the answer's text.
func ask(ctx context.Context, t *testing.T, s *refold.Session, o ...refold.AskOption) string {
	t.Helper()
	run, err := s.Ask(ctx, "hi", o...)
	ok(t, err)
	answer, err := run.Wait(ctx)
	ok(t, err)
	return answer.Text
}

// An agent's sessions don't end with their context, whose size its model tells.
func TestAgentHasAContext(t *testing.T) {
	t.Parallel()
	_, rt, _ := agent(t, repeating)
	for name, c := range map[string]struct {
		tokens int64
		config refold.RunConfig
		want   string
	}{
		"unknown": {0, refold.RunConfig{}, `"context":{}`},
		"known":   {30_000, refold.RunConfig{}, `"context":{"tokens":30000}`},
		"said":    {30_000, refold.RunConfig{Context: &session.ContextConfig{Tokens: 9_000}}, `"context":{"tokens":9000}`},
	} {
		ref := refold.ModelRef{Provider: "context-" + name, Model: "m", Tokens: c.tokens, Open: func() (executor.Model, error) { return repeats{}, nil }}
		a, err := rt.Agent("context-"+name, refold.Model(ref), refold.Config(c.config))
		ok(t, err)
		if !strings.Contains(refold.ConfigOf(a), c.want) {
			t.Errorf("%s: got the config %s, want %s", name, refold.ConfigOf(a), c.want)
		}
	}
}

func TestSessionGetsTheDefinitionOfTheAgentThatAsks(t *testing.T) {
	t.Parallel()
	ctx, rt, first := agent(t, repeating, refold.System("first"), refold.Tools(nothing("a.b")))
	second, err := rt.Agent("second", repeating, refold.System("second"), refold.Tools(nothing("a.c"), nothing("a.d")))
	ok(t, err)
	const wantFirst, wantSecond = "first a_b", "second a_c a_d"
	if got := ask(ctx, t, first.Session("s"), refold.Submission("once")); got != wantFirst {
		t.Errorf("got %q, want %q", got, wantFirst)
	}
	for range 2 {
		if got := ask(ctx, t, second.Session("s")); got != wantSecond {
			t.Errorf("got %q, want %q", got, wantSecond)
		}
		if got := ask(ctx, t, first.Session("s")); got != wantFirst {
			t.Errorf("got %q, want %q", got, wantFirst)
		}
	}
	// The same submission is the same run, whoever asks, and also with a long name.
	if got := ask(ctx, t, second.Session("s"), refold.Submission("once")); got != wantFirst {
		t.Errorf("the same submission: got %q, want %q", got, wantFirst)
	}
	long := refold.Submission(strings.Repeat("x", 100))
	run, err := second.Session("s").Ask(ctx, "hi", long)
	ok(t, err)
	again, err := second.Session("s").Ask(ctx, "hi", long)
	ok(t, err)
	if run.Number() != again.Number() {
		t.Errorf("asked twice: runs %d and %d", run.Number(), again.Number())
	}
	if _, err := first.Session("s").Ask(ctx, "ho", long); !isRejected(err, session.RejectDuplicateSubmission) {
		t.Errorf("with other text: got %v, want duplicate_submission", err)
	}
	ok(t, first.Session("s").End(ctx))
	if got := ask(ctx, t, second.Session("s"), refold.Submission("once")); got != wantFirst {
		t.Errorf("in a closed session: got %q, want %q", got, wantFirst)
	}
}

// A definition may lack a tool that the one before named in its config.
func TestDefinitionReplacesOneThatNamesItsTools(t *testing.T) {
	t.Parallel()
	naming := func(id string) []refold.AgentOption {
		return []refold.AgentOption{repeating, refold.Tools(nothing(id)), refold.Config(refold.RunConfig{ActiveTools: &[]string{id}})}
	}
	ctx, rt, first := agent(t, naming("a.b")...)
	second, err := rt.Agent("second", naming("a.c")...)
	ok(t, err)
	third, err := rt.Agent("third", repeating, refold.Tools(nothing("a.d")))
	ok(t, err)
	for _, c := range []struct {
		a    *refold.Agent
		want string
	}{{first, " a_b"}, {second, " a_c"}, {third, " a_d"}, {first, " a_b"}} {
		if got := ask(ctx, t, c.a.Session("s")); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// Two programs with two definitions ask one session at the same time: each run has the
// definition of its own agent.
func TestAgentsThatAskAtTheSameTimeKeepTheirDefinitions(t *testing.T) {
	t.Parallel()
	ctx, rt, _ := agent(t, repeating)
	const each = 5
	var asking sync.WaitGroup
	var mu sync.Mutex
	runs := map[uint32]bool{}
	for _, name := range []string{"one", "two", "three"} {
		a, err := rt.Agent(name, repeating, refold.System(name))
		ok(t, err)
		asking.Go(func() {
			for i := range each {
				run, err := a.Session("s").Ask(ctx, fmt.Sprint(i))
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				answer, err := run.Wait(ctx)
				if err != nil || answer.Text != name {
					t.Errorf("run %d of %s: got %+v (%v)", run.Number(), name, answer, err)
				}
				mu.Lock()
				runs[run.Number()] = true
				mu.Unlock()
			}
		})
	}
	asking.Wait()
	if len(runs) != 3*each {
		t.Errorf("%d runs, want %d", len(runs), 3*each)
	}
}

// A hook chooses what a turn has, and Config the rest.
func TestPreparedStepAndConfig(t *testing.T) {
	t.Parallel()
	ctx, _, a := agent(t, repeating, refold.System("plain"), refold.Tools(nothing("a.b"), nothing("a.c")),
		refold.PrepareStep(func(_ context.Context, s refold.Step) (refold.StepChoice, error) {
			return refold.StepChoice{System: "chosen " + s.Fact("plan"), ActiveTools: []string{"a.c"}}, nil
		}),
		refold.Config(refold.RunConfig{TurnsMax: 1, System: "lost"}))
	s := a.Session("s")
	if got, want := ask(ctx, t, s), "chosen  a_c"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	ok(t, s.SetFacts(ctx, map[string]string{"plan": "gold"}))
	if got, want := ask(ctx, t, s), "chosen gold a_c"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDefinitionsThatAreRefused(t *testing.T) {
	t.Parallel()
	_, rt, _ := agent(t, repeating, refold.Tools(refold.Func("x.y", func(context.Context, struct{}) (string, error) { return "", nil }, function.Target("x"))))
	for name, o := range map[string][]refold.AgentOption{
		"has no model":          {},
		"has no name":           {refold.Model(refold.ModelRef{Provider: "p"})},
		"provider's name":       {refold.Model(refold.ModelRef{Provider: "a b", Model: "m"})},
		"tools[0]: is nil":      {repeating, refold.Tools(nil)},
		"tool a.: ":             {repeating, refold.Tools(nothing("a."))},
		"unknown_tool":          {repeating, refold.Config(refold.RunConfig{ToolChoice: "gone"})},
		"with As":               {refold.Model(refold.ModelRef{Provider: "repeats", Model: "m", Account: "other"})},
		"ServedElsewhere":       {refold.Model(refold.ModelRef{Provider: "p", Model: "m"})},
		"it is broken":          {refold.Model(refold.ModelRef{Provider: "p", Model: "m", Open: func() (executor.Model, error) { return nil, errors.New("it is broken") }})},
		"function.Target":       {repeating, refold.Tools(refold.Func("x.z", func(context.Context, struct{}) (string, error) { return "", nil }, function.Target("x")))},
		"step_hook.deadline_ms": {repeating, refold.Config(refold.RunConfig{StepHook: &session.StepHook{Hook: "h", DeadlineMS: -1}})},
	} {
		if _, err := rt.Agent("other", o...); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %q in it", err, name)
		}
	}
	for _, name := range []string{"", "a b", "helper"} {
		if _, err := rt.Agent(name, repeating); err == nil {
			t.Errorf("the name %q is taken", name)
		}
	}
	// Nothing is left of them.
	if _, err := rt.Agent("other", repeating, refold.Tools(nothing("a.b"))); err != nil {
		t.Error(err)
	}
}

func TestServedElsewhereOnlyAsks(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	rt := refoldtest.Open(t)
	asks, err := rt.Agent("helper", refold.Model(refold.ModelRef{Provider: "repeats", Model: "repeats"}), refold.System("hello"), refold.ServedElsewhere())
	ok(t, err)
	run, err := asks.Session("s").Ask(ctx, "hi")
	ok(t, err)
	_, err = rt.Agent("serves", repeating)
	ok(t, err)
	if answer, err := run.Wait(ctx); err != nil || answer.Text != "hello" {
		t.Errorf("got %+v (%v), want hello", answer, err)
	}
}

// The process of an agent serves the tools that every session has, such as the one that
// reads a result again.
func TestToolsOfEverySessionAreServed(t *testing.T) {
	t.Parallel()
	text := refold.Func("a.b", func(context.Context, struct{}) (string, error) { return "needle", nil })
	model := refoldtest.Model(
		refoldtest.Calls(refoldtest.To("a_b", nil)),
		refoldtest.Calls(refoldtest.To("read_result", `{"call":"r1t1c0"}`)),
		func(r executor.Request) (executor.Answer, error) {
			return executor.Answer{Text: r.Messages[len(r.Messages)-1].Text}, nil
		},
	)
	ctx, _, a := agent(t, refold.Model(model), refold.Tools(text), refold.Config(refold.RunConfig{Context: &session.ContextConfig{Tokens: 30000}}))
	if got, want := ask(ctx, t, a.Session("s")), "needle\n[bytes 0 to 6 of 6 of the result of r1t1c0: that is its end]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
