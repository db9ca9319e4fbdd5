package refold_test

import (
	"context"
	"fmt"

	"github.com/refold/refold"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/refoldtest"
)

// The front desk hands the conversation over: from the next turn on, the same run is
// carried on by another system text and other tools. No other session takes part.
func Example_handOver() {
	ctx, t := exampleContext()
	defer t.end()
	transfer := refold.Func("desk.transfer", func(_ context.Context, _ struct{}) (string, error) { return "The accountant has taken over.", nil })
	desk, err := refoldtest.Open(t).Agent("desk",
		refold.Model(refoldtest.Model(
			refoldtest.Calls(refoldtest.To("desk_transfer", struct{}{})),
			refoldtest.Calls(refoldtest.To("shop_pay", bill{5})),
			refoldtest.Say("It is paid."))),
		refold.System("You greet customers."),
		refold.Tools(transfer, refold.Func("shop.pay", pay)),
		refold.Config(refold.RunConfig{Steps: []planner.StepRule{
			{When: `used("desk.transfer")`, System: "You are the accountant.", ActiveTools: &[]string{"shop.pay"}},
			{ActiveTools: &[]string{"desk.transfer"}},
		}}))
	check(err)
	run, err := desk.Session("customer").Ask(ctx, "Pay the bill.")
	check(err)
	answer, err := run.Wait(ctx)
	check(err)
	for _, call := range answer.Calls {
		fmt.Println(call.Tool, call.Status)
	}
	fmt.Println(answer.Text)
	// Output:
	// desk_transfer succeeded
	// shop_pay succeeded
	// It is paid.
}

// A writer has each draft reviewed by a critic, who sees the draft and nothing else, until
// the critic agrees.
func Example_review() {
	ctx, t := exampleContext()
	defer t.end()
	rt := refoldtest.Open(t)
	critic, err := rt.Agent("critic",
		refold.Model(refoldtest.Model(refoldtest.Say("Too long."), refoldtest.Say("Good.")).As("critics")),
		refold.System("You say what is wrong with a text, or: Good."))
	check(err)
	review := func(draft string) refoldtest.Turn {
		return refoldtest.Calls(refoldtest.To("agent_critic", map[string]string{"input": draft}))
	}
	writer, err := rt.Agent("writer",
		refold.Model(refoldtest.Model(review("It rains, and rains, and rains."), review("It rains."), refoldtest.Say("It rains."))),
		refold.System("You write, and publish what the critic calls good."),
		refold.ToolsFrom(refold.SubAgent(critic, "Reviews a draft.")))
	check(err)
	run, err := writer.Session("paper").Ask(ctx, "Write about Bergen.")
	check(err)
	answer, err := run.Wait(ctx)
	check(err)
	for _, call := range answer.Calls {
		fmt.Println(call.Tool, call.Arguments)
	}
	fmt.Println(answer.Text)
	// Output:
	// agent_critic {"input":"It rains, and rains, and rains."}
	// agent_critic {"input":"It rains."}
	// It rains.
}
