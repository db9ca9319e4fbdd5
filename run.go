package refold

import (
	"context"
	"fmt"
	"iter"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

// Run is a handle on one request of a session. It is safe for concurrent use.
type Run struct {
	session *Session
	number  uint32
	began   uint64 // sequence of the first event about it; 0: not known
	feed    *feed  // that has its updates, of a user who may not read the log; nil: any
}

// Number returns the run's number in its session; runs count from 1.
func (r *Run) Number() uint32 { return r.number }

// Cancel ends the run at once, or removes it from the queue. A call that has begun may
// still have taken effect.
func (r *Run) Cancel(ctx context.Context) error {
	return r.session.taken(ctx, func() (uint64, error) {
		return r.session.rt.client.Cancel(ctx, r.session.id, client.ControlOptions{Run: r.number})
	})
}

// Answer is what a run came to.
type Answer struct {
	Text   string // of the model's last turn
	Calls  []Call // of all its turns, in the order in which they ended
	Usage  session.UsageTotal
	Cost   int64 // micro-units, by the prices of the config
	Run    uint32
	Turns  uint32
	Finish string // why the model ended its answer, if not by itself: length, content_filter, …
	Cut    bool   // the text may lack its end, or be missing: see Partial
}

// Call is a tool call of a run.
type Call struct {
	Name      string // r1t2c0
	Tool      string // as the model called it
	Arguments string // JSON, as the model wrote it; empty if they are too large for an event
	Status    string // succeeded, failed, cancelled, outcome_unknown, ignored
	Code      string // of a call that did not succeed
	Detail    string
}

// Wait waits for the end of the run, and returns its answer: at once if the run has
// ended, however long ago. When ctx ends, the run goes on.
//
// It fails with a *RunError if the run failed, or was cancelled or interrupted, and with
// a *QuarantinedError if the session is quarantined.
func (r *Run) Wait(ctx context.Context) (*Answer, error) {
	a := &Answer{Run: r.number}
	for u, err := range r.Updates(ctx) {
		if err != nil {
			return nil, err
		}
		switch u := u.(type) {
		case Waiting:
			if u.Cause == causeQuarantined {
				return nil, &QuarantinedError{Reason: u.Detail}
			}
		case ToolEnded:
			a.Calls = append(a.Calls, u.Call)
		case RunEnded:
			a.Turns = max(a.Turns, u.Turns)
			return a.finish(ctx, r.session.rt, u.end)
		case Text:
			if u.Turn != a.Turns {
				a.Text, a.Turns = "", u.Turn
			}
			a.Text += u.Text
		case TextRestarted:
			a.Text = ""
		}
	}
	return nil, fmt.Errorf("the updates of run %d ended", r.number) // they end with RunEnded, or with an error
}

// finish completes the answer of a run that has ended, which has the text of its last turn
// as far as it came.
func (a *Answer) finish(ctx context.Context, rt *Runtime, of *session.RunFinished) (*Answer, error) {
	if of.Lifecycle == "" {
		return nil, fmt.Errorf("run %d ended while this program was not connected, and its end is in the log: %w", of.Run, rt.unread)
	}
	end, text, err := ended(ctx, rt.client, of)
	switch {
	case err == nil && (rt.unread == nil || end.Output != nil || end.Lifecycle != session.Completed):
		a.Text = text
	case rt.unread == nil:
		return nil, fmt.Errorf("read the answer of run %d: %w", of.Run, err)
	default:
		a.Cut = true
	}
	a.Usage, a.Cost, a.Finish = end.Usage, end.Cost, end.FinishReason
	if end.Lifecycle != session.Completed {
		return nil, &RunError{Lifecycle: end.Lifecycle, Code: end.Code, Detail: end.Detail, Answer: a}
	}
	return a, nil
}

// ended returns the end of a run, and its answer.
func ended(ctx context.Context, c *client.Client, of *session.RunFinished) (end client.RunEnd, text string, err error) {
	if end, err = c.Ended(ctx, *of); err == nil {
		text, err = c.Text(ctx, end.Output)
	}
	return end, text, err
}

// begin returns the sequence of the first event about the run.
func (r *Run) begin(ctx context.Context) (uint64, error) {
	if r.began != 0 || r.session.rt.unread != nil {
		return r.began, nil
	}
	return r.session.rt.client.Began(ctx, r.session.id, r.number)
}

// Updates yields what happens in the run, from its request to RunEnded, each time from
// the start. It goes on after a lost connection. Leaving the loop stops nothing; the
// last pair has the error, if there is one, which is that of ctx when ctx ends. A user who
// may not read the log gets what Partial says.
func (r *Run) Updates(ctx context.Context) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		began, err := r.begin(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		all := r.session.updates(ctx, position{seq: began})
		if r.session.rt.unread != nil {
			all = r.told(ctx)
		}
		for u, err := range all {
			if err != nil {
				yield(nil, err)
				return
			}
			if about := u.place().Run; about != r.number && about != 0 { // 0: no session-actor is heard
				continue
			}
			_, ended := u.(RunEnded)
			if !yield(u, nil) || ended {
				return
			}
		}
	}
}
