// Schedule owns an agent whose session requests a run each minute. The schedule is in the
// session's log: it outlives every process, and a time that is missed is made up for.
//
//	schedule set      # sets the schedule, and ends
//	schedule serve    # carries out what the schedule requests, and prints each answer
//	schedule list     # prints when it fires next
//	schedule remove   # removes it
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/refold/refold"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/embedded"
)

// name is that of the schedule, in its session.
const name = "each-minute"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, "data", os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run does what the arguments say with the log in the folder dir.
func run(ctx context.Context, dir string, args []string, out io.Writer) error {
	rt, err := refold.Open(ctx, embedded.Dir(dir))
	if err != nil {
		return err
	}
	defer rt.Close()
	reporter, err := rt.Agent("reporter", refold.Model(model))
	if err != nil {
		return err
	}
	desk := reporter.Session("desk")
	switch {
	case len(args) != 1:
	case args[0] == "set":
		return desk.SetSchedule(ctx, refold.Schedule{Name: name, Cron: "* * * * *", Text: "How late is it?"})
	case args[0] == "serve":
		return serve(ctx, desk, out)
	case args[0] == "list":
		return list(ctx, desk, out)
	case args[0] == "remove":
		return desk.RemoveSchedule(ctx, name)
	}
	return errors.New("usage: schedule set | serve | list | remove")
}

// serve prints how each run ends, until ctx ends.
func serve(ctx context.Context, desk *refold.Session, out io.Writer) error {
	fmt.Fprintln(out, "A run begins within the minute after its time. Ctrl-C ends this program, and not the schedule.")
	for u, err := range desk.Updates(ctx, "") {
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if text, ok := u.(refold.Text); ok {
			fmt.Fprintln(out, text.Text)
		}
	}
	return nil
}

// list prints the session's schedules.
func list(ctx context.Context, desk *refold.Session, out io.Writer) error {
	all, err := desk.Schedules(ctx)
	if err != nil {
		return err
	}
	for _, of := range all {
		fmt.Fprintf(out, "%s (%s) fires next at %s\n", of.Name, of.Times(), time.UnixMilli(of.Due).Format(time.TimeOnly))
	}
	return nil
}

// model is a stand-in for a real one: it tells the time.
var model = refold.ModelRef{Provider: "stand-in", Model: "clock", Open: func() (executor.Model, error) { return clock{}, nil }}

type clock struct{}

// Generate implements executor.Model.
func (clock) Generate(context.Context, executor.Request, func(string)) (executor.Answer, error) {
	return executor.Answer{Text: "It is " + time.Now().Format(time.TimeOnly) + "."}, nil
}
