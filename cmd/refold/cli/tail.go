package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/transcript"
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
	if t.Session != "" && !t.JSON {
		stop, err := t.view(ctx, c, shown)
		if err != nil {
			return err
		}
		defer stop()
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
		shown.aside(isOfCall(n), func() { t.print(s, n) })
	}
	return nil
}

// view prints the text of the session's models until stop is called.
func (t tailCommand) view(ctx context.Context, c *client.Client, shown *display) (stop func(), err error) {
	viewer, err := c.Viewer(ctx, t.Session)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var viewing sync.WaitGroup
	viewing.Go(func() {
		for s, err := range viewer.Shown(ctx, 0) {
			switch {
			case errors.Is(err, context.Canceled):
			case err != nil:
				shown.end("")
				fmt.Fprintln(shown, "models' text is not shown:", err)
			default:
				shown.shown(s)
			}
		}
	})
	return func() {
		cancel()
		viewing.Wait()
		viewer.Close()
		shown.end("")
	}, nil
}

// isOfCall reports whether a notice is about calls of a turn.
func isOfCall(n client.Notice) bool {
	switch n.Type {
	case session.NoticeToolRejected, session.NoticeApprovalRequested, session.NoticeReplyRequested, session.NoticeCallsPlanned:
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

// about describes a notice, with what to do if it needs an action. Others are
// printed as they are.
func about(n client.Notice) string {
	var text []string
	switch n.Type {
	case session.NoticeRunQueued, session.NoticeRunStarted, session.NoticeRunFinished: // their data has more
	case session.NoticeSessionChanged:
		if s := n.Summary; s != nil && s.Closed {
			return "closed"
		} else if s != nil {
			return fmt.Sprintf("run %d %s, waits for %s", s.Run, s.Lifecycle, s.WaitsFor)
		}
	default:
		for _, it := range transcript.Noticed(n.Session, n.Type, n.Body()) {
			text = append(text, it.OneLine()+transcript.Prefixed(": ", it.Todo))
		}
	}
	return cmp.Or(strings.Join(text, "; "), string(n.Data))
}
