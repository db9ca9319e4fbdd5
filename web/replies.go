package web

import (
	"errors"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/replylink"
	"github.com/refold/refold/planner"
)

// listQuestions lists the calls that wait for a reply.
func (c *call) listQuestions() (any, error) {
	var waiting []client.Question
	var err error
	if id := c.r.URL.Query().Get("session"); id != "" {
		if err := c.enter(id); err != nil {
			return nil, err
		}
		if err := c.exists(); err != nil {
			return nil, err
		}
		waiting, err = c.client.Questions(c.ctx(), c.sid)
	} else {
		waiting, err = c.client.QuestionsNamed(c.ctx(), c.caller.Scope)
	}
	if err != nil {
		return nil, err
	}
	list := QuestionList{Questions: []Question{}}
	for _, q := range waiting {
		list.Questions = append(list.Questions, Question{
			Session: c.strip(q.Session), Run: q.Run, Call: q.Call, ToolID: q.ToolID, Tool: q.ToolName,
			Arguments: q.Arguments, ArgsHash: q.ArgsHash, By: q.By, Deadline: q.Deadline, Parents: c.parents(q.Parents),
		})
	}
	return list, nil
}

// reply answers a call. A caller that may approve answers as an approver; any other as a
// client, which the session takes for calls that clients may answer.
func (c *call) reply() (any, error) {
	var body Reply
	if err := c.decode(&body, false); err != nil {
		return nil, err
	}
	approves := c.caller.may(RightApprove)
	if !approves && !c.caller.may(RightAsk) {
		return nil, problem(http.StatusForbidden, CodeForbidden, "this token lacks the rights %s and %s: it needs one of them", RightApprove, RightAsk)
	}
	name := c.r.PathValue("call")
	if len(name) > session.IDBytesMax || !utf8.ValidString(name) {
		return nil, problem(http.StatusNotFound, CodeNoCall, "the session has no call %q", cut(name))
	}
	if err := c.exists(); err != nil {
		return nil, err
	}
	id, err := c.key("reply", name, body.ArgsHash, body.Output, body.Declined)
	if err != nil {
		return nil, err
	}
	return c.answer(client.Question{Session: c.sid, Call: name, ArgsHash: body.ArgsHash}, body.LinkReply, approves, id)
}

// replyByLink answers the call that a token names.
func (c *call) replyByLink() (any, error) {
	link, err := replylink.Open(c.o.Secret, c.r.PathValue("token"), time.Now())
	if errors.Is(err, replylink.ErrExpired) {
		return nil, problem(http.StatusGone, CodeLinkExpired, "the link has expired, and its call has ended")
	}
	if err != nil {
		return nil, problem(http.StatusNotFound, CodeNoLink, "this is no link of this server, or its secret has changed")
	}
	var body LinkReply
	if err := c.decode(&body, false); err != nil {
		return nil, err
	}
	c.sid = link.Session
	q := client.Question{Session: link.Session, Call: link.Call, ArgsHash: link.ArgsHash}
	return c.answer(q, body, link.By == planner.ByApprovers, "")
}

// answer publishes a reply, as an approver or as a client, and returns the outcome.
func (c *call) answer(q client.Question, body LinkReply, approves bool, id string) (any, error) {
	if (body.Output == "") == (body.Declined == "") {
		return nil, problem(http.StatusBadRequest, CodeBadRequest, "output: give it, or declined in its place")
	}
	by := c.client
	if approves {
		by = c.inner.Approver()
	}
	o := client.ReplyOptions{ID: id, Declined: body.Declined, AsClient: !approves}
	return c.taken(by.Reply(c.ctx(), q, session.Content{Text: body.Output}, o))
}
