package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/transcript"
)

// redactCommand removes the text of an event.
type redactCommand struct {
	asJSON
	Session string `arg:"" help:"The session."`
	Seq     uint64 `arg:"" help:"The event's sequence, as refold log prints it."`
	DryRun  bool   `help:"Say what would be removed, and remove nothing."`
	Yes     bool   `help:"Don't ask."`
}

func (r redactCommand) Run(ctx context.Context, s streams, conn connection) error {
	c, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	p, err := c.Redactable(ctx, r.Session, r.Seq)
	if err != nil {
		return err
	}
	if !p.Done && !r.DryRun {
		r.print(streams{s.in, s.err, s.err}, p)
		if !r.Yes {
			if yes, err := confirmed(ctx, streams{s.in, s.err, s.err}, "Remove it for good?"); err != nil || !yes {
				return cmp.Or(err, error(&statusError{statusFailed, "not removed: answer y, or give --yes"}))
			}
		}
		deleter := c.Deleter(client.DeleteOptions{})
		if p, err = deleter.Redact(ctx, r.Session, r.Seq); err != nil {
			return err
		}
		if _, err = deleter.Close(ctx); err != nil {
			return err
		}
	}
	if r.JSON {
		printJSON(s.out, p)
	} else {
		r.print(s, p)
	}
	return nil
}

func (r redactCommand) print(s streams, p client.Redaction) {
	what := fmt.Sprintf("session %s  event %d, %s", p.Session, p.Seq, p.Type)
	switch more := transcript.Count(p.Notices, "notice") + ", " + transcript.Count(p.Dead, "dead letter"); {
	case p.Done && p.Notices+p.Dead+p.Blobs == 0:
		fmt.Fprintf(s.out, "%s: it has no text any more\n", what)
	case p.Done:
		fmt.Fprintf(s.out, "%s: it has no text any more; deleted: %s\n", what, more)
	default:
		fmt.Fprintf(s.out, "%s, and %s that have its text; about %v\n", what, more, rounded(p.Expected))
	}
	if p.Blobs > 0 {
		fmt.Fprintf(s.out, "%s that it named: refold blobs sweep deletes them if nothing else names them\n", transcript.Count(p.Blobs, "blob"))
	}
}
