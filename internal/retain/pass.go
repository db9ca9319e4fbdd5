package retain

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/archive"
	"github.com/refold/refold/internal/journal"
)

const (
	// erasedMax is the most erased sessions whose deletion a pass completes; others wait.
	erasedMax = 10_000
	// erasedAfter is how long after its last event the deletion of an erased session is
	// completed: whoever erased it may be at work.
	erasedAfter = time.Hour
	// reason is that of SessionErased.
	reason = "retention"
)

// Options are those of a pass.
type Options struct {
	Now    func() time.Time // the clock of the log
	DryRun bool             // archive and delete nothing
	Each   func(Outcome)    // called for each session that is due; nil: nobody
	Meters *Meters          // nil: nothing is counted
}

// Outcome is what a pass did with a session that is due.
type Outcome struct {
	Session  string           `json:"session"`
	Last     int64            `json:"last"`               // Unix ms, of its last event
	Archive  bool             `json:"archive"`            // it is to be archived now
	Delete   bool             `json:"delete"`             // it is to be deleted now
	Held     bool             `json:"held,omitempty"`     // it is to be deleted, and is held
	Archived *client.Archived `json:"archived,omitempty"` // nil: nothing was archived
	Deleted  int              `json:"deleted,omitempty"`  // messages
	Changed  bool             `json:"changed,omitempty"`  // it got an event meanwhile, and is left alone
	Children []string         `json:"children,omitempty"` // it has these, and is left alone until they are deleted
	Error    string           `json:"error,omitempty"`
}

// Sum is what a pass did. In a dry run it is what the pass would do.
type Sum struct {
	Sessions int   `json:"sessions"` // that the log has, and that have a rule or were erased
	Due      int   `json:"due"`      // of them
	Archived int   `json:"archived"`
	Deleted  int   `json:"deleted"`
	Held     int   `json:"held"`
	Failed   int   `json:"failed"`
	Messages int   `json:"messages"` // deleted
	Bytes    int64 `json:"bytes"`    // of the archives that were written
	TookMS   int64 `json:"took_ms"`
}

// pass is one pass under way.
type pass struct {
	*Policy
	c     *client.Client
	o     Options
	sum   Sum
	waits int // sessions that may be due and are not done

	plain, erasing *client.Deleter
}

// Pass applies the policy to all sessions once. A session that fails does not keep others
// from their turn. It fails if the sessions can't be listed, or if another eraser is at
// work. It may be repeated after any error.
func (p *Policy) Pass(ctx context.Context, c *client.Client, o Options) (Sum, error) {
	begun := time.Now()
	if o.Each == nil {
		o.Each = func(Outcome) {}
	}
	a := &pass{Policy: p, c: c, o: o, plain: c.Deleter(client.DeleteOptions{Plain: true}), erasing: c.Deleter(client.DeleteOptions{})}
	err := a.run(ctx)
	a.sum.TookMS = time.Since(begun).Milliseconds()
	if err == nil && !o.DryRun {
		o.Meters.ended()
	}
	return a.sum, err
}

func (a *pass) run(ctx context.Context) error {
	if !a.o.DryRun {
		for _, err := range a.candidates(ctx) {
			if err != nil {
				return err
			}
			a.waits++
		}
		a.o.Meters.waits(a.waits)
	}
	a.sum.Sessions = 0
	var erased []string // they come last: a delete that overwrites takes most of a second
	for of, err := range a.candidates(ctx) {
		switch {
		case err != nil:
			return err
		case !of.Erased:
			err = a.step(ctx, of.Session, a.session)
		case len(erased) < erasedMax:
			erased = append(erased, of.Session)
		}
		if err != nil {
			return err
		}
	}
	for _, sid := range erased {
		if err := a.step(ctx, sid, a.erased); err != nil {
			return err
		}
	}
	if a.o.DryRun {
		return nil
	}
	_, err := a.erasing.Close(ctx)
	return err
}

// candidates yields the sessions that may be due, and erased ones that may have messages.
func (a *pass) candidates(ctx context.Context) iter.Seq2[client.StoredSession, error] {
	return func(yield func(client.StoredSession, error) bool) {
		for s, err := range a.c.Stored(ctx) {
			if err != nil {
				yield(s, err)
				return
			}
			r, after := a.rule(s.Session), erasedAfter
			if r == nil && !s.Erased {
				continue
			}
			a.sum.Sessions++
			if !s.Erased {
				after = r.soonest()
			}
			if s.At <= a.o.Now().Add(-after).UnixMilli() && !yield(s, nil) {
				return
			}
		}
	}
}

// step carries out what is due of a session.
func (a *pass) step(ctx context.Context, sid string, act func(context.Context, string) (Outcome, bool, error)) error {
	o, due, err := act(ctx, sid)
	if err != nil {
		return err
	}
	if due {
		a.note(o)
	}
	if o.Error == "" && !o.Held && o.Children == nil {
		a.waits--
	}
	a.o.Meters.waits(max(a.waits, 0))
	return nil
}

