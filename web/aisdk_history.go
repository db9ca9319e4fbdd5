package web

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/transcript"
)

// aiSDKMessages returns the conversation as a page shows it: for each run the user's
// message, and the assistant's.
func (c *call) aiSDKMessages() (any, error) {
	if _, err := c.agent(c.r.PathValue("agent")); err != nil {
		return nil, err
	}
	v, err := c.client.ViewNow(c.ctx(), c.sid)
	if errors.Is(err, client.ErrNoSession) {
		return []uiMessage{}, nil
	}
	if err != nil {
		return nil, err
	}
	t, err := c.session().Transcript(c.ctx())
	if err != nil {
		return nil, err
	}
	h := &uiHistory{runs: map[uint32]*uiRun{}}
	for i := range t.Entries {
		h.take(&t.Entries[i])
	}
	if v.Batch != nil && v.Run != nil {
		for i := range v.Batch.Calls {
			if err := c.openCall(h.of(v.Run.Number), &v, &v.Batch.Calls[i]); err != nil {
				return nil, err
			}
		}
	}
	for i := range v.Queue { // their inputs are no part of the conversation yet
		h.of(v.Queue[i].Number).input(v.Queue[i].Seq)
	}
	return c.uiMessages(h)
}

// uiHistory collects the messages of a session.
type uiHistory struct {
	runs  map[uint32]*uiRun
	order []*uiRun
}

// uiRun is a run: what the user said, and the answer.
type uiRun struct {
	inputs []uint64 // events
	answer uiMessage
	about  uiMetadata
	calls  map[string]int // their parts
	turn   string
}

func (h *uiHistory) of(run uint32) *uiRun {
	r := h.runs[run]
	if r == nil {
		r = &uiRun{calls: map[string]int{}, about: uiMetadata{Run: run}, answer: uiMessage{ID: uiMessageID(run), Role: "assistant"}}
		h.runs[run] = r
		h.order = append(h.order, r)
	}
	return r
}

func (r *uiRun) input(seq uint64) {
	if !slices.Contains(r.inputs, seq) {
		r.inputs = append(r.inputs, seq)
	}
}

// openCall adds what a transcript has of no call before all calls of its turn have ended.
func (c *call) openCall(r *uiRun, v *session.View, of *session.ViewCall) error {
	at, ok := r.calls[of.Effect]
	if !ok {
		return nil
	}
	p := &r.answer.Parts[at]
	switch {
	case strings.HasPrefix(p.State, "output-"):
	case of.Status == session.CallWaiting: // not begun: a page sends no decisions while it shows an open call
		p.Type = ""
	case of.Status == session.CallAwaiting && p.Approval != nil:
		p.Approval.ID = approvalID(of.Effect, of.ArgsHash)
	case of.Status != session.CallOpen && of.Status != session.CallAwaiting:
		end := refold.TranscriptEntry{Kind: client.EntryResult, Status: string(of.Status), Code: of.Code, Detail: of.Detail}
		for e, err := range c.client.Read(c.ctx(), c.sid, v.Batch.Seq+1, v.Seq) {
			if err != nil {
				return err
			}
			if result, err := resultIn(e, of.Effect); err == nil && result != nil {
				end.Text = transcript.Text(c.ctx(), c.client, result.Output)
				if result.Error != nil {
					end.Code, end.Detail = result.Error.Code, result.Error.Detail
				}
			}
		}
		p.take(&end)
	}
	return nil
}

// take adds an entry of the transcript.
func (h *uiHistory) take(e *refold.TranscriptEntry) {
	if e.Run == 0 {
		return
	}
	r := h.of(e.Run)
	switch e.Kind {
	case client.EntryInput, client.EntrySteer:
		r.input(e.Seq)
	case client.EntryText:
		r.step(e.Turn)
		if e.Text != "" {
			r.answer.Parts = append(r.answer.Parts, uiPart{Type: "text", Text: e.Text, State: "done"})
		}
	case client.EntryCall:
		r.step(e.Turn)
		r.calls[e.Call] = len(r.answer.Parts)
		r.answer.Parts = append(r.answer.Parts, uiPart{Type: "tool-" + e.Tool, ToolCallID: e.Call, State: uiInput, Input: jsonOf(cmp.Or(e.Arguments, "{}"))})
	case client.EntryAsked, client.EntryDecided, client.EntryResult:
		if at, ok := r.calls[e.Call]; ok {
			r.answer.Parts[at].take(e)
		}
	case client.EntryEnd:
		r.about.Lifecycle, r.about.Code, r.about.Detail = session.Lifecycle(e.Status), e.Code, e.Detail
	}
}

