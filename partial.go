package refold

import (
	"context"
	"fmt"
	"iter"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

// Partial is the first update for a user who may not read the log, such as one with the
// role client. It comes again after a loss. Updates for such a user are made of notices,
// live text and views, as those of a client.Follower are:
//
//   - ToolAsked, ApprovalDecided and RunResumed are missing, and so is a RunPaused that a
//     budget did not cause. A Call of ToolEnded has no Arguments.
//   - There are no updates of the past. The process keeps those of the runs that it asked,
//     at most 4,096 updates or 4 MiB for each session. Updates of any other run begin now.
//   - Text that was missed while the model wrote it comes at the end of its turn. It is cut
//     after 8 KiB, except in a run's last turn. Answer.Cut says that the answer's text may
//     lack its end.
//   - After a lost connection, updates may be missing. The end of a run comes all the same,
//     perhaps without its lifecycle and its number of turns.
type Partial struct {
	about
	// Missed says that updates before this one are missing, or may be.
	Missed bool
}

// toldSteps are the steps of a follower.
type toldSteps struct{ *client.Follower }

// Shown implements steps.
func (t toldSteps) Shown(ctx context.Context, _ uint64) iter.Seq2[client.Shown, error] {
	return t.Follower.Shown(ctx)
}

// hold returns the session's feed once it receives all that happens from then on. The
// caller must leave it.
func (s *Session) hold(ctx context.Context) (*feed, error) {
	last, err := s.rt.client.LastEvent(ctx)
	if err != nil {
		return nil, err
	}
	f := s.rt.join(ctx, s, last+1)
	select {
	case <-f.ready:
		return f, nil
	case <-ctx.Done():
		s.rt.leave(f)
		return nil, ctx.Err()
	}
}

// enter adds a reader to a feed that may have ended: its updates are kept.
func (rt *Runtime) enter(f *feed) {
	rt.feedsMu.Lock()
	defer rt.feedsMu.Unlock()
	f.readers++
}

// told yields the updates of a session whose log can't be read, after a position.
func (s *Session) told(ctx context.Context, after position, yield func(Update, error) bool) {
	f, err := s.hold(ctx)
	if err != nil {
		yield(nil, err)
		return
	}
	defer s.rt.leave(f)
	f.tell(ctx, after, yield)
}

// tell yields the feed's updates after a position. A Partial with Missed comes first if
// the feed does not go back that far.
func (f *feed) tell(ctx context.Context, after position, yield func(Update, error) bool) {
	for r := (&reader{after: after, at: after}); ; r.rejoin() {
		first := Partial{about{at: r.position()}, !f.reaches(r.after.seq)}
		if !yield(first, nil) || !f.deliver(ctx, r, yield) {
			return
		}
	}
}

// told yields the updates of the run, and of others.
func (r *Run) told(ctx context.Context) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		s, f := r.session, r.feed
		var end *RunEnded
		var err error
		if f != nil {
			s.rt.enter(f)
		} else {
			if f, err = s.hold(ctx); err != nil {
				yield(nil, err)
				return
			}
			end, err = r.over(ctx)
		}
		defer s.rt.leave(f)
		switch {
		case err != nil:
			yield(nil, err)
		case end == nil:
			f.tell(ctx, position{seq: r.began}, yield)
		case yield(Partial{end.about, true}, nil):
			yield(*end, nil)
		}
	}
}

// over returns the end of a run that has ended, by the view.
func (r *Run) over(ctx context.Context) (*RunEnded, error) {
	v, err := r.session.View(ctx)
	if err != nil {
		return nil, err
	}
	live := v.Queue
	if v.Run != nil {
		live = append(live, *v.Run)
	}
	for i := range live {
		if live[i].Number == r.number {
			return nil, nil
		}
	}
	if last := v.Last; last == nil || last.Number != r.number {
		return nil, fmt.Errorf("run %d of session %s: %w: %w", r.number, r.session.id, client.ErrEndedBefore, r.session.rt.unread)
	}
	at := about{r.number, position{seq: v.Seq}}
	detail := ""
	if v.Last.Detail != "" {
		detail = v.Last.Detail.String()
	}
	return &RunEnded{at, v.Last.Lifecycle, v.Last.Code, detail, 0, &session.RunFinished{
		Run: r.number, Lifecycle: v.Last.Lifecycle, Code: v.Last.Code, Detail: detail, FinishReason: v.Last.FinishReason, OverBudget: v.Last.OverBudget,
	}}, nil
}

// toldPlace publishes a request, and returns its run, whose updates are kept from now on.
func (s *Session) toldPlace(ctx context.Context, submission string, publish func() (uint64, error)) (*Run, error) {
	f, err := s.hold(ctx)
	if err != nil {
		return nil, err
	}
	defer s.rt.leave(f)
	heard, err := s.rt.client.Follow(ctx, s.id)
	if err != nil {
		return nil, err
	}
	defer heard.Close()
	seq, err := publish()
	if err != nil {
		return nil, err
	}
	run := &Run{session: s, feed: f}
	if run.number, run.began, err = heard.Placed(ctx, seq, submission); err != nil {
		return nil, err
	}
	s.rt.mu.Lock()
	defer s.rt.mu.Unlock()
	if s.rt.closed {
		return nil, errClosed
	}
	s.rt.enter(f)
	s.rt.bridges.Go(func() { // keep the updates up to the run's end
		defer s.rt.leave(f)
		for _, err := range run.Updates(s.rt.serving) {
			if err != nil {
				return
			}
		}
	})
	return run, nil
}

// toldOutcome publishes a request, and waits until the session took or refused it.
func (s *Session) toldOutcome(ctx context.Context, publish func() (uint64, error)) error {
	heard, err := s.rt.client.Follow(ctx, s.id)
	if err != nil {
		return err
	}
	defer heard.Close()
	seq, err := publish()
	if err != nil {
		return err
	}
	return heard.Taken(ctx, seq)
}
