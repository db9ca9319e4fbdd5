package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
)

// The protocol AG-UI 1.0, for pages with HttpAgent of @ag-ui/client. docs/http.md says
// what a page needs to know.

var aguiRoutes = []route{{
	method: http.MethodPost, path: "/v1/ag-ui/{agent}", name: "runAGUI", right: RightAsk, stream: true, long: true, takes: []string{"application/json"},
	doc: "Runs an agent for a page that speaks AG-UI 1.0: takes a RunAgentInput, and streams the protocol's events. The thread is a session, and the run is a submission. Also needs the right `read`, and `approve` for a request with `resume`.",
	do:  (*call).runAGUI,
}}

// runAGUI runs an agent, and streams what a page shows of the run.
func (c *call) runAGUI() (any, error) {
	if !c.caller.may(RightRead) {
		return nil, problem(http.StatusForbidden, CodeForbidden, "this token lacks the right %s: the answer tells of the whole session", RightRead)
	}
	in, err := c.aguiInput()
	if err != nil {
		return nil, err
	}
	a := &aguiRun{c: c, in: in, results: map[string]bool{}, replies: map[string]bool{}, gone: func() {}}
	defer func() { a.gone() }()
	if err := c.bounded(a.begin); err != nil {
		return nil, err
	}
	if a.s, err = c.stream(); err != nil {
		return nil, err
	}
	defer a.s.close()
	a.s.last = a.failed
	return nil, a.stream()
}

// bounded does what comes before a stream, within the time of an operation.
func (c *call) bounded(do func() error) error {
	outer := c.r
	ctx, cancel := context.WithTimeout(c.ctx(), c.o.Limits.Operation)
	defer cancel()
	c.r = outer.WithContext(ctx)
	defer func() { c.r = outer }()
	return do()
}

// begin requests the run, decides over calls, or finds the run that is active.
func (a *aguiRun) begin() error {
	agent, err := a.c.agent(a.c.r.PathValue("agent"))
	if err == nil {
		err = a.c.enter(a.in.Thread)
	}
	if err == nil {
		a.gone, err = a.c.keep()
	}
	switch {
	case err != nil:
		return err
	case len(a.in.Resume) > 0:
		return a.decide()
	case len(a.in.Results) > 0:
		if replies, err := a.reply(); err != nil || replies {
			return cmp.Or(err, a.join())
		}
	}
	if a.in.Message != nil {
		return a.ask(agent)
	}
	return a.join()
}

// ask requests a run. If it is known already, the page may have a part of its messages.
func (a *aguiRun) ask(agent string) error {
	c := a.c
	text, o, err := c.aguiContent(a.in.Message.Content)
	if err != nil {
		return err
	}
	if o.Submission = a.in.Run; len(o.Submission) > session.IDBytesMax {
		o.Submission = codec.Sum([]byte(o.Submission)).String()
	}
	before, err := c.client.LastEvent(c.ctx())
	if err != nil {
		return err
	}
	tools, err := a.tools(agent)
	if err != nil {
		return err
	}
	asked, err := c.ask(agent, text, o, tools...)
	if err != nil {
		return err
	}
	a.ignored = append(a.ignored, asked.Left...)
	a.run, a.after = asked.Run, c.inner.Before(asked.Began)
	if asked.Began > before {
		return nil
	}
	history, err := c.aguiHistory()
	if err != nil {
		return err
	}
	if a.shown, err = history.until(asked.Run, asked.Began); err != nil {
		return err
	}
	if id := aguiLogID(asked.Began); len(a.shown) == 0 || a.shown[len(a.shown)-1].ID != id { // no turn has taken it yet
		a.shown = append(a.shown, aguiMessage{ID: id, Role: "user", Content: a.in.Message.Content})
	}
	return nil
}

// join finds the run that is active, for a page that has nothing.
func (a *aguiRun) join() error {
	history, err := a.c.aguiHistory()
	if err != nil {
		return err
	}
	run, began := history.active()
	if run == 0 {
		a.shown, err = history.all()
		return err
	}
	a.run, a.after = run, a.c.inner.Before(began)
	a.shown, err = history.until(run, began)
	return err
}

