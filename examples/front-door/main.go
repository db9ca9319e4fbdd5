// Front-door is a program that owns an agent: its model, its tool and its log. See
// README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/refold/refold"
	"github.com/refold/refold/embedded"
	"github.com/refold/refold/provider/openai"
	"github.com/refold/refold/refoldtest"
)

type place struct {
	City string `json:"city" description:"Name of the city."`
}

func weather(_ context.Context, in place) (string, error) { return "rain in " + in.City, nil }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir := flag.String("dir", "data", "directory of the log")
	name := flag.String("model", "", "model of OpenAI, with its key in the environment; empty: one that needs no key")
	flag.Parse()
	model := refoldtest.Model(refoldtest.Calls(refoldtest.To("weather_get", place{"Bergen"})), refoldtest.Say("It rains in Bergen."))
	if *name != "" {
		model = openai.Model(*name)
	}
	if err := run(ctx, *dir, model, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "front-door:", err)
		os.Exit(1)
	}
}

// run asks the agent about the weather, once, however often the program runs.
func run(ctx context.Context, dir string, model refold.ModelRef, out io.Writer) error {
	rt, err := refold.Open(ctx, embedded.Dir(dir))
	if err != nil {
		return err
	}
	defer rt.Close()
	helper, err := rt.Agent("helper", refold.Model(model), refold.System("You know the weather."),
		refold.Tools(refold.Func("weather.get", weather, refold.Description("The weather in a city."), refold.RetrySafe())))
	if err != nil {
		return err
	}
	asked, err := helper.Session("hello").Ask(ctx, "Weather in Bergen?", refold.Submission("order-7"))
	if err != nil {
		return err
	}
	for u, err := range asked.Updates(ctx) {
		switch u := u.(type) {
		case refold.ToolEnded:
			fmt.Fprintf(out, "%s%s: %s\n", u.Call.Tool, u.Call.Arguments, u.Call.Status)
		case refold.Text:
			fmt.Fprint(out, u.Text)
		}
		if err != nil {
			return err
		}
	}
	answer, err := asked.Wait(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nrun %d, %d turns\n", answer.Run, answer.Turns)
	return nil
}
