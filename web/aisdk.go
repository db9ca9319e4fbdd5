package web

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/inside"
)

// This file and its neighbours aisdk_*.go have the UI message stream of the AI SDK, which
// useChat speaks. A chat is a session, and the answer to a user's message is a run. The
// page's copy of the conversation counts for nothing but the latest message and what a
// person decided: the log is the truth.

var aiSDKRoutes = []route{
	{
		method: http.MethodPost, path: "/v1/ai-sdk/{agent}", name: "aiSDKSend", right: RightAsk, stream: true, long: true,
		takes: []string{"application/json"},
		doc:   "Takes a request of the AI SDK's useChat, and streams the answer as its UI message stream. The chat's id is the session, and the id of the latest message is the submission. With decisions of a person in the message `messageId` the run goes on; that needs the right `approve`. Bodies and chunks are those of package ai, versions 6 and 7.",
		query: aiSDKQuery,
		do:    (*call).aiSDKSend,
	},
	{
		method: http.MethodGet, path: "/v1/ai-sdk/{agent}/{sid}/stream", name: "aiSDKResume", right: RightRead, stream: true,
		doc:   "Streams the whole current answer again, from its start: what useChat resumes. 204 says that no run is open.",
		query: aiSDKQuery,
		do:    (*call).aiSDKResume,
	},
	{
		method: http.MethodGet, path: "/v1/ai-sdk/{agent}/{sid}/messages", name: "aiSDKMessages", right: RightRead, gives: []string{"application/json"},
		doc: "Returns the conversation as a list of the AI SDK's UIMessage, for a page that was reloaded. A session that does not exist has no messages.",
		do:  (*call).aiSDKMessages,
	},
	{
		method: http.MethodDelete, path: "/v1/ai-sdk/{agent}/{sid}", name: "aiSDKCancel", right: RightAsk, status: http.StatusNoContent,
		doc: "Cancels the runs of the session that have not ended. The function stop of useChat only disconnects.",
		do:  (*call).aiSDKCancel,
	},
}

var aiSDKQuery = []parameter{{"ui", "The major version of package ai: with 7, a turn that begins again is the chunk `reset-step`; without, an error chunk ends the stream.", count}}

// aiSDKSend takes a request of a page, and streams the answer.
func (c *call) aiSDKSend() (any, error) {
	agent, err := c.agent(c.r.PathValue("agent"))
	if err != nil {
		return nil, err
	}
	body, err := c.aiSDKRequest()
	if err != nil {
		return nil, err
	}
	if err := c.enter(body.ID); err != nil {
		return nil, err
	}
	switch body.Trigger {
	case "", "submit-message":
	case "regenerate-message":
		return nil, problem(http.StatusConflict, CodeNoRegenerate, "a session keeps what was said, and answers no message twice: send a new message")
	default:
		return nil, problem(http.StatusBadRequest, CodeBadRequest, "trigger: it is submit-message")
	}
	gone, err := c.keep()
	if err != nil {
		return nil, err
	}
	defer gone()
	if body.decided != nil {
		return nil, c.aiSDKDecide(body.decided)
	}
	asked, err := c.aiSDKAsk(agent, body.user)
	if err != nil {
		return nil, err
	}
	return nil, c.aiSDKStream(newUIAnswer(asked.Run, nil), asked.Began)
}

// aiSDKAsk requests a run for a message of the user.
func (c *call) aiSDKAsk(agent string, m *uiMessage) (asked inside.Asked, err error) {
	text, o, err := c.aiSDKInput(m)
	if err != nil {
		return asked, err
	}
	o.Submission = m.ID
	if len(m.ID) > session.IDBytesMax {
		o.Submission = codec.Sum([]byte(m.ID)).String()
	}
	asked, err = c.ask(agent, text, o)
	var refused *refold.RejectedError
	if errors.As(err, &refused) && refused.Code == session.RejectDuplicateSubmission {
		err = problem(http.StatusConflict, Code(refused.Code), "the message %q was sent before with other content, and a session keeps what was said: send the edited text as a new message", cut(m.ID))
	}
	return asked, err
}

// aiSDKDecide publishes the decisions and answers in an assistant's message, and streams how the run
// goes on. Each decision is an event that is named after itself, so that a repeated
// request decides once.
func (c *call) aiSDKDecide(m *uiMessage) error {
	if err := c.exists(); err != nil {
		return err
	}
	run, failed := c.aiSDKReply(m)
	var refused *Problem
	if errors.As(failed, &refused) {
		return refused
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.State != uiResponded {
			continue
		}
		if !c.caller.may(RightApprove) {
			return problem(http.StatusForbidden, CodeForbidden, "this token lacks the right %s: someone else must decide over the call", RightApprove)
		}
		name, hash, err := approvalOf(p.Approval)
		if err != nil {
			return err
		}
		run, _ = placeOf(name)
		a := client.Approval{Session: c.sid, Call: name, ArgsHash: hash}
		o := client.DecideOptions{
			Reason: p.Approval.Reason,
			ID:     codec.Sum([]byte("ai-sdk\x00" + c.sid + "\x00" + p.Approval.ID + "\x00" + strconv.FormatBool(*p.Approval.Approved) + "\x00" + p.Approval.Reason)).String(),
		}
		decide := c.inner.Approver().Approve
		if !*p.Approval.Approved {
			decide = c.inner.Approver().Deny
		}
		if _, err := c.taken(decide(c.ctx(), a, o)); err != nil && failed == nil {
			failed = err // the other decisions count nevertheless
		}
	}
	if failed != nil {
		return failed
	}
	began, err := c.client.Began(c.ctx(), c.sid, run)
	if err != nil {
		return err
	}
	return c.aiSDKStream(newUIAnswer(run, m), began)
}

// aiSDKResume streams the current answer again.
func (c *call) aiSDKResume() (any, error) {
	if _, err := c.agent(c.r.PathValue("agent")); err != nil {
		return nil, err
	}
	open, err := c.openRuns()
	if err != nil {
		return nil, err
	}
	if len(open) == 0 {
		return nil, c.noContent()
	}
	run := open[len(open)-1]
	began, err := c.client.Began(c.ctx(), c.sid, run)
	if err != nil {
		return nil, err
	}
	gone, err := c.keep()
	if err != nil {
		return nil, err
	}
	defer gone()
	return nil, c.aiSDKStream(newUIAnswer(run, nil), began)
}

// aiSDKCancel cancels all runs that have not ended, the latest first: else the next one
// would start.
func (c *call) aiSDKCancel() (any, error) {
	if _, err := c.agent(c.r.PathValue("agent")); err != nil {
		return nil, err
	}
	open, err := c.openRuns()
	if err != nil {
		return nil, err
	}
	for i := len(open) - 1; i >= 0; i-- {
		_, err := c.taken(c.client.Cancel(c.ctx(), c.sid, client.ControlOptions{Run: open[i]}))
		var refused *refold.RejectedError
		if errors.As(err, &refused) && (refused.Code == session.RejectStale || refused.Code == session.RejectRunNotActive) {
			continue // it has just ended
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, c.noContent()
}

// openRuns returns the runs of the session that have not ended, the active one first. A
// session that does not exist has none.
func (c *call) openRuns() (open []uint32, err error) {
	v, err := c.client.ViewNow(c.ctx(), c.sid)
	if errors.Is(err, client.ErrNoSession) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if v.Run != nil {
		open = append(open, v.Run.Number)
	}
	for i := range v.Queue {
		open = append(open, v.Queue[i].Number)
	}
	return open, nil
}
