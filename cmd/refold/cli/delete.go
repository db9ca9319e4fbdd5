package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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
	Reason       string   `placeholder:"TEXT" help:"The reason, for people. It is deleted with the session."`
	DryRun       bool     `help:"Say what would be deleted and how long that takes, and delete nothing."`
	Yes          bool     `help:"Don't ask."`
}

func (d deleteCommand) Run(ctx context.Context, s streams, conn connection) error {
	chosen := d.ClosedBefore != "" || d.Names != ""
	if chosen == (len(d.Session) > 0) {
		return &statusError{statusUsage, "delete: give sessions, as in refold delete s1, or choose them with --name acme- or --closed-before 90d"}
	}
	if _, err := since("--closed-before", d.ClosedBefore, time.Now()); err != nil {
		return &statusError{statusUsage, "delete: " + err.Error()}
	}
	c, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	sids := d.Session
	if chosen {
		if sids, err = d.choose(ctx, c); err != nil {
			return err
		}
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

// choose returns the sessions that the flags choose.
func (d deleteCommand) choose(ctx context.Context, c *client.Client) (sids []string, err error) {
	var before time.Time
	if d.ClosedBefore != "" {
		before, _ = since("--closed-before", d.ClosedBefore, c.Clock(ctx)())
	}
	for row, err := range c.Index(ctx, client.IndexOptions{Name: d.Names, All: true}) {
		if err != nil {
			return nil, err
		}
		if before.IsZero() {
			sids = append(sids, row.Session)
			continue
		}
		closed, at := row.Closed, row.At
		if row.State == client.StateSilent {
			r, err := c.Replay(ctx, row.Session, 0, nil)
			if err != nil {
				return nil, err
			}
			closed, at = r.State.Closed, r.State.Clock
		}
		if closed && time.UnixMilli(at).Before(before) {
			sids = append(sids, row.Session)
		}
	}
	slices.Sort(sids)
	return sids, nil
}

// plan prints what is to be deleted, and returns the sessions with messages.
func (d deleteCommand) plan(ctx context.Context, s streams, c *client.Client, sids []string) (all []client.Deletable, err error) {
	out := s.err
	if d.DryRun {
		out = s.out
	}
	var sum client.Deletable
	for _, sid := range sids {
		p, err := c.Deletable(ctx, sid, client.DeleteOptions{})
		if err != nil {
			return nil, err
		}
		if p.All() == 0 {
			if len(d.Session) > 0 {
				fmt.Fprintf(s.err, "session %s  deleted already: %s\n", sid, kept(p.Effects))
			}
			continue
		}
		all = append(all, p)
		sum.Events, sum.Notices, sum.Dead = sum.Events+p.Events, sum.Notices+p.Notices, sum.Dead+p.Dead
		sum.Expected += p.Expected
		if d.JSON && d.DryRun {
			printJSON(s.out, p)
		} else if !d.JSON {
			fmt.Fprintf(out, "session %s  %s, %s, %s; about %v\n", sid, transcript.Count(p.Events, "event"), transcript.Count(p.Notices, "notice"), transcript.Count(p.Dead, "dead letter"), rounded(p.Expected))
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
	deleter := c.Deleter(client.DeleteOptions{Told: func(deleted int) {
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
		fmt.Fprintf(s.out, "session %s  deleted: %s, %s, %s in %v; %s\n", p.Session, transcript.Count(deleted.Events, "event"),
			transcript.Count(deleted.Notices, "notice"), transcript.Count(deleted.Dead, "dead letter"), rounded(deleted.Expected), kept(deleted.Effects))
	}
	status.show("storing the snapshots of other sessions again, so that the server drops former ones")
	n, err := deleter.Close(ctx)
	if err == nil && !d.JSON {
		fmt.Fprintf(s.out, "%s stored again: the bytes of former ones are gone\n", transcript.Count(n, "snapshot"))
	}
	return err
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

// holdCommand holds a session.
type holdCommand struct {
	Session string `arg:"" help:"The session."`
	Release bool   `help:"End the hold."`
	Reason  string `placeholder:"TEXT" help:"The reason, for people. It stays in the log."`
}

func (h holdCommand) Run(ctx context.Context, s streams, conn connection) error {
	c, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := exists(ctx, c, h.Session); err != nil {
		return err
	}
	_, err = taken(ctx, c, h.Session, func(c *client.Client) (uint64, error) {
		return c.Hold(ctx, h.Session, !h.Release, h.Reason, "")
	})
	if err != nil {
		return err
	}
	if h.Release {
		fmt.Fprintf(s.out, "session %s is not held any more\n", h.Session)
	} else {
		fmt.Fprintf(s.out, "session %s is held: it can't be deleted until refold hold %s --release\n", h.Session, h.Session)
	}
	return nil
}
