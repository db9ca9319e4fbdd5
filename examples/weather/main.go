// Weather serves two Go functions as tools of Refold sessions. See README.md.
//
//	weather -record | refold install -       tells sessions about the tools
//	weather                                  serves them
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/function"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "weather:", err)
		os.Exit(1)
	}
}

// run serves the tools until ctx ends, or prints an install record.
func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("weather", flag.ContinueOnError)
	url := flags.String("nats", "", "address of NATS; empty: the context's, else this machine")
	user := flags.String("context", os.Getenv("NATS_CONTEXT"), "context of the nats tool, or its file: the user to connect as")
	record := flags.Bool("record", false, "print an install record with the tools, and end")
	base := flags.Bool("base", false, "with -record: add them to the record on standard input")
	if err := flags.Parse(args); err != nil {
		return err
	}
	tools := newStation().tools()
	if *record {
		return printRecord(in, out, *base, tools)
	}
	b, err := bridge.Connect(ctx, bridge.Options{URL: *url, Context: *user, Name: "weather"})
	if err != nil {
		return err
	}
	defer b.Close()
	if err := b.Functions(tools, bridge.Concurrency(8)); err != nil {
		return err
	}
	fmt.Fprintln(out, "serving", b.Targets())
	return b.Run(ctx) // until it is stopped; it finishes running calls first
}

// printRecord prints an install record with the tools.
func printRecord(in io.Reader, out io.Writer, withBase bool, tools []*function.Function) error {
	base := []byte(`{"config": {"provider": "scripted", "model": "any"}}`)
	if withBase {
		var err error
		if base, err = io.ReadAll(in); err != nil {
			return err
		}
	}
	text, err := function.InstallRecord(base, tools...)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

// tools returns the functions of a station as tools.
func (s *station) tools() []*function.Function {
	return []*function.Function{
		function.New("weather.get", s.get,
			function.Description("The weather of a city, today or in the next days."),
			function.ReadOnly(), function.RetrySafe(), function.ParallelSafe(), function.Deadline(10*time.Second)),
		function.New("weather.warn", s.warn,
			function.Description("Sends a warning to everybody in a city."),
			function.ParallelSafe(), function.ResourceKey("weather.warnings:{city}")),
	}
}
