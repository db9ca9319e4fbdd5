// Weather owns an agent with one tool.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/refold/refold"
	"github.com/refold/refold/embedded"
	"github.com/refold/refold/refoldtest"
)

type place struct{ City string }

func weather(_ context.Context, in place) (string, error) { return "rain in " + in.City, nil }

// With a key: openai.Model("gpt-4.1"), of package provider/openai.
var model = refoldtest.Model(
	refoldtest.Calls(refoldtest.To("weather_get", place{"Bergen"})),
	refoldtest.Say("It rains in Bergen."))

func main() {
	ctx := context.Background()
	rt, err := refold.Open(ctx, embedded.Dir("data"))
	check(err)
	defer rt.Close()
	helper, err := rt.Agent("helper", refold.Model(model), refold.System("You know the weather."),
		refold.Tools(refold.Func("weather.get", weather, refold.RetrySafe())))
	check(err)
	run, err := helper.Session("hello").Ask(ctx, "Weather in Bergen?", refold.Submission("order-7"))
	check(err)
	for u, err := range run.Updates(ctx) {
		check(err)
		switch u := u.(type) {
		case refold.ToolEnded:
			fmt.Println(u.Call.Tool, u.Call.Arguments, u.Call.Status)
		case refold.Text:
			fmt.Print(u.Text)
		}
	}
	answer, err := run.Wait(ctx)
	check(err)
	fmt.Printf("\nrun %d, %d turns\n", answer.Run, answer.Turns)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
