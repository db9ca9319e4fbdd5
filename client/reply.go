package client

import (
	"context"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// Question is a call that waits for a reply.
type Question struct {
	Session   string
	Run       uint32
	Call      string // r1t2c0
	ToolID    string
	ToolName  string // as the model called it
	Arguments string // JSON text; empty is {}
	ArgsHash  string // of Arguments; a reply names it
	By        string // who may answer: planner.ByApprovers or planner.ByClients
	Deadline  int64  // Unix ms, after which the call fails

	Parents []ParentCall // above a session that is a child: its own first, the root's last
}

// ReplyOptions are the optional parts of a reply.
type ReplyOptions struct {
	ID string // of the event, at most 64 bytes; empty: a new ULID

	// Declined, in place of an output, says why nobody answers: the call fails, and the
	// model is shown it. At most session.DetailBytesMax bytes.
	Declined string

	// AsClient answers through the door in, as a user may who is no approver. The session
	// then takes it only for calls that clients may answer.
	AsClient bool
}

// Questions returns the calls of a session that wait for a reply, in order; of all
// sessions if sid is empty. It reads what Approvals reads.
func (c *Client) Questions(ctx context.Context, sid string) ([]Question, error) {
	if sid == "" {
		return c.QuestionsNamed(ctx, "")
	}
	return c.questionsIn(ctx, []string{sid})
}

// QuestionsNamed is Questions for the sessions whose names begin with a text.
func (c *Client) QuestionsNamed(ctx context.Context, beginning string) ([]Question, error) {
	sids, err := c.sessionsThat(ctx, beginning, waitsWithReply)
	if err != nil {
		return nil, err
	}
	return c.questionsIn(ctx, sids)
}

// waitsWithReply are the values of waits_for with which a call may wait for a reply.
var waitsWithReply = append([]string{"reply"}, waitsWithApproval...)

func (c *Client) questionsIn(ctx context.Context, sids []string) ([]Question, error) {
	return inViews(ctx, c, sids, c.questionsOf)
}

func (c *Client) questionsOf(ctx context.Context, v *session.View) (all []Question, err error) {
	if v.Batch == nil || v.Run == nil {
		return nil, nil
	}
	parents, err := c.parentsOf(ctx, v)
	if err != nil {
		return nil, err
	}
	for i := range v.Batch.Calls {
		call := &v.Batch.Calls[i]
		if call.Kind != planner.ExecutorReply || call.Status != session.CallOpen {
			continue
		}
		q := Question{
			Session: v.Session, Run: v.Run.Number, Call: call.Effect, ToolID: call.ToolID, ToolName: call.ToolName,
			ArgsHash: call.ArgsHash, By: call.By, Deadline: call.Deadline, Parents: parents,
		}
		if q.Arguments, err = c.argumentsOf(ctx, v.Session, call); err != nil {
			return nil, err
		}
		all = append(all, q)
	}
	return all, nil
}

// argumentsOf returns the arguments of a call that somebody decides over or answers, also
// if they are too large for its view.
func (c *Client) argumentsOf(ctx context.Context, sid string, call *session.ViewCall) (string, error) {
	if codec.Sum([]byte(call.Arguments)).String() == call.ArgsHash {
		return call.Arguments, nil
	}
	arguments, err := c.Arguments(ctx, sid, call.Effect)
	if err == nil && codec.Sum([]byte(arguments)).String() != call.ArgsHash {
		err = fmt.Errorf("%s of session %s changed while it was read: read it again", call.Effect, sid)
	}
	return arguments, err
}

// Reply answers a call that waits for it, through the door approve. The session refuses
// the reply as stale if the call has a result already or waits with other arguments than
// those of q.ArgsHash, and as invalid_data if the output does not fit the call's schema:
// then the call continues to wait. Of q, only Session, Call and ArgsHash count. Taken
// returns the outcome.
func (c *Client) Reply(ctx context.Context, q Question, output session.Content, o ReplyOptions) (seq uint64, err error) {
	reply := session.ReplyGiven{Call: q.Call, ArgsHash: q.ArgsHash, Declined: o.Declined}
	if o.Declined == "" {
		reply.Output = &output
	}
	door := session.DoorApprove
	if o.AsClient {
		door = session.DoorIn
	}
	return c.publish(ctx, door, q.Session, session.TypeReplyGiven, reply, o.ID)
}
