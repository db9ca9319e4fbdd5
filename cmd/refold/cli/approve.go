package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/transcript"
)

// approvalsCommand lists the calls that wait for a person.
type approvalsCommand struct {
	Session string `arg:"" optional:"" help:"The session; without one those of all sessions."`
	asJSON
}

// Run prints the waiting calls, each with the commands that decide over it.
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
	if a.JSON {
		for _, one := range waiting {
			printJSON(s.out, jsonOf(one))
		}
		return nil
	}
	if len(waiting) == 0 {
		fmt.Fprintln(s.out, "no call waits for approval")
		return nil
	}
	for i, one := range waiting {
		if i > 0 {
			fmt.Fprintln(s.out)
		}
		show(s.out, one)
		fmt.Fprintf(s.out, "  refold approve %s %s    refold deny %s %s --reason …\n", one.Session, one.Call, one.Session, one.Call)
	}
	return nil
}

// approvalJSON is a waiting call as JSON.
type approvalJSON struct {
	Session   string `json:"session"`
	Run       uint32 `json:"run"`
	Call      string `json:"call"`
	ToolID    string `json:"tool_id"`
	ToolName  string `json:"tool_name"`
	Arguments string `json:"arguments"` // as the model wrote them; empty is {}
	ArgsHash  string `json:"args_hash"`
	Deadline  int64  `json:"deadline"`       // Unix ms
	Code      string `json:"code,omitempty"` // why the call would not run if it was approved now
	Detail    string `json:"detail,omitempty"`

	Pack *approvalPackJSON `json:"pack,omitempty"` // that the call would enable

	Parents []client.ParentCall `json:"parents,omitempty"` // above a session that is a child: its own first, the root's last
}

func jsonOf(a client.Approval) approvalJSON {
	return approvalJSON{a.Session, a.Run, a.Call, a.ToolID, a.ToolName, a.Arguments, a.ArgsHash, a.Deadline, a.Code, a.Detail, packJSONOf(a.Pack), a.Parents}
}

// approvals returns the calls that wait in a session, or in all.
func approvals(ctx context.Context, c *client.Client, sid string) ([]client.Approval, error) {
	if sid != "" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, viewWithin)
		defer cancel()
	}
	return c.Approvals(ctx, sid)
}

// show prints a call for the person who decides: in full, with nothing hidden.
func show(out io.Writer, a client.Approval) {
	fmt.Fprintf(out, "session %s  run %d  call %s  %s (%s)  until %s\n  arguments %s\n  hash %s\n",
		a.Session, a.Run, a.Call, a.ToolName, a.ToolID, transcript.Moment(a.Deadline), pretty(a.Arguments), a.ArgsHash)
	showParents(out, a.Parents)
	if a.Code != "" {
		fmt.Fprintf(out, "  would not run now: %s: %s\n", a.Code, visible(a.Detail))
	}
	if a.Pack != nil {
		showPack(out, a.Pack)
	}
}

// showParents prints for whom a child's session runs.
func showParents(out io.Writer, parents []client.ParentCall) {
	for _, p := range parents {
		fmt.Fprintf(out, "  for call %s of session %s\n", p.Call, p.Session)
	}
}

// pretty returns JSON text with one member a line. It escapes invisible
// characters as JSON does, wherever it prints, --raw or not: a person decides
// over these very characters, and perhaps reads them in a file.
func pretty(text string) string {
	var lines bytes.Buffer
	if text == "" {
		text = "{}"
	}
	if json.Indent(&lines, []byte(text), "  ", "  ") != nil {
		return strconv.QuoteToASCII(text) // not JSON: all on one line
	}
	return visible(lines.String())
}

// visible escapes invisible characters as JSON does, except line breaks.
func visible(text string) string {
	var out strings.Builder
	for _, r := range text {
		if r == '\n' || unicode.IsPrint(r) {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&out, "\\u%04x", unit)
		}
	}
	return out.String()
}

