package client

import (
	"context"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// RunEnd is the end of a run.
type RunEnd struct {
	Run          uint32
	Lifecycle    session.Lifecycle
	Code         string           // of a failure
	Detail       string           // of a failure, for people
	FinishReason string           // why the answer ended, if not by session.FinishStop
	Output       *session.Content // the model's answer; nil: none
	Usage        session.UsageTotal
	Cost         int64               // micro-units, by the prices of the run's config
	OverBudget   *session.OverBudget // nil: it ended within its budget
	Untaken      []uint64            // sequences of the steers that a cancelled run did not take
}

// RejectedError is returned if the session refused a request.
type RejectedError struct {
	Code   session.Rejection
	Detail string
}

func (e *RejectedError) Error() string {
	if e.Detail == "" {
		return "rejected: " + string(e.Code)
	}
	return fmt.Sprintf("rejected: %s: %s", e.Code, e.Detail)
}

// QuarantinedError says that the session stopped at a fault that would do harm: its
// events are kept, and an operator must act.
type QuarantinedError struct{ Reason string }

func (e *QuarantinedError) Error() string { return "the session is quarantined: " + e.Reason }

// End waits for the end of the run that the event at seq became or steered. A
// request that repeats an earlier one, with its submission or its id, belongs to that
// one's run: if the run has ended, however long ago, End returns at once.
//
// It reads notices from a sequence of their stream that was current before the
// request. each, if not nil, is called for every notice on the way, but not if
// the run had ended before the request.
//
// It fails with a *RejectedError if the session refused the request, and with a
// *QuarantinedError if the session is quarantined. The run continues when ctx ends.
func (c *Client) End(ctx context.Context, sid string, seq, from uint64, each func(Notice)) (RunEnd, error) {
	p, err := c.runStatus(ctx, sid, seq)
	switch {
	case isUnfoldable(err): // only the notices show the run, if the request is a run of its own
	case err != nil:
		return RunEnd{}, err
	case p.ended != nil && (each == nil || p.endedAt < seq): // otherwise its notices are still to be read
		return c.Ended(ctx, *p.ended)
	}
	wait := awaited{seq: seq, run: p.run}
	for n, err := range c.Notices(ctx, sid, from) {
		if err != nil {
			return RunEnd{}, err
		}
		if each != nil {
			each(n)
		}
		finished, err := wait.hear(n.Body())
		switch {
		case err != nil:
			return RunEnd{}, err
		case finished != nil:
			return c.Ended(ctx, *finished)
		}
	}
	return RunEnd{}, fmt.Errorf("the notices of %s ended", sid)
}

// awaited is a run whose end is awaited: that of the request at seq.
type awaited struct {
	seq uint64
	run uint32 // 0: not known yet
}

// hear takes the body of the next notice. It returns the end of the run, or why
// there will be none.
func (a *awaited) hear(body any) (*session.RunFinished, error) {
	switch d := body.(type) {
	case session.RunPlaced:
		if a.run == 0 && d.Seq == a.seq {
			a.run = d.Run
		}
	case session.EventRejected:
		if a.run == 0 && d.Seq == a.seq { // else it repeats another request
			return nil, &RejectedError{Code: d.Code, Detail: d.Detail}
		}
	case session.SessionQuarantined:
		return nil, &QuarantinedError{Reason: d.Reason}
	case session.RunFinished:
		if a.run != 0 && d.Run == a.run {
			return &d, nil
		}
	}
	return nil, nil
}

// RunOf returns the number of the run that the event at seq became or steered, or
// of the submission that it repeats. It fails as End does, and doesn't wait.
func (c *Client) RunOf(ctx context.Context, sid string, seq uint64) (uint32, error) {
	p, err := c.runStatus(ctx, sid, seq)
	return p.run, err
}

// Placed returns the run of the event at seq as RunOf does, and where the run began:
// the sequence of the first event about it, from which a Viewer shows all of it. That
// is seq, unless the event steered the run or repeats another request.
func (c *Client) Placed(ctx context.Context, sid string, seq uint64) (run uint32, began uint64, err error) {
	p, err := c.runStatus(ctx, sid, seq)
	if err != nil || p.placed {
		return p.run, seq, err
	}
	began, err = c.Began(ctx, sid, p.run)
	return p.run, began, err
}

// Began returns the sequence of the first event about a run. It folds the session
// from its first event, and fails with ErrNoRun if there is no such run.
func (c *Client) Began(ctx context.Context, sid string, run uint32) (seq uint64, err error) {
	h := newHistory(0)
	err = c.advance(ctx, sid, h, func(*foldedEvent) bool {
		seq = h.placed[run]
		return seq == 0
	})
	if err == nil && seq == 0 {
		err = fmt.Errorf("%w: %d of session %s", ErrNoRun, run, sid)
	}
	return seq, err
}

func runEndOf(d session.RunFinished) RunEnd {
	return RunEnd{
		Run: d.Run, Lifecycle: d.Lifecycle, Code: d.Code, Detail: d.Detail, FinishReason: d.FinishReason, Output: d.Output,
		Usage: d.Usage, Cost: d.Cost, OverBudget: d.OverBudget, Untaken: d.Untaken,
	}
}

// Ended returns the end that a RunFinished tells, with the answer, which it may have to
// read from the log.
func (c *Client) Ended(ctx context.Context, d session.RunFinished) (RunEnd, error) {
	end := runEndOf(d)
	if d.OutputSeq == 0 {
		return end, nil
	}
	// The answer was too large for the notice, or earlier than the end; it is in
	// the event that settled the turn.
	e, err := c.bus.EventAt(ctx, d.OutputSeq)
	if err != nil {
		return end, fmt.Errorf("read the answer of run %d: %w", d.Run, err)
	}
	text, _, isAnswer := answerIn(e)
	if !isAnswer {
		return end, fmt.Errorf("read the answer of run %d: event %d is not an answer of a model that can be read", d.Run, d.OutputSeq)
	}
	end.Output = text
	return end, nil
}

func envelopeOf(e session.Event) (env session.Envelope, err error) {
	canonical, err := codec.Canonicalize(e.Payload)
	if err == nil {
		err = codec.Decode(canonical, &env)
	}
	if err != nil {
		err = fmt.Errorf("event %d: %w", e.Seq, err)
	}
	return env, err
}
