package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/transcript"
	"github.com/refold/refold/planner"
)

// waitingCommand lists the calls that wait for a reply.
type waitingCommand struct {
	Session string `arg:"" optional:"" help:"The session; without one those of all sessions."`
	asJSON
}

// Run prints the waiting calls, each with the command that answers it.
func (w waitingCommand) Run(ctx context.Context, s streams, conn connection) error {
	c, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	waiting, err := questions(ctx, c, w.Session)
	if err != nil {
		return err
	}
	if w.JSON {
		for _, one := range waiting {
			printJSON(s.out, questionJSON(one))
		}
		return nil
	}
	if len(waiting) == 0 {
		fmt.Fprintln(s.out, "no call waits for a reply")
		return nil
	}
	for i, one := range waiting {
		if i > 0 {
			fmt.Fprintln(s.out)
		}
		showQuestion(s.out, one)
		fmt.Fprintf(s.out, "  refold reply %s %s \"…\"    refold reply %s %s --decline …\n", one.Session, one.Call, one.Session, one.Call)
	}
	return nil
}

// questionJSON is a waiting call as JSON.
type questionJSON struct {
	Session   string `json:"session"`
	Run       uint32 `json:"run"`
	Call      string `json:"call"`
	ToolID    string `json:"tool_id"`
	ToolName  string `json:"tool_name"`
	Arguments string `json:"arguments"` // JSON text; empty is {}
	ArgsHash  string `json:"args_hash"`
	By        string `json:"by"`       // who may answer: approvers, or clients too
	Deadline  int64  `json:"deadline"` // Unix ms

	Parents []client.ParentCall `json:"parents,omitempty"` // above a session that is a child: its own first, the root's last
}

// questions returns the calls that wait for a reply in a session, or in all.
func questions(ctx context.Context, c *client.Client, sid string) ([]client.Question, error) {
	if sid != "" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, viewWithin)
		defer cancel()
	}
	return c.Questions(ctx, sid)
}

// showQuestion prints a call for the person who answers: in full, with nothing hidden.
func showQuestion(out io.Writer, q client.Question) {
	fmt.Fprintf(out, "session %s  run %d  call %s  %s (%s)  until %s\n  arguments %s\n  hash %s\n",
		q.Session, q.Run, q.Call, q.ToolName, q.ToolID, transcript.Moment(q.Deadline), pretty(q.Arguments), q.ArgsHash)
	showParents(out, q.Parents)
}

// replyCommand answers a call.
type replyCommand struct {
	Session string `arg:"" help:"The session."`
	Call    string `arg:"" help:"The call, as in r1t2c0: refold waiting lists them."`
	Text    string `arg:"" optional:"" help:"The answer. - reads standard input. If the call has a schema, it is one JSON text."`
	Decline string `placeholder:"REASON" help:"Answer nothing, in place of a text: the call fails, and the model is shown the reason."`
	Hash    string `name:"args-hash" placeholder:"HASH" help:"Answer only if the call waits with the arguments of this hash; refold waiting prints it."`
	Client  bool   `name:"as-client" help:"Answer as a user who is no approver. It is for calls that clients may answer."`
}

// Run answers the call, and prints the outcome.
func (r replyCommand) Run(ctx context.Context, s streams, conn connection) error {
	if (r.Text == "") == (r.Decline == "") {
		return &statusError{statusUsage, "reply: give an answer, or --decline REASON"}
	}
	if r.Text == "-" {
		text, err := io.ReadAll(io.LimitReader(s.in, session.TextBytesMax+1))
		if err != nil {
			return fmt.Errorf("reply: standard input: %w", err)
		}
		r.Text = strings.TrimSuffix(string(text), "\n")
	}
	c, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	waiting, err := questions(ctx, c, r.Session)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(waiting, func(q client.Question) bool { return q.Call == r.Call })
	if i < 0 {
		var calls []string
		for _, q := range waiting {
			calls = append(calls, q.Call)
		}
		return fmt.Errorf("%s of session %s does not wait for a reply: it was answered, has ended, or never was; waiting: %s",
			r.Call, r.Session, cmp.Or(strings.Join(calls, ", "), "no call"))
	}
	one := waiting[i]
	showQuestion(s.out, one)
	if r.Hash != "" && strings.ToLower(r.Hash) != one.ArgsHash {
		return fmt.Errorf("not answered: %s waits with other arguments than those of hash %s: read them above, and answer with hash %s", r.Call, r.Hash, one.ArgsHash)
	}
	if r.Client && one.By != planner.ByClients {
		return fmt.Errorf("not answered: approvers alone may answer %s: leave --as-client out", r.Call)
	}
	v, err := taken(ctx, c, r.Session, func(c *client.Client) (uint64, error) {
		return c.Reply(ctx, one, session.Content{Text: r.Text}, client.ReplyOptions{Declined: r.Decline, AsClient: r.Client})
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "answered\n%s\n", standing(&v))
	return nil
}