// interruptForm is that of an interrupt's id: the call, the hash of the arguments that a
// person was shown, where the stream ended, and the hash of the pack, if it is about one.
var interruptForm = regexp.MustCompile(`^(r([1-9][0-9]{0,8})t[0-9]{1,9}c[0-9]{1,9})\.([0-9a-f]{64})\.([0-9a-f-]{1,80})(?:\.([0-9a-f]{64}))?$`)

// interruptID returns the id of an interrupt.
func interruptID(of *session.ViewCall, position string) string {
	id := of.Effect + "." + of.ArgsHash + "." + position
	if of.Pack != nil {
		id += "." + of.Pack.Hash
	}
	return id
}

// decide decides over the calls of a request with resume. The stream goes on where the
// one ended that told of them.
func (a *aguiRun) decide() error {
	c := a.c
	if !c.caller.may(RightApprove) {
		return problem(http.StatusForbidden, CodeForbidden, "resume: a decision needs the right %s, which this token lacks", RightApprove)
	}
	var decisions []func() error
	for i := range a.in.Resume {
		decision, err := a.decision(&a.in.Resume[i])
		if err != nil {
			return err
		}
		decisions = append(decisions, decision)
	}
	if err := c.exists(); err != nil {
		return err
	}
	for _, decide := range decisions {
		if err := decide(); err != nil {
			return err
		}
	}
	history, err := c.aguiHistory()
	if err != nil {
		return err
	}
	at, _, _ := c.inner.Place(a.after)
	a.shown, err = history.until(a.run, at)
	return err
}

// decision returns what carries an answer out, once, however often it is sent.
func (a *aguiRun) decision(of *aguiResume) (func() error, error) {
	c := a.c
	bad := func(format string, args ...any) (func() error, error) {
		return nil, problem(http.StatusBadRequest, CodeBadRequest, "resume: "+format, args...)
	}
	id := interruptForm.FindStringSubmatch(of.InterruptID)
	if id == nil || !c.isPosition(id[4]) {
		return bad("%q is no interruptId of this server", cut(of.InterruptID))
	}
	run := runOfCall(id[1])
	if a.run != 0 && a.run != run {
		return bad("its interrupts are of several runs")
	}
	a.run, a.after = run, id[4]
	var payload aguiDecision
	switch {
	case of.Status == "cancelled":
		payload = aguiDecision{Approved: new(bool), Reason: "The person gave no answer."}
	case of.Status != "resolved":
		return bad("status: it is resolved or cancelled")
	case json.Unmarshal(of.Payload, &payload) != nil || payload.Approved == nil:
		return bad(`payload: it is {"approved": true} or {"approved": false, "reason": …}`)
	}
	arguments := string(payload.EditedArgs)
	if arguments == "null" {
		arguments = ""
	}
	if arguments != "" && !*payload.Approved {
		return bad("payload: only an approval may have editedArgs")
	}
	approval := client.Approval{Session: c.sid, Call: id[1], ArgsHash: id[3]}
	if id[5] != "" {
		approval.Pack = &client.ApprovalPack{Hash: id[5]}
	}
	o := client.DecideOptions{Reason: payload.Reason, Arguments: arguments}
	o.ID = codec.Sum([]byte(strings.Join([]string{"ag-ui", a.in.Run, of.InterruptID, of.Status, string(of.Payload)}, "\x00"))).String()
	publish := c.inner.Approver().Deny
	if *payload.Approved {
		publish = c.inner.Approver().Approve
	}
	return func() error {
		_, err := c.taken(publish(c.ctx(), approval, o))
		var refused *client.RejectedError
		if of.Status == "cancelled" && errors.As(err, &refused) && refused.Code == session.RejectApprovalStale {
			return nil // nobody waits for an answer any more
		}
		return err
	}, nil
}
