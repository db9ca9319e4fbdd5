package client

import (
	"context"
	"errors"

	"github.com/refold/refold/actors/session"
)

// ControlOptions are the optional parts of a request about a run.
type ControlOptions struct {
	ID       string // of the event, at most 64 bytes; empty: a new ULID
	Run      uint32 // 0: the active one
	Reason   string // for people; at most session.DetailBytesMax bytes. A steer and an edit have none
	Operator bool   // ask through the door ctl instead of in
}

func (o ControlOptions) door() session.Door {
	if o.Operator {
		return session.DoorCtl
	}
	return session.DoorIn
}

// control is the body of requests that have no other fields.
func (o ControlOptions) control() session.RunControl {
	return session.RunControl{Reason: o.Reason, Run: o.Run}
}

// errReason refuses a reason where no event has a place for it.
var errReason = errors.New("reason: belongs to cancel, interrupt, pause, resume and the end of a run")

// Steer gives the active run more input before its next turn; a run that waits
// for input continues with it. Without an active run it starts one, so End
// waits for its outcome as for a request's. A run that ends before it takes the
// steer leaves it as a run of its own, at the head of the queue; a cancelled
// run drops it, and lists it in RunEnd.Untaken.
//
// As every call of this kind it returns with the event's sequence in the log;
// see Taken for what the session made of it. Asking again with the same ID is
// safe.
func (c *Client) Steer(ctx context.Context, sid, text string, o ControlOptions) (seq uint64, err error) {
	if o.Reason != "" {
		return 0, errReason
	}
	input, err := c.content(ctx, text)
	if err != nil {
		return 0, err
	}
	return c.publish(ctx, o.door(), sid, session.TypeSteerRequested, session.SteerRequested{Input: input, Run: o.Run}, o.ID)
}

// Cancel ends a run at once, or takes a queued one out. What it has open is
// withdrawn; a tool call that was asked may have taken effect all the same.
func (c *Client) Cancel(ctx context.Context, sid string, o ControlOptions) (seq uint64, err error) {
	return c.publish(ctx, o.door(), sid, session.TypeRunCancelRequested, o.control(), o.ID)
}

// Interrupt lets what the active run has open settle, and ends it then.
func (c *Client) Interrupt(ctx context.Context, sid string, o ControlOptions) (seq uint64, err error) {
	return c.publish(ctx, o.door(), sid, session.TypeRunInterrupt, o.control(), o.ID)
}

// Pause keeps the active run from asking anything new until it is resumed.
// What is open may settle; the run's deadline stands still, and those of
// approvals don't.
func (c *Client) Pause(ctx context.Context, sid string, o ControlOptions) (seq uint64, err error) {
	return c.publish(ctx, o.door(), sid, session.TypeRunPauseRequested, o.control(), o.ID)
}

// Resume lets a paused run go on where it was. A run that its budget paused
// needs a larger one: budget is what holds from then on, as a whole, and goes
// through the door ctl. Nil leaves the budget as it is.
func (c *Client) Resume(ctx context.Context, sid string, budget *session.Budget, o ControlOptions) (seq uint64, err error) {
	o.Operator = o.Operator || budget != nil
	body := session.RunResumeRequested{Budget: budget, Reason: o.Reason, Run: o.Run}
	return c.publish(ctx, o.door(), sid, session.TypeRunResumeRequested, body, o.ID)
}

// EditRun gives a queued run, o.Run, another input.
func (c *Client) EditRun(ctx context.Context, sid, text string, o ControlOptions) (seq uint64, err error) {
	switch {
	case o.Reason != "":
		return 0, errReason
	case o.Run == 0:
		return 0, errors.New("edit: name a queued run by its number")
	}
	input, err := c.content(ctx, text)
	if err != nil {
		return 0, err
	}
	return c.publish(ctx, o.door(), sid, session.TypeRunEdited, session.RunEdited{Input: input, Run: o.Run}, o.ID)
}

// CompleteRun ends a run of completion explicit that waits for input: its
// output is the model's last answer. o.Reason is kept as its detail.
func (c *Client) CompleteRun(ctx context.Context, sid string, o ControlOptions) (seq uint64, err error) {
	return c.publish(ctx, o.door(), sid, session.TypeRunCompleted, session.RunEnded{Detail: o.Reason, Run: o.Run}, o.ID)
}

// FailRun ends a run of completion explicit that waits for input as failed,
// with a code that programs read (empty: explicit) and o.Reason as its detail.
func (c *Client) FailRun(ctx context.Context, sid, code string, o ControlOptions) (seq uint64, err error) {
	body := session.RunEnded{Code: code, Detail: o.Reason, Run: o.Run}
	return c.publish(ctx, o.door(), sid, session.TypeRunFailed, body, o.ID)
}

// CloseSession closes a session for good, through the door ctl: its active run
// and the queued ones are cancelled, and it takes no other event any more. id
// is the event's; empty: a new ULID.
func (c *Client) CloseSession(ctx context.Context, sid, id string) (seq uint64, err error) {
	return c.publish(ctx, session.DoorCtl, sid, session.TypeSessionClosed, session.SessionClosed{}, id)
}
