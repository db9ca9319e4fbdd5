package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/client"
)

// tailCommand follows notices, and for one session also its models' text.
type tailCommand struct {
	Session string `arg:"" optional:"" help:"The session. Default: all."`
	Since   uint64 `placeholder:"N" default:"0" help:"Sequence in the stream of notices to begin at. It ends at the newest one, unless --follow."`
	All     bool   `help:"Begin with the oldest stored notice. It ends at the newest one, unless --follow."`
	Follow  bool   `short:"f" help:"Continue with new notices until stopped. This is the default without --all and --since."`
	JSON    bool   `name:"json" help:"Print each notice unchanged, a JSON object a line."`
}

// Run prints notices: stored ones, or new ones until it is stopped.
func (t tailCommand) Run(ctx context.Context, s streams, conn connection) error {
	c, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	newest, err := c.LastNotice(ctx)
	if err != nil {
		return err
	}
	if (t.All || t.Since > 0) && !t.Follow {
		return t.kept(ctx, s, c, newest)
	}
	from := t.Since
	if from == 0 && !t.All {
		from = newest + 1
	}
	shown := newDisplay(s)
	watched := newWatcher(shown, c.View, c.Clock(ctx), lookEach)
	if t.Session != "" {
		watched.add(t.Session)
	}
	defer watched.begin(ctx)()
	words := &live{to: shown}
	if t.Session != "" && !t.JSON {
		v, err := view(ctx, c, t.Session, words)
		if err != nil {
			return err
		}
		defer v.close()
		defer words.stop()
		v.show(ctx, 0, func(err error) { fmt.Fprintln(shown, "models' text is not shown:", err) })
	}
	for n, err := range c.Notices(ctx, t.Session, from) {
		switch {
		case errors.Is(err, context.Canceled):
			return &statusError{statusOf(ctx), ""}
		case err != nil:
			return err
		}
		if t.Session == "" {
			watched.note(n)
		}
		watched.heard(n.Session)
		words.aside(isOfCall(n), func() { t.print(s, n) })
	}
	return nil
}

// isOfCall reports whether a notice is about calls of a turn.
func isOfCall(n client.Notice) bool {
	switch n.Type {
	case session.NoticeToolRejected, session.NoticeApprovalRequested, session.NoticeCallsPlanned:
		return true
	}
	return false
}

// kept prints the stored notices up to the newest one.
func (t tailCommand) kept(ctx context.Context, s streams, c *client.Client, newest uint64) error {
	for n, err := range c.NoticesKept(ctx, t.Session, t.Since, newest) {
		if err != nil {
			return err
		}
		t.print(s, n)
	}
	return nil
}

func (t tailCommand) print(s streams, n client.Notice) {
	if t.JSON {
		printJSON(s.out, n)
		return
	}
	at := time.UnixMilli(n.At).UTC().Format("15:04:05.000")
	fmt.Fprintf(s.out, "%s  %s  %d  %s %s\n", at, n.Session, n.N, n.Type, about(n))
}

// about describes a notice, with what to do if it needs an action.
func about(n client.Notice) string {
	switch d := n.Body().(type) {
	case session.ApprovalRequested:
		arguments := d.Arguments
		if d.ArgumentsSeq != 0 {
			arguments = fmt.Sprintf("(arguments at %d)", d.ArgumentsSeq)
		}
		return fmt.Sprintf("%s %s (%s) %s until %s: refold approve %s %s", d.Call, d.ToolName, d.ToolID, shorten(arguments), moment(d.Deadline), n.Session, d.Call)
	case session.BudgetExceeded:
		return fmt.Sprintf("run %d is paused: %s", d.Run, breach(n.Session, d))
	case session.ContextCleared, session.ContextCut:
		return aboutContext(d)
	case session.ToolRejected:
		if session.IsRefusedCode(d.Code) {
			return d.Effect + " " + refused(d)
		}
	case spaces.WorkspaceStaged, spaces.WorkspaceApplied, spaces.WorkspaceFailed, spaces.WorkspaceGone, spaces.WorkspaceDisplaced:
		return aboutSpace(d)
	case session.CallsPlanned:
		return fmt.Sprintf("%s group %d of %d, for a host loop: %s", d.Batch, d.Group+1, len(d.Groups), strings.Join(d.Calls, " "))
	}
	return string(n.Data)
}

// aboutContext describes how the window of a transcript became smaller.
func aboutContext(body any) string {
	text := "run %d: %d %s the model is not shown any more; the next turn has about %d tokens, before %d"
	switch d := body.(type) {
	case session.ContextCleared:
		return fmt.Sprintf(text, d.Run, d.Results, "results of earlier calls", d.Tokens, d.TokensBefore)
	case session.ContextCut:
		return fmt.Sprintf(text, d.Run, d.Items, "earlier messages", d.Tokens, d.TokensBefore)
	}
	return ""
}

// breach describes the exceeded budget and how to resume the run.
func breach(sid string, d session.BudgetExceeded) string {
	return fmt.Sprintf("%d of %d %s are used, and the next turn's input takes about %d; to continue: refold resume %s --budget '{\"%s\":…}'",
		d.Used, d.Limit, d.Budget, d.Estimate, sid, d.Budget)
}
