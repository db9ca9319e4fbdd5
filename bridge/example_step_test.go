package bridge_test

import (
	"context"
	"fmt"
	"log"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
)

// desk is a record with two tools. Its runs call the hook "desk" before each
// turn, and fail if it does not answer within 20 seconds.
const desk = `{
  "v": 1, "rules": 1, "profiles": [],
  "tools": [
    {"tool_id": "shop.find_order", "tool_name": "find_order", "description": "Finds an order.", "args_schema": {"type": "object"},
     "executor": {"kind": "effect", "target": "shop"}, "access": "read", "retry_safe": true},
    {"tool_id": "shop.refund", "tool_name": "refund", "description": "Pays an order back.", "args_schema": {"type": "object"},
     "executor": {"kind": "effect", "target": "shop"}}
  ],
  "config": {"provider": "clerk", "model": "any", "step_hook": {"hook": "desk", "deadline_ms": 20000, "fallback": "fail"}}
}`

// orders finds and pays back.
type orders struct{}

// Execute implements executor.Executor.
func (orders) Execute(_ context.Context, call executor.Call) (executor.Result, error) {
	return executor.Result{Output: "done: " + call.ToolName}, nil
}

// clerk is a model that uses whatever it is offered.
type clerk struct{}

// Generate calls the first tool that it is shown.
func (clerk) Generate(_ context.Context, r executor.Request, _ func(string)) (executor.Answer, error) {
	if len(r.Tools) == 0 {
		return executor.Answer{Text: r.System}, nil
	}
	fmt.Println(r.Effect, "is offered", r.Tools[0].Name)
	return executor.Answer{Calls: []executor.AnswerCall{{Name: r.Tools[0].Name, Arguments: "{}"}}}, nil
}

// A program chooses what each step of a run offers: a refund is offered only
// after the order was found, and only once.
func ExamplePrepareStep() {
	ctx := context.Background()
	url, stopRefold := startRefold(ctx, desk)
	defer stopRefold()

	b, err := bridge.Connect(ctx, bridge.Options{URL: url, Name: "desk"})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	hook := executor.PrepareStep(func(_ context.Context, s executor.StepRequest) (executor.StepChoice, error) {
		switch {
		case s.HasUsedTool("refund"):
			return executor.StepChoice{ActiveTools: []string{}, System: fmt.Sprintf("closed in step %d", s.Step)}, nil
		case s.HasUsedTool("shop.find_order"):
			return executor.StepChoice{ActiveTools: []string{"refund"}, ToolChoice: "refund"}, nil
		}
		return executor.StepChoice{ActiveTools: []string{"find_order"}}, nil
	})
	for _, err := range []error{b.Step("desk", hook), b.Tool("shop", orders{}), b.Model("clerk", clerk{})} {
		if err != nil {
			log.Fatal(err)
		}
	}
	running, stop := context.WithCancel(ctx)
	stopped := make(chan error, 1)
	go func() { stopped <- b.Run(running) }()

	fmt.Println(ask(ctx, url))

	stop()
	fmt.Println("stopped:", <-stopped)

	// Output:
	// r1t1 is offered find_order
	// r1t2 is offered refund
	// closed in step 2
	// stopped: <nil>
}