// note adds an outcome to the sum.
func (a *pass) note(o Outcome) {
	a.sum.Due++
	a.sum.Messages += o.Deleted
	if o.Archived != nil && !o.Archived.Was {
		a.sum.Bytes += o.Archived.Bytes
	}
	count := func(n *int, outcome string) {
		*n++
		a.o.Meters.did(outcome)
	}
	if o.Archive && (o.Archived != nil || a.o.DryRun) {
		count(&a.sum.Archived, didArchive)
	}
	switch {
	case o.Error != "":
		count(&a.sum.Failed, didFail)
	case o.Held:
		count(&a.sum.Held, didHold)
	case o.Delete && !o.Changed && o.Children == nil:
		count(&a.sum.Deleted, didDelete)
	}
	a.o.Each(o)
}

// session archives and deletes a session as far as that is due. An error ends the pass.
func (a *pass) session(ctx context.Context, sid string) (o Outcome, due bool, err error) {
	r := a.rule(sid)
	state, err := a.c.StateNow(ctx, sid)
	switch {
	case errors.Is(err, client.ErrNoSession):
		return o, false, nil
	case err != nil:
		o.Session = sid
		return a.failed(ctx, o, err)
	case state.IsErased():
		return a.erased(ctx, sid)
	}
	since, due := r.due(a.o.Now().Sub(time.UnixMilli(state.Clock)), state.Closed, idle(state))
	o = Outcome{Session: sid, Last: state.Clock, Delete: due && r.deletes(since)}
	o.Archive = due && r.ArchiveTo != "" && !r.has(sid, state.Clock)
	o.Held = o.Delete && state.IsHeld()
	if !o.Archive && !o.Delete {
		return o, false, nil
	}
	if a.o.DryRun {
		return o, true, nil
	}
	last := state.Seq
	if o.Archive || o.Delete && !o.Held && r.ArchiveTo != "" {
		if o.Archived, err = a.c.Archive(ctx, sid, r.ArchiveTo); err != nil {
			return a.failed(ctx, o, err)
		}
		o.Changed, last = o.Archived.Last != last, o.Archived.Last
	}
	if o.Delete && !o.Held && !o.Changed {
		return a.delete(ctx, a.plain, o, last)
	}
	return o, true, nil
}

// idle reports whether a session has nothing to do: no run, and no schedule that fires.
func idle(s *session.State) bool {
	fires := s.Overrides != nil && slices.ContainsFunc(s.Overrides.Schedules, func(of session.Schedule) bool { return of.Due > 0 })
	return s.Run == nil && len(s.Queue) == 0 && !fires
}

// erased completes the deletion of an erased session.
func (a *pass) erased(ctx context.Context, sid string) (o Outcome, due bool, err error) {
	o = Outcome{Session: sid, Delete: true}
	left, err := a.c.Deletable(ctx, sid, client.DeleteOptions{})
	var parent *client.ChildrenError
	switch {
	case errors.As(err, &parent):
		o.Children = parent.Children
		return o, true, nil
	case errors.Is(err, client.ErrNoSession):
		return o, false, nil
	case err != nil:
		return a.failed(ctx, o, err)
	case left.All() == 0:
		return o, false, nil
	case a.o.DryRun:
		return o, true, nil
	}
	by := a.erasing
	plain, err := a.c.DeletedPlainly(ctx, sid)
	if err != nil {
		return a.failed(ctx, o, err)
	}
	if plain {
		by = a.plain
	}
	return a.delete(ctx, by, o, 0)
}

// delete deletes a session, whose last event is at sequence last unless that is 0.
func (a *pass) delete(ctx context.Context, by *client.Deleter, o Outcome, last uint64) (_ Outcome, due bool, err error) {
	deleted := client.Deletable{}
	if last == 0 {
		deleted, err = by.Delete(ctx, o.Session, reason)
	} else {
		deleted, err = by.DeleteAfter(ctx, o.Session, reason, last)
	}
	o.Deleted = deleted.All()
	var refused *client.RejectedError
	var parent *client.ChildrenError
	switch {
	case errors.As(err, &parent):
		o.Children = parent.Children
		return o, true, nil
	case errors.Is(err, client.ErrChanged):
		o.Changed = true
		return o, true, nil
	case errors.As(err, &refused) && refused.Code == session.RejectSessionHeld:
		o.Held = true
		return o, true, nil
	case errors.Is(err, journal.ErrOvertaken):
		return o, true, err
	case err != nil:
		return a.failed(ctx, o, err)
	}
	return o, true, nil
}

// failed is the outcome of a session that failed, unless ctx ended: that ends the pass.
func (a *pass) failed(ctx context.Context, o Outcome, err error) (Outcome, bool, error) {
	o.Error = err.Error()
	return o, true, ctx.Err()
}

// has reports whether an archive of the session was written after its last event. It was
// read back then: a file with this name always was.
func (r *Rule) has(sid string, last int64) bool {
	info, err := os.Stat(filepath.Clean(archive.Name(r.ArchiveTo, sid)))
	return err == nil && info.ModTime().UnixMilli() > last
}
