package refold_test

// An agent that is a tool of another one has its own model, text and tools, and no others.

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold"
	"github.com/refold/refold/bridge/executor"
)

// delegates is a model that asks each sub-agent that it is offered, all at once, and then
// answers with its system text, its tools, and what the sub-agents answered.
type delegates struct{}

func (delegates) Generate(ctx context.Context, r executor.Request, tell func(string)) (executor.Answer, error) {
	answer, err := repeats{}.Generate(ctx, r, tell)
	asked := false
	for _, m := range r.Messages {
		if m.Role == "tool" {
			asked = true
			answer.Text += " (" + m.Text + ")"
		}
	}
	for _, tool := range r.Tools {
		if !asked && strings.HasPrefix(tool.Name, "agent_") {
			answer.Calls = append(answer.Calls, executor.AnswerCall{ID: tool.Name, Name: tool.Name, Arguments: `{"input":"Help."}`})
		}
	}
	if len(answer.Calls) > 0 {
		answer.Text = ""
	}
	return answer, err
}

var delegating = refold.Model(refold.ModelRef{
	Provider: "delegates", Model: "delegates", Open: func() (executor.Model, error) { return delegates{}, nil },
})

func TestSubAgentsHaveTheirOwnTools(t *testing.T) {
	t.Parallel()
	ctx, rt, _ := agent(t, delegating)
	define := func(name string, o ...refold.AgentOption) *refold.Agent {
		t.Helper()
		a, err := rt.Agent(name, append([]refold.AgentOption{delegating, refold.System(name)}, o...)...)
		ok(t, err)
		return a
	}
	finder := define("finder", refold.Tools(nothing("find.it")), refold.ToolsFrom(refold.AskPerson()))
	reader := define("reader", refold.Tools(nothing("read.it")), refold.ToolsFrom(refold.SubAgent(finder, "Finds <b>papers</b>.")))
	bare := define("bare")
	lead := define("lead", refold.Tools(nothing("lead.it")), refold.ToolsFrom(
		refold.AskPerson(), refold.SubAgent(finder, "Finds <b>papers</b>."), refold.SubAgent(reader, "Reads."), refold.SubAgent(bare, "Thinks.")))
	const want = "lead lead_it ask_person agent_finder agent_reader agent_bare (finder find_it ask_person)" +
		" (reader read_it agent_finder (finder find_it ask_person)) (bare)"
	for range 2 {
		if got := ask(ctx, t, lead.Session("s")); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

// goesOn is a model that calls its sub-agent, and once more with what the result says. As the
// sub-agent it answers with all that it was asked.
type goesOn struct{}

func (goesOn) Generate(_ context.Context, r executor.Request, _ func(string)) (answer executor.Answer, _ error) {
	var asked, results []string
	for _, m := range r.Messages {
		switch m.Role {
		case "user":
			asked = append(asked, m.Text)
		case "tool":
			results = append(results, m.Text)
		}
	}
	call := func(arguments string) (executor.Answer, error) {
		return executor.Answer{Calls: []executor.AnswerCall{{ID: "c", Name: "agent_helper", Arguments: arguments}}}, nil
	}
	switch {
	case !slices.ContainsFunc(r.Tools, func(t executor.Tool) bool { return t.Name == "agent_helper" }):
		answer.Text = strings.Join(asked, ", ")
	case len(results) == 0:
		return call(`{"input":"one"}`)
	case len(results) == 1:
		_, argument, _ := strings.Cut(results[0], "call the tool with ")
		return call(`{"input":"two",` + strings.TrimSuffix(argument, ".)") + `}`)
	default:
		answer.Text = strings.Join(results, "; ")
	}
	return answer, nil
}

func TestSubAgentIsContinued(t *testing.T) {
	t.Parallel()
	model := refold.Model(refold.ModelRef{
		Provider: "goes-on", Model: "m", Open: func() (executor.Model, error) { return goesOn{}, nil },
	})
	ctx, rt, finder := agent(t, model)
	lead, err := rt.Agent("lead", model, refold.ToolsFrom(refold.SubAgent(finder, "Finds papers.", refold.KeepOpen())))
	ok(t, err)
	const want = `one

(To go on with this conversation, call the tool with "continue": "r1t1c0".); one, two

(To go on with this conversation, call the tool with "continue": "r1t2c0".)`
	if got := ask(ctx, t, lead.Session("s")); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestSubAgentsThatCannotBe(t *testing.T) {
	t.Parallel()
	_, rt, a := agent(t, delegating)
	_, _, twin := agent(t, delegating, refold.Tools(nothing("a.b")))
	for name, c := range map[string]struct {
		from []refold.ToolSource
		want string
	}{
		"nil":           {[]refold.ToolSource{refold.SubAgent(nil, "Helps.")}, "a sub-agent is nil"},
		"undescribed":   {[]refold.ToolSource{refold.SubAgent(a, "")}, "without a description"},
		"two of a name": {[]refold.ToolSource{refold.SubAgent(a, "Helps."), refold.SubAgent(twin, "Helps.")}, "two agents are called"},
	} {
		_, err := rt.Agent(strings.ReplaceAll(name, " ", "-"), delegating, refold.ToolsFrom(c.from...))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
