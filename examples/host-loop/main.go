// Host-loop plays an editor for a session: it holds unsaved texts, and carries
// out the calls that read and change them. No bridge could, since no other
// program has the texts.
//
// It sets a registry for its session, with tools of the kind host_loop, starts
// a run, and follows the session. When a notice reports planned calls, it reads
// the view, carries out the calls, and publishes their results. See README.md.
// how they ended. See README.md.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "host-loop:", err)
		os.Exit(1)
	}
}

// run connects, starts a run, and carries out its calls until it has ended.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("host-loop", flag.ContinueOnError)
	url := flags.String("nats", "", "address of NATS; empty: the context's, else this machine")
	user := flags.String("context", os.Getenv("NATS_CONTEXT"), "context of the nats tool, or its file: the user to connect as")
	sid := flags.String("session", "editor", "the session to drive")
	whole := flags.Bool("whole", false, "carry out each batch as a whole, and settle it at once")
	if err := flags.Parse(args); err != nil {
		return err
	}
	c, err := client.Connect(ctx, client.Options{URL: *url, Context: *user, Name: "host-loop"})
	if err != nil {
		return err
	}
	defer c.Close()
	loop := hostLoop{client: c, sid: *sid, whole: *whole, out: out, settled: map[string]bool{}, texts: map[string]string{
		"notes.txt": "Ask Ann about Tuesday.\n", "todo.txt": "- water the plants\n",
	}}
	from, err := c.LastNotice(ctx)
	if err != nil {
		return err
	}
	// Tools are configured through the door ctl.
	if err := loop.publish(ctx, session.DoorCtl, session.TypeToolRegistrySet, json.RawMessage(registry)); err != nil {
		return err
	}
	seq, err := c.Run(ctx, *sid, "Tidy up my notes.", client.RunOptions{})
	if err != nil {
		return err
	}
	// Calls that were planned before this program started are in the view, even
	// if it missed the notice.
	if err := loop.turn(ctx); err != nil {
		return err
	}
	var failed error
	following, stop := context.WithCancel(ctx)
	defer stop()
	end, err := c.End(following, *sid, seq, from+1, func(n client.Notice) {
		if n.Type != session.NoticeCallsPlanned || failed != nil {
			return
		}
		if failed = loop.turn(ctx); failed != nil {
			stop()
		}
	})
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return err
	case end.Lifecycle != session.Completed:
		return fmt.Errorf("the run %s: %s: %s", end.Lifecycle, end.Code, end.Detail)
	}
	if end.Output != nil {
		fmt.Fprintln(out, end.Output.Text)
	}
	return nil
}

// publish appends an event to the session.
func (l *hostLoop) publish(ctx context.Context, door session.Door, typ string, data any) error {
	payload, err := json.Marshal(map[string]any{"v": session.Version, "type": typ, "by": "host-loop", "data": data})
	if err != nil {
		return err
	}
	_, err = l.client.Publish(ctx, door, l.sid, payload, "")
	return err
}
