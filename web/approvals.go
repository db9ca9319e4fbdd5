package web

import (
	"net/http"
	"unicode/utf8"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

// listApprovals lists the calls that wait for a person.
func (c *call) listApprovals() (any, error) {
	var waiting []client.Approval
	var err error
	if id := c.r.URL.Query().Get("session"); id != "" {
		if err := c.enter(id); err != nil {
			return nil, err
		}
		if err := c.exists(); err != nil {
			return nil, err
		}
		waiting, err = c.client.Approvals(c.ctx(), c.sid)
	} else {
		waiting, err = c.client.ApprovalsNamed(c.ctx(), c.caller.Scope)
	}
	if err != nil {
		return nil, err
	}
	list := ApprovalList{Approvals: []Approval{}}
	for i := range waiting {
		list.Approvals = append(list.Approvals, c.approval(&waiting[i]))
	}
	return list, nil
}

// approval returns a waiting call as JSON.
func (c *call) approval(a *client.Approval) Approval {
	shown := Approval{
		Session: c.strip(a.Session), Run: a.Run, Call: a.Call, ToolID: a.ToolID, Tool: a.ToolName,
		Arguments: a.Arguments, ArgsHash: a.ArgsHash, Deadline: a.Deadline, Code: a.Code, Detail: a.Detail,
	}
	shown.Parents = c.parents(a.Parents)
	if a.Pack != nil {
		shown.Pack = &PackShown{Name: a.Pack.Manifest.Space, Manifest: a.Pack.Hash, Signer: a.Pack.Signer, Texts: map[string]string{}}
		for i := range a.Pack.Texts {
			shown.Pack.Texts[a.Pack.Texts[i].Path] = a.Pack.Texts[i].Text
		}
	}
	return shown
}

// parents returns the calls above a session as JSON.
func (c *call) parents(of []client.ParentCall) (all []ParentCall) {
	for _, p := range of {
		all = append(all, ParentCall{c.strip(p.Session), p.Call})
	}
	return all
}

// decide decides over a call that waits.
func (c *call) decide() (any, error) {
	var body Decision
	if err := c.decode(&body, false); err != nil {
		return nil, err
	}
	name := c.r.PathValue("call")
	if len(name) > session.IDBytesMax || !utf8.ValidString(name) {
		return nil, problem(http.StatusNotFound, CodeNoCall, "the session has no call %q", cut(name))
	}
	if err := c.exists(); err != nil {
		return nil, err
	}
	o := client.DecideOptions{Reason: body.Reason, Arguments: body.Arguments}
	var err error
	if o.ID, err = c.key("decide", name, body.Decision, body.ArgsHash, body.Manifest, body.Arguments, body.Reason); err != nil {
		return nil, err
	}
	a := client.Approval{Session: c.sid, Call: name, ArgsHash: body.ArgsHash}
	if body.Manifest != "" {
		a.Pack = &client.ApprovalPack{Hash: body.Manifest}
	}
	switch {
	case body.Decision == session.DecisionApprove:
		return c.taken(c.inner.Approver().Approve(c.ctx(), a, o))
	case body.Decision != session.DecisionDeny:
		return nil, problem(http.StatusBadRequest, CodeBadRequest, "decision: it is %s or %s", session.DecisionApprove, session.DecisionDeny)
	case body.Arguments != "":
		return nil, problem(http.StatusBadRequest, CodeBadRequest, "arguments: only an approval may change them")
	}
	return c.taken(c.inner.Approver().Deny(c.ctx(), a, o))
}
