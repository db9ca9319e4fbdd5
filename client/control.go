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
	Operator bool   // publish through the door ctl instead of in
	Files    []File // of a steer and an edit, as RunOptions.Files: after the text, which may then be empty
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

// errReason refuses a reason that the event has no field for.
var errReason = errors.New("reason: belongs to cancel, interrupt, pause, resume and the end of a run")

// errFiles refuses files that the event has no field for.
var errFiles = errors.New("files: belong to the input of a run, a steer or an edit")

// ask publishes a request about a run that has no input.
func (c *Client) ask(ctx context.Context, sid, typ string, body any, o ControlOptions) (seq uint64, err error) {
	if len(o.Files) > 0 {
		return 0, errFiles
	}
	return c.publish(ctx, o.door(), sid, typ, body, o.ID)
}

// Steer gives the active run more input before its next turn: text, and the files
// of o. A run that waits for input continues with it. Without an active run it
// starts one, so End waits for its outcome as for a request's. If a run ends before
// it uses the steer, the steer becomes a run of its own at the head of the queue; a
// cancelled run drops it, and lists it in RunEnd.Untaken.
//
// Like all controls it returns the event's sequence in the log; Taken returns the
// outcome. It is safe to call it again with the same ID.
func (c *Client) Steer(ctx context.Context, sid, text string, o ControlOptions) (seq uint64, err error) {
	if o.Reason != "" {
		return 0, errReason
	}
	input, err := c.input(ctx, text, nil, o.Files)
	if err != nil {
		return 0, err
	}
	return c.publish(ctx, o.door(), sid, session.TypeSteerRequested, session.SteerRequested{Input: input, Run: o.Run}, o.ID)
}

// Cancel ends a run at once, or removes a queued one. Its open effects are
// withdrawn; a tool call that was published may still have taken effect.
func (c *Client) Cancel(ctx context.Context, sid string, o ControlOptions) (seq uint64, err error) {
	return c.ask(ctx, sid, session.TypeRunCancelRequested, o.control(), o)
}

// Interrupt ends the active run when its open effects are settled.
func (c *Client) Interrupt(ctx context.Context, sid string, o ControlOptions) (seq uint64, err error) {
	return c.ask(ctx, sid, session.TypeRunInterrupt, o.control(), o)
}

// Pause keeps the active run from opening effects until it is resumed. Open
// effects may settle; the run's deadline is suspended, those of approvals are
// not.
func (c *Client) Pause(ctx context.Context, sid string, o ControlOptions) (seq uint64, err error) {
	return c.ask(ctx, sid, session.TypeRunPauseRequested, o.control(), o)
}

// Resume continues a paused run. A run that its budget paused needs a larger one:
// budget replaces the whole budget, through the door ctl. Nil leaves the budget
// unchanged.
func (c *Client) Resume(ctx context.Context, sid string, budget *session.Budget, o ControlOptions) (seq uint64, err error) {
	o.Operator = o.Operator || budget != nil
	body := session.RunResumeRequested{Budget: budget, Reason: o.Reason, Run: o.Run}
	return c.ask(ctx, sid, session.TypeRunResumeRequested, body, o)
}

// EditRun gives a queued run, o.Run, another input: text and the files of o.
func (c *Client) EditRun(ctx context.Context, sid, text string, o ControlOptions) (seq uint64, err error) {
	switch {
	case o.Reason != "":
		return 0, errReason
	case o.Run == 0:
		return 0, errors.New("edit: name a queued run by its number")
	}
	input, err := c.input(ctx, text, nil, o.Files)
	if err != nil {
		return 0, err
	}
	return c.publish(ctx, o.door(), sid, session.TypeRunEdited, session.RunEdited{Input: input, Run: o.Run}, o.ID)
}

// CompleteRun ends a run of completion explicit that waits for input: its
// output is the model's last answer. o.Reason is kept as its detail.
func (c *Client) CompleteRun(ctx context.Context, sid string, o ControlOptions) (seq uint64, err error) {
	return c.ask(ctx, sid, session.TypeRunCompleted, session.RunEnded{Detail: o.Reason, Run: o.Run}, o)
}

// FailRun ends a run of completion explicit that waits for input as failed,
// with a code that programs read (empty: explicit) and o.Reason as its detail.
func (c *Client) FailRun(ctx context.Context, sid, code string, o ControlOptions) (seq uint64, err error) {
	body := session.RunEnded{Code: code, Detail: o.Reason, Run: o.Run}
	return c.ask(ctx, sid, session.TypeRunFailed, body, o)
}

// Compact requests a summary of the earlier part of a conversation, through the door ctl:
// the next turn begins with it, and is not shown the messages that it covers. Compact
// returns when the request is in the log. A session without a conversation rejects it.
func (c *Client) Compact(ctx context.Context, sid string, request session.CompactRequested) (seq uint64, err error) {
	return c.publish(ctx, session.DoorCtl, sid, session.TypeCompactRequested, request, "")
}

// CloseSession closes a session for good, through the door ctl: its active run
// and the queued ones are cancelled, and it accepts no further events. id is the
// event's; empty: a new ULID.
func (c *Client) CloseSession(ctx context.Context, sid, id string) (seq uint64, err error) {
	return c.publish(ctx, session.DoorCtl, sid, session.TypeSessionClosed, session.SessionClosed{}, id)
}