// step begins the step of a turn.
func (r *uiRun) step(turn string) {
	if turn != r.turn {
		r.turn = turn
		r.answer.Parts = append(r.answer.Parts, uiPart{Type: "step-start"})
	}
}

// take adds what became of a call.
func (p *uiPart) take(e *refold.TranscriptEntry) {
	switch e.Kind {
	case client.EntryAsked:
		p.State = uiRequested
		p.Approval = &uiApproval{ID: approvalID(e.Call, codec.Sum(p.Input).String())}
		return
	case client.EntryDecided:
		approved := e.Status == session.DecisionApprove
		if p.Approval != nil {
			p.State, p.Approval.Approved, p.Approval.Reason = uiResponded, &approved, e.Detail
		}
		return
	}
	switch {
	case e.Status == string(session.CallSucceeded):
		p.State, p.Output = uiOutput, jsonOf(e.Text)
	case e.Code == session.CodeApprovalDenied && p.Approval != nil:
		p.State = uiDenied
	default:
		p.State, p.ErrorText = uiError, uiErrorText(e.Status, e.Code, e.Detail)
	}
}

// uiMessages returns the messages of all runs.
func (c *call) uiMessages(h *uiHistory) (all []uiMessage, err error) {
	all = []uiMessage{}
	files := int64(uiFilesMax)
	for i := len(h.order) - 1; i >= 0; i-- { // the latest files first
		r := h.order[i]
		r.answer.Parts = slices.DeleteFunc(r.answer.Parts, func(p uiPart) bool { return p.Type == "" })
		if len(r.answer.Parts) > 0 || r.about.Lifecycle != "" {
			r.answer.Metadata = r.about
			if r.answer.Parts == nil {
				r.answer.Parts = []uiPart{}
			}
			all = append(all, r.answer)
		}
		for _, seq := range slices.Backward(r.inputs) {
			m, err := c.uiInput(seq, &files)
			if err != nil {
				return nil, err
			}
			all = append(all, m)
		}
	}
	slices.Reverse(all)
	return all, nil
}

// uiFilesMax is how many bytes of files a history has: the latest ones. Of the others it
// has a line of text.
const uiFilesMax = 8 << 20

// uiInput returns the user's message in an event.
func (c *call) uiInput(seq uint64, files *int64) (m uiMessage, err error) {
	m = uiMessage{ID: fmt.Sprintf("request-%d", seq), Role: "user", Parts: []uiPart{}}
	e, err := c.client.Event(c.ctx(), seq)
	if err != nil {
		return m, err
	}
	if env, err := session.ReadEnvelope(e.Payload); err == nil && env.Type == session.TypeRunRequested {
		var b session.RunRequested
		if codec.Decode(env.Data, &b) == nil {
			m.ID = cmp.Or(b.Submission, m.ID)
		}
	}
	input, err := c.client.Input(c.ctx(), seq)
	if err != nil {
		return m, err
	}
	parts := input.Parts
	if len(parts) == 0 {
		parts = []session.Content{*input}
	}
	for i := range parts {
		part, err := c.uiInputPart(&parts[i], files)
		if err != nil {
			return m, err
		}
		m.Parts = append(m.Parts, part)
	}
	return m, nil
}

// uiInputPart returns a text, or a file as a data URL, within what is left of files.
func (c *call) uiInputPart(p *session.Content, files *int64) (uiPart, error) {
	if p.Blob == nil || p.Name == "" && session.IsShownAsText(p.MediaType) || p.Size > *files {
		return uiPart{Type: "text", Text: transcript.Text(c.ctx(), c.client, p)}, nil
	}
	data, err := c.client.Blob(c.ctx(), *p.Blob)
	if err != nil {
		return uiPart{}, err
	}
	*files -= p.Size
	return uiPart{Type: "file", MediaType: p.MediaType, Filename: p.Name, URL: "data:" + p.MediaType + ";base64," + base64.StdEncoding.EncodeToString(data)}, nil
}
