package client

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// Approval is a call that waits for a person.
type Approval struct {
	Session   string
	Run       uint32
	Call      string // r1t2c0
	ToolID    string
	ToolName  string // that the model called it by
	Arguments string // JSON text as the model wrote it; empty is {}
	ArgsHash  string // of that text: a decision names it
	Deadline  int64  // Unix ms; then the call is refused
}

// DecideOptions are the optional parts of a decision over a call.
type DecideOptions struct {
	ID     string // of the event, at most 64 bytes; empty: a new ULID
	Reason string // the model is shown why a call was denied; at most session.DetailBytesMax bytes

	// Arguments are what Approve lets the call run with, as JSON text, instead
	// of what the model wrote. They are checked as the original ones were, and
	// the model is shown the change.
	Arguments string
}

// Approvals returns the calls of a session that wait for a person, in their
// order; of all sessions if sid is empty. All sessions are those of which the
// notices that are kept say that a call waits, so it takes as long as reading
// all notices; each is then looked at as it is now.
func (c *Client) Approvals(ctx context.Context, sid string) ([]Approval, error) {
	sids := []string{sid}
	if sid == "" {
		var err error
		if sids, err = c.approvalsSaid(ctx); err != nil {
			return nil, err
		}
	}
	var all []Approval
	for _, sid := range sids {
		v, err := c.View(ctx, sid)
		if err != nil {
			return nil, err
		}
		waiting, err := c.approvalsOf(ctx, &v)
		if err != nil {
			return nil, err
		}
		all = append(all, waiting...)
	}
	return all, nil
}

// approvalsOf returns the calls of a view that wait for a person.
func (c *Client) approvalsOf(ctx context.Context, v *session.View) (waiting []Approval, err error) {
	if v.Batch == nil || v.Run == nil {
		return nil, nil
	}
	for _, call := range v.Batch.Calls {
		if call.Status != session.CallAwaiting {
			continue
		}
		a := Approval{
			Session: v.Session, Run: v.Run.Number, Call: call.Effect, ToolID: call.ToolID, ToolName: call.ToolName,
			Arguments: call.Arguments, ArgsHash: call.ArgsHash, Deadline: call.Deadline,
		}
		if codec.Sum([]byte(a.Arguments)).String() != a.ArgsHash { // too large for the view
			if a.Arguments, err = c.Arguments(ctx, v.Session, a.Call); err != nil {
				return nil, err
			}
			if codec.Sum([]byte(a.Arguments)).String() != a.ArgsHash {
				return nil, fmt.Errorf("%s of session %s changed while it was read: read it again", a.Call, a.Session)
			}
		}
		waiting = append(waiting, a)
	}
	return waiting, nil
}

// noticesIdle is how long the end of the stream of notices is waited for when
// it is none that can be read.
const noticesIdle = 5 * time.Second

// approvalsSaid returns the sessions that have asked for an approval in a run
// that has not ended, as far as notices are kept.
func (c *Client) approvalsSaid(ctx context.Context) ([]string, error) {
	last, err := c.bus.LastNotice(ctx)
	if err != nil || last == 0 {
		return nil, err
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	idle := time.AfterFunc(noticesIdle, stop)
	defer idle.Stop()
	var sids []string
	for raw, err := range c.bus.FollowNotices(reading, "", 1) {
		if err != nil && ctx.Err() == nil && reading.Err() != nil {
			break
		}
		if err != nil {
			return nil, err
		}
		idle.Reset(noticesIdle)
		var n Notice
		at := slices.Index(sids, raw.Session)
		switch _ = json.Unmarshal(raw.Payload, &n); n.Type { // what can't be read is of no type
		case session.NoticeApprovalRequested:
			if at < 0 {
				sids = append(sids, raw.Session)
			}
		case session.NoticeRunFinished:
			if at >= 0 {
				sids = slices.Delete(sids, at, at+1)
			}
		}
		if raw.Seq >= last {
			break
		}
	}
	return sids, nil
}

// Approve lets a call run that waits for a person, through the door approve. It
// is a decision over the arguments that a.ArgsHash names: if the call waits
// with others, or for nobody any more, the session refuses it as
// approval_stale. Only Session, Call and ArgsHash of a count. Taken returns the
// outcome.
func (c *Client) Approve(ctx context.Context, a Approval, o DecideOptions) (seq uint64, err error) {
	return c.decide(ctx, a, session.DecisionApprove, o)
}

// Deny refuses a call that waits for a person, as Approve lets it run. The
// model is shown the reason, and the run continues.
func (c *Client) Deny(ctx context.Context, a Approval, o DecideOptions) (seq uint64, err error) {
	if o.Arguments != "" {
		return 0, fmt.Errorf("deny %s: arguments belong to a call that is approved", a.Call)
	}
	return c.decide(ctx, a, session.DecisionDeny, o)
}

func (c *Client) decide(ctx context.Context, a Approval, decision string, o DecideOptions) (uint64, error) {
	return c.publish(ctx, session.DoorApprove, a.Session, session.TypeApprovalDecided, session.ApprovalDecided{
		Call: a.Call, ArgsHash: a.ArgsHash, Decision: decision, Arguments: o.Arguments, Reason: o.Reason,
	}, o.ID)
}
