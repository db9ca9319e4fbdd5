package bridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/client"
)

// forecasts is a program's own tool.
type forecasts struct{}

// Execute answers one call. The model is shown the output.
func (forecasts) Execute(_ context.Context, call executor.Call) (executor.Result, error) {
	var arguments struct{ City string }
	if err := json.Unmarshal(call.Arguments, &arguments); err != nil {
		return executor.Result{}, err
	}
	if arguments.City != "Bergen" {
		return executor.Result{Error: &executor.Error{Code: "unknown_city", Detail: "ask for Bergen"}}, nil
	}
	return executor.Result{Output: "rain"}, nil
}

// oracle is a program's own model. It calls the weather tool and repeats the
// result.
type oracle struct{}

// Generate returns the next turn of the conversation.
func (oracle) Generate(_ context.Context, r executor.Request, delta func(string)) (executor.Answer, error) {
	last := r.Messages[len(r.Messages)-1]
	if last.Role == "user" {
		return executor.Answer{Calls: []executor.AnswerCall{{Name: "forecast", Arguments: `{"city":"Bergen"}`}}}, nil
	}
	delta("In Bergen: ")
	delta(last.Text)
	return executor.Answer{Text: "In Bergen: " + last.Text}, nil
}

// record is the install record, with the tools and their targets.
const record = `{
  "v": 1, "rules": 1, "default_profile": "all",
  "profiles": [{"profile": "all", "tools": ["weather.forecast"]}],
  "tools": [{
    "tool_id": "weather.forecast", "tool_name": "forecast", "description": "The weather of a city.",
    "args_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "executor": {"kind": "effect", "target": "weather"}, "access": "read", "parallel_safe": true, "retry_safe": true
  }],
  "config": {"provider": "oracle", "model": "any"}
}`

// A program serves a tool and a model of its own.
func Example() {
	ctx := context.Background()
	// A server and a session-actor, as `refold dev` runs them.
	url, stopRefold := startRefold(ctx, record)
	defer stopRefold()

	b, err := bridge.Connect(ctx, bridge.Options{URL: url, Name: "weather"})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	if err := b.Tool("weather", forecasts{}, bridge.Concurrency(4)); err != nil {
		log.Fatal(err)
	}
	if err := b.Model("oracle", oracle{}); err != nil {
		log.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	stopped := make(chan error, 1)
	go func() { stopped <- b.Run(running) }()

	fmt.Println(ask(ctx, url))

	stop() // what runs is finished first
	fmt.Println("stopped:", <-stopped, "settled:", b.Stats().Settled)

	// Output:
	// In Bergen: rain
	// stopped: <nil> settled: 3
}

// ask requests a run and waits for its end.
func ask(ctx context.Context, url string) string {
	c, err := client.Connect(ctx, client.Options{URL: url})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	from, err := c.LastNotice(ctx)
	if err != nil {
		log.Fatal(err)
	}
	seq, err := c.Run(ctx, "bergen", "What's the weather?", client.RunOptions{})
	if err != nil {
		log.Fatal(err)
	}
	end, err := c.End(ctx, "bergen", seq, from+1, nil)
	if err != nil {
		log.Fatal(err)
	}
	return end.Output.Text
}
