package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/space"
)

// Approval is a call that waits for a person.
type Approval struct {
	Session   string
	Run       uint32
	Call      string // r1t2c0
	ToolID    string
	ToolName  string // as the model called it
	Arguments string // JSON text as the model wrote it; empty is {}
	ArgsHash  string // of Arguments; a decision names it
	Deadline  int64  // Unix ms, after which the call is refused

	// Code and Detail say why the call would not run if it was approved now: its tool
	// is gone from the registry, say, or no bridge serves it. Empty: it would.
	Code, Detail string

	Pack *ApprovalPack // that the call would enable; nil: none

	Parents []ParentCall // above a session that is a child: its own first, the root's last
}

// ParentCall is a call that a session carries out, as a child of another one.
type ParentCall struct {
	Session string `json:"session"` // whose call it is
	Call    string `json:"call"`
}

// parentsOf returns the calls above a session, the nearest first. They end below a parent
// that was deleted.
func (c *Client) parentsOf(ctx context.Context, v *session.View) (all []ParentCall, err error) {
	for of := v.Parent; of != nil && len(all) < session.ChildDepthMax; {
		all = append(all, ParentCall{of.Session, of.Call})
		if of.Session == of.Root {
			break
		}
		above, err := c.ViewNow(ctx, of.Session)
		if errors.Is(err, ErrNoSession) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("the parents of session %s: %w", v.Session, err)
		}
		of = above.Parent
	}
	return all, nil
}

// ApprovalPack is the pack that a call of extensions_enable would add, and all of it
// that reaches a model.
type ApprovalPack struct {
	Manifest *space.Manifest
	Hash     string // of Manifest; a decision names it
	Signer   string // the key whose signature makes it trusted; empty: the grant names its hash
	Texts    []ApprovalText
}

// ApprovalText is a text of a pack that models are shown.
type ApprovalText struct {
	space.File
	Text   string
	Unread error // why Text could not be read
}

// DecideOptions are the optional parts of a decision over a call.
type DecideOptions struct {
	ID     string // of the event, at most 64 bytes; empty: a new ULID
	Reason string // of a denial, which the model is shown; at most session.DetailBytesMax bytes

	// Arguments, if given, replace the model's arguments of an approved call, as
	// JSON text. The session checks them as it did the original ones, and the
	// model is shown the change.
	Arguments string
}

// Approvals returns the calls of a session that wait for a person, in order; of
// all sessions if sid is empty. It finds these by their latest notices, and then
// requests the views of those in whose active run a call may wait.
func (c *Client) Approvals(ctx context.Context, sid string) ([]Approval, error) {
	if sid == "" {
		return c.ApprovalsNamed(ctx, "")
	}
	return c.approvalsIn(ctx, []string{sid})
}

// ApprovalsNamed is Approvals for the sessions whose names begin with a text.
func (c *Client) ApprovalsNamed(ctx context.Context, beginning string) ([]Approval, error) {
	sids, err := c.sessionsThat(ctx, beginning, waitsWithApproval)
	if err != nil {
		return nil, err
	}
	return c.approvalsIn(ctx, sids)
}

// sessionsThat returns the sessions whose names begin with a text and that wait for one of
// these, sorted.
func (c *Client) sessionsThat(ctx context.Context, beginning string, waits []string) (sids []string, err error) {
	for row, err := range c.Index(ctx, IndexOptions{Name: beginning}) {
		switch {
		case err != nil:
			return nil, err
		case slices.Contains(waits, row.WaitsFor):
			sids = append(sids, row.Session)
		}
	}
	slices.Sort(sids)
	return sids, nil
}

// waitsWithApproval are the values of a summary's waits_for with which a call may wait for
// a person. A summary names an open effect before a call that waits for a person.
var waitsWithApproval = []string{"approval", "tools", "host_loop", "space"}

// viewsAtOnce is how many views are requested at once.
const viewsAtOnce = 8

func (c *Client) approvalsIn(ctx context.Context, sids []string) ([]Approval, error) {
	return inViews(ctx, c, sids, c.approvalsOf)
}

