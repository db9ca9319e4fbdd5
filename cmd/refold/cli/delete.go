package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/transcript"
)

// deleteCommand deletes sessions.
type deleteCommand struct {
	asJSON
	Session      []string `arg:"" optional:"" help:"The sessions."`
	ClosedBefore string   `placeholder:"TIME" help:"All sessions that are closed and had their last event before then: a time such as 2026-01-31T12:00:00Z, or how long ago, such as 90d."`
	Names        string   `name:"name" placeholder:"PREFIX" help:"All sessions whose name begins so, such as acme-; with --closed-before, those of them alone."`
	Erased       bool     `help:"All sessions that were erased in the last week and still have messages: over HTTP, or by a deletion that was stopped."`
	FromLedger   string   `type:"existingfile" placeholder:"FILE" help:"The sessions of a file that --ledger has printed: after a restore of a backup in which they still are."`
	Ledger       bool     `help:"Print the deleted sessions, a JSON object a line, and delete nothing. Keep that beside your backups."`
	WithChildren bool     `help:"Delete the children of each session with it, theirs, and so on. Without it a session that has any is refused."`
	Reason       string   `placeholder:"TEXT" help:"The reason, for people. It is deleted with the session."`
	DryRun       bool     `help:"Say what would be deleted and how long that takes, and delete nothing."`
	Yes          bool     `help:"Don't ask."`
}

func (d deleteCommand) Run(ctx context.Context, s streams, conn connection) error {
	chosen := d.ClosedBefore != "" || d.Names != "" || d.Erased || d.FromLedger != "" || d.Ledger
	if chosen == (len(d.Session) > 0) {
		return &statusError{statusUsage, "delete: give sessions, as in refold delete s1, or choose them with --name acme-, --closed-before 90d or --erased"}
	}
	if _, err := since("--closed-before", d.ClosedBefore, time.Now()); err != nil {
		return &statusError{statusUsage, "delete: " + err.Error()}
	}
	c, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if d.Ledger {
		return printLedger(ctx, s.out, c)
	}
	sids := d.Session
	switch {
	case d.FromLedger != "":
		d.WithChildren = true // whose children were deleted, too
		sids, err = d.restored(ctx, c)
	case chosen:
		sids, err = d.choose(ctx, c)
	}
	if err != nil {
		return err
	}
	all, err := d.plan(ctx, s, c, sids)
	if err != nil || d.DryRun {
		return err
	}
	if len(all) == 0 {
		fmt.Fprintln(s.err, "nothing to delete")
		return nil
	}
	if !d.Yes {
		if yes, err := confirmed(ctx, streams{s.in, s.err, s.err}, "Delete for good?"); err != nil || !yes {
			return cmp.Or(err, error(&statusError{statusFailed, "not deleted: answer y, or give --yes"}))
		}
	}
	return d.delete(ctx, s, c, all)
}

// plan prints what is to be deleted, and returns the sessions with messages.
func (d deleteCommand) plan(ctx context.Context, s streams, c *client.Client, sids []string) (all []client.Deletable, err error) {
	out := s.err
	if d.DryRun {
		out = s.out
	}
	var sum client.Deletable
	var covered []string
	for _, sid := range sids {
		if slices.Contains(covered, sid) {
			continue
		}
		p, err := c.Deletable(ctx, sid, client.DeleteOptions{WithChildren: d.WithChildren})
		if err != nil {
			return nil, err
		}
		if p.All() == 0 {
			if len(d.Session) > 0 {
				fmt.Fprintf(s.err, "session %s  deleted already: %s\n", sid, kept(p.Effects))
			}
			continue
		}
		all, covered = append(all, p), append(covered, p.Children...)
		sum.Events, sum.Notices, sum.Dead = sum.Events+p.Events, sum.Notices+p.Notices, sum.Dead+p.Dead
		sum.Expected += p.Expected
		if d.JSON && d.DryRun {
			printJSON(s.out, p)
		} else if !d.JSON {
			fmt.Fprintf(out, "session %s%s  %s, %s, %s; about %v\n", sid, withChildren(p.Children), transcript.Count(p.Events, "event"), transcript.Count(p.Notices, "notice"), transcript.Count(p.Dead, "dead letter"), rounded(p.Expected))
		}
	}
	if !d.JSON && len(all) > 1 {
		fmt.Fprintf(out, "%s  %s; about %v\n", transcript.Count(len(all), "session"), transcript.Count(sum.All(), "message"), rounded(sum.Expected))
	}
	return all, nil
}

func (d deleteCommand) delete(ctx context.Context, s streams, c *client.Client, all []client.Deletable) error {
	status := newDisplay(s)
	defer status.show("")
	total := 0
	for _, p := range all {
		total += p.All()
	}
	deleter := c.Deleter(client.DeleteOptions{WithChildren: d.WithChildren, Told: func(deleted int) {
		status.show(fmt.Sprintf("deleted: %d of about %d messages", deleted, max(deleted, total)))
	}})
	for _, p := range all {
		deleted, err := deleter.Delete(ctx, p.Session, d.Reason)
		if err != nil {
			if errors.Is(err, context.Canceled) {
				err = fmt.Errorf("stopped; the same command again goes on: %w", err)
			}
			return withAdvice(err, p.Session)
		}
		if d.JSON {
			printJSON(s.out, deleted)
			continue
		}
		fmt.Fprintf(s.out, "session %s%s  deleted: %s, %s, %s in %v; %s\n", p.Session, withChildren(deleted.Children), transcript.Count(deleted.Events, "event"),
			transcript.Count(deleted.Notices, "notice"), transcript.Count(deleted.Dead, "dead letter"), rounded(deleted.Expected), kept(deleted.Effects))
	}
	status.show("storing the snapshots of other sessions again, so that the server drops former ones")
	n, err := deleter.Close(ctx)
	if err == nil && !d.JSON {
		fmt.Fprintf(s.out, "%s stored again: the bytes of former ones are gone\n", transcript.Count(n, "snapshot"))
	}
	return err
}

// withChildren says what is deleted with a session.
func withChildren(children []string) string {
	if len(children) == 0 {
		return ""
	}
	return " with " + strings.Join(children, ", ")
}

// kept says what is left of a deleted session.
func kept(effects uint64) string {
	if effects == 0 {
		return "no stream has text of it"
	}
	return fmt.Sprintf("effects and claims that stay in REFOLD_FX for at most an hour: %d", effects)
}

func rounded(d time.Duration) time.Duration {
	if d > time.Minute {
		return d.Round(time.Minute)
	}
	return d.Round(time.Millisecond)
}
