package web

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// uiCall is a call of the run.
type uiCall struct {
	refold.Call
	shown, asked, ended bool // the page has its input, its request of an approval, its end
}

// call returns a call of the run.
func (a *uiAnswer) call(of refold.Call) *uiCall {
	known := a.calls[of.Name]
	if known == nil {
		state, has := a.states[of.Name]
		known = &uiCall{Call: of, shown: has, asked: has && state != uiInput, ended: strings.HasPrefix(state, "output-")}
		a.calls[of.Name] = known
		a.order = append(a.order, of.Name)
	}
	return known
}

// show sends the input of a call.
func (a *uiAnswer) show(of *uiCall) error {
	if of.shown {
		return nil
	}
	of.shown = true
	_, turn := placeOf(of.Name)
	if err := a.step(turn); err != nil {
		return err
	}
	if err := a.closeText(); err != nil {
		return err
	}
	return a.send(uiChunk{Type: "tool-input-available", ToolCallID: of.Name, ToolName: of.Tool, Input: jsonOf(cmp.Or(of.Arguments, "{}"))})
}

// approval sends that a call waits for a person.
func (a *uiAnswer) approval(asked refold.Call, seq uint64) error {
	of := a.call(asked)
	if err := a.show(of); err != nil || of.asked {
		return err
	}
	of.asked = true
	v, err := a.look(seq)
	if err != nil {
		return err
	}
	hash := codec.Sum([]byte(asked.Arguments)).String()
	if v.Batch != nil {
		for i := range v.Batch.Calls {
			if c := &v.Batch.Calls[i]; c.Effect == asked.Name && c.ArgsHash != "" {
				hash = c.ArgsHash
			}
		}
	}
	return a.send(uiChunk{Type: "tool-approval-request", ToolCallID: of.Name, ApprovalID: approvalID(of.Name, hash)})
}

// ended sends the end of a call.
func (a *uiAnswer) ended(end refold.Call, seq uint64) error {
	of := a.call(end)
	if err := a.show(of); err != nil || of.ended {
		return err
	}
	of.ended = true
	chunk := uiChunk{Type: "tool-output-error", ToolCallID: of.Name}
	switch {
	case end.Status == string(session.CallSucceeded):
		text, err := a.read(seq, end.Name)
		if err != nil {
			return err
		}
		chunk.Type, chunk.Output = "tool-output-available", jsonOf(text)
	case end.Code == session.CodeApprovalDenied:
		chunk.Type = "tool-output-denied"
	default:
		chunk.ErrorText = uiErrorText(end.Status, end.Code, end.Detail)
	}
	return a.send(chunk)
}

// settle shows the calls that have begun, as of the event at seq or later. over: nothing
// goes on before a person decides over what the page was asked, or answers it. A call that waits for its
// turn behind such a call is not shown before: a page sends decisions when no call that it
// shows is open.
func (a *uiAnswer) settle(seq uint64) (over bool, err error) {
	v, err := a.look(seq)
	if err != nil || v.Batch == nil || v.Run == nil || v.Run.Number != a.run {
		return false, err
	}
	asks, goesOn := false, false
	for i := range v.Batch.Calls {
		c := &v.Batch.Calls[i]
		mine := a.calls[c.Effect]
		switch {
		case mine == nil: // its update comes
			goesOn = true
		case c.Status == session.CallWaiting:
		case c.Status == session.CallAwaiting:
			asks, goesOn = true, goesOn || !mine.asked
		default:
			answers := c.Kind == planner.ExecutorReply && c.Status == session.CallOpen
			asks, goesOn = asks || answers, goesOn || !mine.ended && !answers
			if err := a.show(mine); err != nil {
				return false, err
			}
		}
	}
	if !asks || goesOn {
		return false, nil
	}
	if err := a.closeStep(); err != nil {
		return false, err
	}
	return true, a.send(uiChunk{Type: "finish", FinishReason: "tool-calls"})
}

// uiErrorText says why something failed.
func uiErrorText(status, code, detail string) string {
	return strings.TrimSuffix(cmp.Or(code, status)+": "+detail, ": ")
}

// jsonOf returns a text as JSON: itself, if it is JSON, or a string.
func jsonOf(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	quoted, _ := json.Marshal(text) // a string can be encoded
	return quoted
}
