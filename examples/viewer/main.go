// Viewer shows the text of a session's models while it is generated. See README.md.
//
//	viewer chat                shows the session chat from now on
//	viewer -from 1 chat        shows all earlier text, too
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

	"github.com/refold/refold/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "viewer:", err)
		os.Exit(1)
	}
}

// run shows a session until ctx ends, or until -runs runs have ended.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("viewer", flag.ContinueOnError)
	url := flags.String("nats", "", "address of NATS; empty: the context's, else this machine")
	user := flags.String("context", os.Getenv("NATS_CONTEXT"), "context of the nats tool, or its file: the user to connect as")
	from := flags.Uint64("from", 0, "sequence in the log to begin at; 0: now")
	runs := flags.Int("runs", 0, "end after this number of runs; 0: never")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("name one session, as in: viewer chat")
	}
	c, err := client.Connect(ctx, client.Options{URL: *url, Context: *user, Name: "viewer"})
	if err != nil {
		return err
	}
	defer c.Close()
	v, err := c.Viewer(ctx, flags.Arg(0))
	if err != nil {
		return err
	}
	defer v.Close()
	for s, err := range v.Shown(ctx, *from) {
		if errors.Is(err, context.Canceled) {
			return nil // the session continues
		}
		if err != nil {
			return err
		}
		switch s.Kind {
		case client.ShownText:
			fmt.Fprint(out, s.Text)
		case client.ShownAgain: // a program with a window would clear the turn's text instead
			fmt.Fprint(out, "\n(started again)\n")
		case client.ShownDone:
			fmt.Fprintf(out, "\n-- run %d, turn %d\n", s.Run, s.Turn)
		case client.ShownFailed:
			fmt.Fprintf(out, "\n-- run %d, turn %d failed: %s\n", s.Run, s.Turn, s.Code)
		case client.ShownEnd:
			fmt.Fprintf(out, "-- run %d %s\n", s.Run, s.Code)
			if *runs--; *runs == 0 {
				return nil
			}
		}
	}
	return nil
}
