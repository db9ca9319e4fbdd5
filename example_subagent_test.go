package refold_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/refold/refold"
	"github.com/refold/refold/refoldtest"
)

// A writer whose conversation goes on: the editor asks for a change of what it wrote. The
// result of the first call names the argument for the second.
func ExampleKeepOpen() {
	ctx, t := exampleContext()
	defer t.end()
	rt := refoldtest.Open(t)
	drafts := refoldtest.Model(refoldtest.Say("It rains."), refoldtest.Say("It rains hard.")).As("writers")
	writer, err := rt.Agent("writer", refold.Model(drafts))
	check(err)
	editor, err := rt.Agent("editor",
		refold.Model(refoldtest.Model(
			refoldtest.Calls(refoldtest.To("agent_writer", map[string]string{"input": "Write about Bergen."})),
			refoldtest.Calls(refoldtest.To("agent_writer", map[string]string{"input": "Say more.", "continue": "r1t1c0"})),
			refoldtest.Say("Printed."))),
		refold.ToolsFrom(refold.SubAgent(writer, "Writes a sentence.", refold.KeepOpen())))
	check(err)
	run, err := editor.Session("paper").Ask(ctx, "Print something.")
	check(err)
	answer, err := run.Wait(ctx)
	check(err)
	for _, call := range answer.Calls {
		fmt.Println(call.Tool, call.Status)
	}
	for s, err := range rt.Sessions(ctx) {
		check(err)
		if s.Parent == "paper" {
			fmt.Println("a child with", s.Run, "runs:", s.State)
		}
	}
	// Output:
	// agent_writer succeeded
	// agent_writer succeeded
	// a child with 2 runs: completed
}

// An editor asks a writer, who has a tool of its own. The writer's run is in a session of
// its own, which closes when it ends.
func ExampleSubAgent() {
	ctx, t := exampleContext()
	defer t.end()
	rt := refoldtest.Open(t)
	count := refold.Func("text.count", func(_ context.Context, in struct{ Text string }) (int, error) { return len(in.Text), nil })
	writer, err := rt.Agent("writer",
		refold.Model(refoldtest.Model(
			refoldtest.Calls(refoldtest.To("text_count", map[string]string{"Text": "It rains."})),
			refoldtest.Say("It rains.")).As("writers")),
		refold.System("You write short sentences."),
		refold.Tools(count))
	check(err)
	editor, err := rt.Agent("editor",
		refold.Model(refoldtest.Model(
			refoldtest.Calls(refoldtest.To("agent_writer", map[string]string{"input": "Write about Bergen."})),
			refoldtest.Say("Printed."))),
		refold.ToolsFrom(refold.SubAgent(writer, "Writes a sentence.", refold.HandFacts())))
	check(err)
	run, err := editor.Session("paper").Ask(ctx, "Print something.")
	check(err)
	answer, err := run.Wait(ctx)
	check(err)
	fmt.Println(answer.Text, answer.Calls[0].Tool, answer.Calls[0].Status)
	for s, err := range rt.Sessions(ctx) {
		check(err)
		if s.Parent == "paper" {
			fmt.Println(strings.HasPrefix(s.Session, "paper-c"), s.State)
		}
	}
	// Output:
	// Printed. agent_writer succeeded
	// true closed
}
