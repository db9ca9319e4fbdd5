package web

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/planner"
)

// aiSDKReply answers the calls of a message that wait for a reply, and for which the page
// has an output: addToolOutput of useChat gives it. Other outputs are those that the
// server sent. It returns the run of the message's calls. A failure of one leaves the
// others answered.
func (c *call) aiSDKReply(m *uiMessage) (run uint32, failed error) {
	var waiting []client.Question
	for i := range m.Parts {
		p := &m.Parts[i]
		if !p.isOutput() {
			continue
		}
		run, _ = placeOf(p.ToolCallID)
		if waiting == nil {
			var err error
			if waiting, err = c.client.Questions(c.ctx(), c.sid); err != nil {
				return run, err
			}
		}
		for _, q := range waiting {
			if q.Call != p.ToolCallID {
				continue
			}
			if err := c.aiSDKAnswer(q, p); err != nil && failed == nil {
				failed = err
			}
		}
	}
	return run, failed
}

// aiSDKAnswer answers a call with the output of a part.
func (c *call) aiSDKAnswer(q client.Question, p *uiPart) error {
	if p.State == uiError {
		return c.pageAnswer(q, "", cutDetail(p.ErrorText))
	}
	var text string
	if json.Unmarshal(p.Output, &text) != nil || text == "" {
		text = string(p.Output)
	}
	err := c.pageAnswer(q, text, "")
	var refused *refold.RejectedError
	if errors.As(err, &refused) && refused.Code == session.RejectInvalidData && text != string(p.Output) {
		return c.pageAnswer(q, string(p.Output), "") // its schema takes JSON alone
	}
	return err
}

// pageAnswer answers a call with what a page has: an output, or why there is none.
func (c *call) pageAnswer(q client.Question, output, failure string) error {
	right := RightApprove
	if q.By == planner.ByClients {
		right = RightAsk
	}
	if !c.caller.may(right) {
		return problem(http.StatusForbidden, CodeForbidden, "this token lacks the right %s: someone else must answer the call", right)
	}
	answer := LinkReply{Output: output}
	if failure != "" || output == "" {
		answer = LinkReply{Declined: cutDetail(failure)}
	}
	_, err := c.answer(q, answer, right == RightApprove, "")
	return err
}

// cutDetail returns why a page has no output, as a session takes it.
func cutDetail(text string) string {
	if text == "" {
		text = "The page has no output."
	}
	for i := range text {
		if i > session.DetailBytesMax-4 {
			return text[:i]
		}
	}
	return text
}
