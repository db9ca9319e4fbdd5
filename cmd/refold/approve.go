package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/refold/refold/client"
)

// approvalsCommand lists what waits for a person.
type approvalsCommand struct {
	Session string `arg:"" optional:"" help:"The session; without one all of them, which reads every notice that is kept."`
}

// Run prints the calls that wait, each with how to decide over it.
func (a approvalsCommand) Run(ctx context.Context, s streams, conn connection) error {
	c, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	waiting, err := approvals(ctx, c, a.Session)
	if err != nil {
		return err
	}
	if len(waiting) == 0 {
		_, err := fmt.Fprintln(s.out, "no call waits for approval")
		return err
	}
	for i, one := range waiting {
		if i > 0 {
			fmt.Fprintln(s.out)
		}
		if err := show(s.out, one); err != nil {
			return err
		}
		fmt.Fprintf(s.out, "  refold approve %s %s    refold deny %s %s --reason …\n", one.Session, one.Call, one.Session, one.Call)
	}
	return nil
}

// approvals returns what waits in a session, or in all.
func approvals(ctx context.Context, c *client.Client, sid string) ([]client.Approval, error) {
	if sid != "" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, viewWithin)
		defer cancel()
	}
	return c.Approvals(ctx, sid)
}

// show prints a call as who decides over it must see it: in full.
func show(out io.Writer, a client.Approval) error {
	_, err := fmt.Fprintf(out, "%s  %s  %s (%s)  until %s\n  arguments %s\n  hash %s\n",
		a.Session, a.Call, a.ToolName, a.ToolID, moment(a.Deadline), visible(a.Arguments), a.ArgsHash)
	return err
}

// visible returns text as a terminal may be shown it: all of it, but nothing
// that moves the cursor or hides what stands there.
func visible(text string) string {
	if text == "" {
		return "{}"
	}
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		return printable(r)
	}, text)
}

// moment tells a time of the session's clock.
func moment(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05Z") }

// decision is what approve and deny have in common.
type decision struct {
	Session string `arg:"" help:"The session."`
	Call    string `arg:"" help:"The call, as in r1t2c0: refold approvals lists them."`
	Hash    string `placeholder:"HASH" help:"Decide only if the call still waits with the arguments of this hash, or of its beginning. Default: those that it waits with now, which are shown."`
	Reason  string `placeholder:"TEXT" help:"Why; who is denied a call, the model, is shown it."`
}

// approveCommand lets a call run.
type approveCommand struct {
	decision
	Args string `placeholder:"JSON" help:"What to run it with instead of the arguments that the model wrote. They are checked as those were, and the model is told."`
}

// Run shows the call, and decides.
func (a approveCommand) Run(ctx context.Context, s streams, conn connection) error {
	return a.decide(ctx, s, conn, "approved", func(c *client.Client, one client.Approval) (uint64, error) {
		return c.Approve(ctx, one, client.DecideOptions{Reason: a.Reason, Arguments: a.Args})
	})
}

// denyCommand refuses a call.
type denyCommand struct{ decision }

// Run shows the call, and decides.
func (d denyCommand) Run(ctx context.Context, s streams, conn connection) error {
	return d.decide(ctx, s, conn, "denied", func(c *client.Client, one client.Approval) (uint64, error) {
		return c.Deny(ctx, one, client.DecideOptions{Reason: d.Reason})
	})
}

// hashLeast is how much of a hash tells arguments apart.
const hashLeast = 8

// decide shows the call that waits, publishes the decision over what it showed,
// and tells what came of it.
func (d decision) decide(ctx context.Context, s streams, conn connection, done string, publish func(*client.Client, client.Approval) (uint64, error)) error {
	if d.Hash != "" && len(d.Hash) < hashLeast {
		return &statusError{statusUsage, fmt.Sprintf("--hash: at least the first %d digits", hashLeast)}
	}
	c, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	waiting, err := approvals(ctx, c, d.Session)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(waiting, func(a client.Approval) bool { return a.Call == d.Call })
	if i < 0 {
		var calls []string
		for _, a := range waiting {
			calls = append(calls, a.Call)
		}
		if len(calls) == 0 {
			calls = []string{"no call"}
		}
		return fmt.Errorf("%s of session %s does not wait for approval: it was decided, has ended, or never was; %s waits", d.Call, d.Session, strings.Join(calls, ", "))
	}
	one := waiting[i]
	if err := show(s.out, one); err != nil {
		return err
	}
	if !strings.HasPrefix(one.ArgsHash, strings.ToLower(d.Hash)) {
		return fmt.Errorf("%s waits with other arguments than those of hash %s: look at them above, and decide over hash %s", d.Call, d.Hash, one.ArgsHash)
	}
	v, err := taken(ctx, c, d.Session, func(c *client.Client) (uint64, error) { return publish(c, one) })
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.out, "%s\n%s\n", done, standing(&v))
	return err
}