// decision has the arguments and flags that approve and deny share.
type decision struct {
	Session string `arg:"" help:"The session."`
	Call    string `arg:"" help:"The call, as in r1t2c0: refold approvals lists them."`
	Hash    string `name:"args-hash" placeholder:"HASH" help:"Decide without asking, and only if the call waits with the arguments of this hash; refold approvals prints it."`
	Reason  string `placeholder:"TEXT" help:"The reason. The model is shown why a call was denied."`
}

// approveCommand approves a call.
type approveCommand struct {
	decision
	Yes  bool   `help:"Don't ask: approve the arguments with which the call waits now."`
	Args string `placeholder:"JSON" help:"Arguments to run it with instead of the model's. They are checked as the original ones were, and the model is shown the change."`
}

// Run shows the call, asks unless a flag decides, and approves what it has shown.
func (a approveCommand) Run(ctx context.Context, s streams, conn connection) error {
	switch {
	case a.Args != "" && !json.Valid([]byte(a.Args)):
		return &statusError{statusUsage, "--args: is not JSON"}
	case !a.Yes && a.Hash == "" && (!isTerminal(s.in) || !isTerminal(s.out)):
		return &statusError{statusUsage, fmt.Sprintf("approve asks on a terminal, and there is none: give --args-hash HASH to approve "+
			"the arguments that you read (refold approvals %s prints them with their hash), or --yes for whatever waits", a.Session)}
	}
	confirm := func(one client.Approval) error {
		if unread := unread(one.Pack); unread != nil {
			return unread
		}
		if a.Args != "" {
			fmt.Fprintf(s.out, "  will run with %s\n", pretty(a.Args))
		}
		if a.Yes || a.Hash != "" {
			return nil
		}
		if yes, err := confirmed(ctx, s, "Approve it?"); err != nil || !yes {
			return cmp.Or(err, error(&statusError{statusFailed, "not approved: answer y, or deny it: refold deny " + a.Session + " " + a.Call}))
		}
		return nil
	}
	return a.decide(ctx, s, conn, "approved", confirm, func(c *client.Client, one client.Approval) (uint64, error) {
		return c.Approve(ctx, one, client.DecideOptions{Reason: a.Reason, Arguments: a.Args})
	})
}

// denyCommand denies a call. It does not ask first: a call that was denied by
// mistake has done nothing, and the model may make it again.
type denyCommand struct{ decision }

func (d denyCommand) Run(ctx context.Context, s streams, conn connection) error {
	confirm := func(client.Approval) error { return nil }
	return d.decide(ctx, s, conn, "denied", confirm, func(c *client.Client, one client.Approval) (uint64, error) {
		return c.Deny(ctx, one, client.DecideOptions{Reason: d.Reason})
	})
}

// decide shows the waiting call. If confirm returns nil, it publishes the
// decision over what it showed and prints the outcome.
func (d decision) decide(
	ctx context.Context, s streams, conn connection, done string, confirm func(client.Approval) error, publish func(*client.Client, client.Approval) (uint64, error),
) error {
	var hash codec.Hash
	if d.Hash != "" && hash.UnmarshalText([]byte(strings.ToLower(d.Hash))) != nil {
		return &statusError{statusUsage, "--args-hash: is 64 hex digits, as refold approvals prints them"}
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
		return fmt.Errorf("%s of session %s does not wait for approval: it was decided, has ended, or never was; waiting: %s",
			d.Call, d.Session, cmp.Or(strings.Join(calls, ", "), "no call"))
	}
	one := waiting[i]
	show(s.out, one)
	if d.Hash != "" && hash.String() != one.ArgsHash {
		return fmt.Errorf("not %s: %s waits with other arguments than those of hash %s: read them above, and decide over hash %s", done, d.Call, hash, one.ArgsHash)
	}
	if err := cmp.Or(confirm(one), ctx.Err()); err != nil { // no decision over what could not be shown
		return err
	}
	v, err := taken(ctx, c, d.Session, func(c *client.Client) (uint64, error) { return publish(c, one) })
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s\n%s\n", done, standing(&v))
	return nil
}
