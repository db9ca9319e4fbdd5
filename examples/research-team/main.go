// Research-team owns a lead and three agents that it asks: a finder, a reader and a critic.
// Each call of the lead is a run of a session of its own.
//
//	research-team "Do bees sleep?"     # prints who was asked what, and the answer
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/embedded"
)

func main() {
	question := strings.Join(os.Args[1:], " ")
	if question == "" {
		question = "Do bees sleep?"
	}
	if err := run(context.Background(), "data", question, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run asks the lead, with the log in the folder dir.
func run(ctx context.Context, dir, question string, out io.Writer) error {
	rt, err := refold.Open(ctx, embedded.Dir(dir))
	if err != nil {
		return err
	}
	defer rt.Close()
	lead, err := team(rt)
	if err != nil {
		return err
	}
	study := lead.Session("study")
	asked, err := study.Ask(ctx, question)
	if err != nil {
		return err
	}
	for u, err := range asked.Updates(ctx) {
		if err != nil {
			return err
		}
		if call, ok := u.(refold.ToolEnded); ok {
			fmt.Fprintln(out, call.Call.Tool, call.Call.Arguments, call.Call.Status)
		}
	}
	answer, err := asked.Wait(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, answer.Text)
	return sessions(ctx, rt, out)
}

// team returns the lead. Its budget is that of the whole team: an agent that it asks has a
// share of what is left.
func team(rt *refold.Runtime) (*refold.Agent, error) {
	search := refold.Func("papers.search", func(_ context.Context, in struct{ Words string }) ([]string, error) {
		return []string{"Sleep in honey bees (1983)"}, nil
	}, refold.ReadOnly(), refold.RetrySafe())
	members := map[string][]refold.AgentOption{
		"finder": {refold.System("You find papers."), refold.Tools(search)},
		"reader": {refold.System("You read papers, and say what they show.")},
		"critic": {refold.System("You say what is doubtful.")},
	}
	does := map[string]string{"finder": "Finds papers about a question.", "reader": "Reads papers.", "critic": "Doubts an answer."}
	var from []refold.ToolSource
	for _, name := range []string{"finder", "reader", "critic"} {
		member, err := rt.Agent(name, append(members[name], refold.Model(model(name)))...)
		if err != nil {
			return nil, err
		}
		from = append(from, refold.SubAgent(member, does[name]))
	}
	return rt.Agent("lead",
		refold.Model(model("lead")),
		refold.System("You answer questions with the help of others."),
		refold.ToolsFrom(from...),
		refold.Config(refold.RunConfig{Budget: &refold.Budget{Tokens: 100_000}}))
}

// sessions prints the sessions of the lead's sub-agents.
func sessions(ctx context.Context, rt *refold.Runtime, out io.Writer) error {
	children := 0
	for s, err := range rt.Sessions(ctx) {
		if err != nil {
			return err
		}
		if s.Parent == "study" {
			children++
		}
	}
	_, err := fmt.Fprintf(out, "study has %d children\n", children)
	return err
}

// model is a stand-in for a real one, such as openai.Model("gpt-4.1"): it says what the
// member of the team of that name would say.
func model(name string) refold.ModelRef {
	return refold.ModelRef{Provider: "stand-in-" + name, Model: name, Open: func() (executor.Model, error) { return member(name), nil }}
}

type member string

// Generate implements executor.Model.
func (name member) Generate(_ context.Context, req executor.Request, _ func(string)) (executor.Answer, error) {
	var results []string
	question := ""
	for _, m := range req.Messages {
		switch m.Role {
		case string(session.RoleTool):
			results = append(results, m.Text)
		case string(session.RoleUser):
			question, results = m.Text, nil
		}
	}
	call := func(tool, field, text string) executor.AnswerCall {
		return executor.AnswerCall{ID: tool, Name: tool, Arguments: fmt.Sprintf(`{%q:%q}`, field, text)}
	}
	calls := func(all ...executor.AnswerCall) (executor.Answer, error) { return executor.Answer{Calls: all}, nil }
	switch {
	case name == "finder" && len(results) == 0:
		return calls(call("papers_search", "Words", question))
	case name == "finder":
		return executor.Answer{Text: "I found " + results[0]}, nil
	case name == "reader":
		return executor.Answer{Text: "They rest for hours at night."}, nil
	case name == "critic":
		return executor.Answer{Text: "One paper is little."}, nil
	case len(results) == 0:
		return calls(call("agent_finder", "input", question))
	case len(results) == 1: // these two at the same time
		return calls(call("agent_reader", "input", results[0]), call("agent_critic", "input", results[0]))
	}
	return executor.Answer{Text: "Yes. " + strings.Join(results[1:], " ")}, nil
}
