package client

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/natsio"
)

// Shown yields the steps of all runs of the session, from the follower's creation on, as
// those of an EventViewer, until ctx ends or the reader stops; when ctx ends, it yields
// the error of ctx last. An event without a notice has no step, and one with several has
// several: see Folded. ShownMissed says that steps may be missing, after a lost connection.
//
// A run that ended unseen has a RunFinished all the same, without its answer. Its
// lifecycle is empty if the view does not show it any more.
func (f *Follower) Shown(ctx context.Context) iter.Seq2[Shown, error] {
	return func(yield func(Shown, error) bool) {
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		stopped := false
		put := func(s Shown) {
			if !stopped && !yield(s, nil) {
				stopped = true
				cancel()
			}
		}
		for f.all, f.missing = true, true; ; {
			finished := Notice{Type: session.NoticeRunFinished, Session: f.sid}
			end, err := f.End(inner, 0, "", Watch{
				Notice: func(n Notice) {
					switch d, ends := n.Body().(session.RunFinished); {
					case ends && d.Run == f.run:
						finished = n // after the text
					case !ends || d.Run != f.unseen:
						put(toldOf(&n, n.Body()))
					}
				},
				Shown: func(s Shown) {
					if s.Kind != ShownEnd {
						put(s)
					}
				},
			})
			switch {
			case stopped:
				return
			case err != nil:
				yield(Shown{}, err)
				return
			}
			if finished.Seq == 0 {
				f.unseen, finished.Seq = end.Run, f.latest
			}
			put(toldOf(&finished, end.finished(finished.Body())))
			f.awaited, f.order, f.answer, f.settled, f.over = awaited{}, ordered{}, answered{}, nil, time.Time{}
		}
	}
}

// toldOf returns the step of a notice or of a progress.
func toldOf(n *Notice, body any) Shown {
	told := &Folded{Event: session.Event{Session: n.Session, Seq: n.Seq}}
	of := []session.Notice{{Type: n.Type, Seq: n.Seq, Session: n.Session, Data: body}}
	switch body.(type) {
	case session.TurnSettled, session.CallSettled:
		told.Progress = of
	default:
		told.Notices = of
	}
	return Shown{Kind: ShownEvent, Seq: n.Seq, Event: told}
}

// finished returns the RunFinished of an end, whose notice has this body: nil, if none was
// heard.
func (e *RunEnd) finished(body any) session.RunFinished {
	d, heard := body.(session.RunFinished)
	if !heard {
		d = session.RunFinished{Run: e.Run, Lifecycle: e.Lifecycle, Code: e.Code, Detail: e.Detail, FinishReason: e.FinishReason, OverBudget: e.OverBudget}
	}
	if e.Output != nil {
		d.Output, d.OutputSeq = e.Output, 0
	}
	return d
}

// hearAll hears of the next run.
func (f *Follower) hearAll(typ string, body any) {
	if d, is := body.(session.RunPlaced); is && typ == session.NoticeRunStarted && f.run == 0 {
		f.run = d.Run
	}
}

// displaced returns the end of the run, unseen, if the next one has started.
func (f *Follower) displaced(h received) *RunEnd {
	if !f.all || f.run == 0 || h.notice == nil || h.notice.Type != session.NoticeRunStarted {
		return nil
	}
	if d, is := h.notice.Body().(session.RunPlaced); is && d.Run > f.run {
		return f.endUnseen()
	}
	return nil
}

// endUnseen is the end of the run of which nothing is known.
func (f *Follower) endUnseen() *RunEnd {
	end := &RunEnd{Run: f.run, Lifecycle: session.Completed, Detail: endedUnseen}
	if f.all {
		end.Lifecycle = ""
	}
	return end
}

// Placed returns the run that the request at seq, with this submission or none, became
// or steered. began is seq if the run is heard to begin with it, and else 0. The follower
// must be older than the request. It fails as End does, which must not be called then.
func (f *Follower) Placed(ctx context.Context, seq uint64, submission string) (run uint32, began uint64, err error) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	end, err := f.End(inner, seq, submission, Watch{
		Run: func(placed uint32) {
			run = placed
			cancel()
		},
		Notice: func(n Notice) {
			if d, is := n.Body().(session.RunPlaced); is && d.Seq == seq {
				began = seq
			}
		},
	})
	switch {
	case run != 0:
		return run, began, nil
	case err != nil:
		return 0, 0, err
	}
	return end.Run, 0, nil
}

// Taken waits until the session took or refused the event at seq, and fails with a
// *RejectedError or a *QuarantinedError as Client.Taken does. The follower must be older
// than the event. An event that no notice tells of, such as a pause, takes a second.
func (f *Follower) Taken(ctx context.Context, seq uint64) error {
	timer := time.NewTimer(viewEvery)
	defer timer.Stop()
	for shown := (time.Time{}); ; {
		select {
		case <-f.inbox.came:
			for _, h := range f.inbox.take() {
				if h.notice == nil || h.notice.Seq < seq {
					continue
				}
				switch d := h.notice.Body().(type) {
				case session.EventRejected:
					if d.Seq == seq {
						return &RejectedError{Code: d.Code, Detail: d.Detail}
					}
				case session.SessionQuarantined:
					return &QuarantinedError{Reason: d.Reason}
				}
				return nil
			}
		case <-timer.C:
			v := f.requestView(ctx)
			switch {
			case v == nil:
			case v.Quarantined != nil && (v.Quarantined.Seq <= seq || v.Seq == 0):
				return &QuarantinedError{Reason: v.Quarantined.Reason}
			case v.Seq < seq:
			case shown.IsZero():
				shown = time.Now()
			case time.Since(shown) > placedWithin: // a notice would have come
				return nil
			}
			timer.Reset(viewEvery)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// MayRead returns nil if this user may read the log, or if that can't be known now; else
// the error names the right that it lacks.
func (c *Client) MayRead(ctx context.Context) error {
	var denied *natsio.PermissionError
	if _, err := c.bus.EventAt(ctx, 1); errors.As(err, &denied) {
		return err
	}
	return nil
}