// inViews returns what fn finds in the views of sessions, in their order.
func inViews[T any](ctx context.Context, c *Client, sids []string, fn func(context.Context, *session.View) ([]T, error)) ([]T, error) {
	found, errs := make([][]T, len(sids)), make([]error, len(sids))
	slots := make(chan struct{}, viewsAtOnce)
	var all sync.WaitGroup
	for i, sid := range sids {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			v, err := c.View(ctx, sid)
			if err == nil {
				found[i], err = fn(ctx, &v)
			}
			errs[i] = err
		})
	}
	all.Wait()
	return slices.Concat(found...), errors.Join(errs...)
}

func (c *Client) approvalsOf(ctx context.Context, v *session.View) (waiting []Approval, err error) {
	if v.Batch == nil || v.Run == nil {
		return nil, nil
	}
	parents, err := c.parentsOf(ctx, v)
	if err != nil {
		return nil, err
	}
	for _, call := range v.Batch.Calls {
		if call.Status != session.CallAwaiting || call.ArgsHash == "" { // a pack is being read: nobody can decide yet
			continue
		}
		a := Approval{
			Session: v.Session, Run: v.Run.Number, Call: call.Effect, ToolID: call.ToolID, ToolName: call.ToolName,
			ArgsHash: call.ArgsHash, Deadline: call.Deadline,
			Code: call.Code, Detail: call.Detail, Parents: parents,
		}
		if a.Arguments, err = c.argumentsOf(ctx, v.Session, &call); err != nil {
			return nil, err
		}
		if call.Pack != nil {
			if a.Pack, err = c.packOf(ctx, v.Session, a.Call, call.Pack); err != nil {
				return nil, err
			}
		}
		waiting = append(waiting, a)
	}
	return waiting, nil
}

// packOf returns the pack that a waiting call would enable, with its texts.
func (c *Client) packOf(ctx context.Context, sid, call string, shown *session.ApprovalPack) (*ApprovalPack, error) {
	state, err := c.latest(ctx, sid)
	if err != nil {
		return nil, fmt.Errorf("the pack of %s: %w", call, err)
	}
	m := state.ReadPack(call)
	if m == nil || m.Hash().String() != shown.Hash {
		return nil, fmt.Errorf("%s of session %s changed while it was read: read it again", call, sid)
	}
	p := &ApprovalPack{Manifest: m, Hash: shown.Hash, Signer: shown.Signer}
	for _, i := range m.Texts() {
		text := ApprovalText{File: m.Files[i]}
		content, err := c.Blob(ctx, text.Ref)
		text.Text, text.Unread = string(content), err
		p.Texts = append(p.Texts, text)
	}
	return p, nil
}

// Approve lets a call that waits for a person run, through the door approve. The
// decision is about the arguments with a.ArgsHash: if the call has others, or no
// longer waits, the session refuses the decision as approval_stale; and if it would
// enable another pack than a.Pack. Of a, only Session, Call, ArgsHash and Pack.Hash
// count. Taken returns the outcome.
func (c *Client) Approve(ctx context.Context, a Approval, o DecideOptions) (seq uint64, err error) {
	return c.decide(ctx, a, session.DecisionApprove, o)
}

// Deny refuses a call that waits for a person, under the same conditions as
// Approve. The model is shown the reason, and the run continues.
func (c *Client) Deny(ctx context.Context, a Approval, o DecideOptions) (seq uint64, err error) {
	if o.Arguments != "" {
		return 0, fmt.Errorf("deny %s: only an approval may change arguments", a.Call)
	}
	return c.decide(ctx, a, session.DecisionDeny, o)
}

func (c *Client) decide(ctx context.Context, a Approval, decision string, o DecideOptions) (uint64, error) {
	decided := session.ApprovalDecided{Call: a.Call, ArgsHash: a.ArgsHash, Decision: decision, Arguments: o.Arguments, Reason: o.Reason}
	if a.Pack != nil {
		decided.Manifest = a.Pack.Hash
	}
	return c.publish(ctx, session.DoorApprove, a.Session, session.TypeApprovalDecided, decided, o.ID)
}
