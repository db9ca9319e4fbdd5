package web

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
)

// uiChunk is a chunk of the UI message stream: the fields of the types that Refold sends.
type uiChunk struct {
	Type         string          `json:"type"`
	MessageID    string          `json:"messageId,omitempty"`
	ID           string          `json:"id,omitempty"`
	Delta        string          `json:"delta,omitempty"`
	ToolCallID   string          `json:"toolCallId,omitempty"`
	ToolName     string          `json:"toolName,omitempty"`
	Input        json.RawMessage `json:"input,omitempty"`
	Output       json.RawMessage `json:"output,omitempty"`
	ErrorText    string          `json:"errorText,omitempty"`
	ApprovalID   string          `json:"approvalId,omitempty"`
	FinishReason string          `json:"finishReason,omitempty"`
	Reason       string          `json:"reason,omitempty"`
	Data         any             `json:"data,omitempty"`
	Transient    bool            `json:"transient,omitempty"`
	Metadata     *uiMetadata     `json:"messageMetadata,omitempty"`
}

// uiAnswer turns the updates of a run into chunks. The page's message may have a part of
// the run already, whose chunks are left out.
type uiAnswer struct {
	run     uint32
	message string            // its id in the page
	states  map[string]string // of the calls that the page's message has
	before  uint32            // the latest turn of these calls: the page has its text

	send  func(uiChunk) error
	again bool // the page knows reset-step
	look  func(seq uint64) (*session.View, error)
	read  func(seq uint64, call string) (string, error)

	turn  uint32 // whose step is open; 0: none
	text  bool   // a text part is open
	said  bool   // the step has text
	calls map[string]*uiCall
	order []string // of the calls
}

// newUIAnswer returns the answer that a run is. m is the page's message of it; nil: none.
func newUIAnswer(run uint32, m *uiMessage) *uiAnswer {
	a := &uiAnswer{run: run, message: uiMessageID(run), states: map[string]string{}, calls: map[string]*uiCall{}}
	if m == nil {
		return a
	}
	a.message = m.ID
	for i := range m.Parts {
		p := &m.Parts[i]
		if of, turn := placeOf(p.ToolCallID); of == run {
			a.states[p.ToolCallID], a.before = p.State, max(a.before, turn)
		}
	}
	a.turn = a.before
	return a
}

// uiMessageID is the id of the assistant's message that a run is.
func uiMessageID(run uint32) string { return fmt.Sprintf("run-%d", run) }

// aiSDKStream streams an answer, whose run began with the event at a sequence.
func (c *call) aiSDKStream(a *uiAnswer, began uint64) error {
	c.w.Header().Set("X-Vercel-Ai-Ui-Message-Stream", "v1")
	s, err := c.stream()
	if err != nil {
		return err
	}
	defer s.close()
	done := func() error { return s.send("", "", []byte("[DONE]")) }
	a.send = func(chunk uiChunk) error {
		text, err := json.Marshal(chunk)
		if err != nil {
			return err
		}
		return s.send("", "", text)
	}
	s.last = func(p *Problem) error {
		if err := a.send(uiChunk{Type: "error", ErrorText: p.Error()}); err != nil {
			return err
		}
		return done()
	}
	a.again = c.r.URL.Query().Get("ui") == "7"
	a.look, a.read = c.viewSince(), c.output
	if err := a.send(uiChunk{Type: "start", MessageID: a.message, Metadata: &uiMetadata{Run: a.run}}); err != nil {
		return err
	}
	return c.follow(s, c.inner.Before(began), func(u refold.Update) (bool, error) {
		over, err := a.take(u, c.seqOf(u))
		switch {
		case errors.Is(err, errSent):
			return false, err
		case err != nil:
			return false, s.fail(err)
		}
		if over {
			return false, done()
		}
		return true, nil
	})
}

// take sends the chunks of an update, which is of the event at seq. over: the response
// ends.
func (a *uiAnswer) take(u refold.Update, seq uint64) (over bool, err error) {
	switch u := u.(type) {
	case refold.Text:
		return false, a.takeText(u)
	case refold.TextRestarted:
		return a.restart(u)
	case refold.ToolAsked:
		if u.Run == a.run {
			a.call(u.Call)
			return a.settle(seq)
		}
	case refold.ApprovalAsked:
		if u.Run == a.run {
			if err := a.approval(u.Call, seq); err != nil {
				return false, err
			}
			return a.settle(seq)
		}
	case refold.ApprovalDecided:
		if u.Run == a.run {
			return a.settle(seq)
		}
	case refold.ReplyAsked:
		if u.Run == a.run {
			a.call(u.Call)
			return a.settle(seq)
		}
	case refold.ToolEnded:
		if u.Run == a.run {
			if err := a.ended(u.Call, seq); err != nil {
				return false, err
			}
			return a.settle(seq)
		}
	case refold.RunEnded:
		if u.Run == a.run {
			return true, a.end(u, seq)
		}
	case refold.RunQueued:
		return false, a.tell(u.Run, session.Queued)
	case refold.RunStarted:
		return false, a.tell(u.Run, session.Running)
	case refold.RunPaused:
		return false, a.tell(u.Run, session.Paused)
	case refold.RunResumed:
		return false, a.tell(u.Run, session.Running)
	case refold.Waiting:
		return false, a.send(uiChunk{Type: "data-waiting", Data: updateOf(u), Transient: true})
	}
	return false, nil
}

// tell says what state the run is in, as data that is no part of the message.
func (a *uiAnswer) tell(run uint32, now session.Lifecycle) error {
	if run != a.run {
		return nil
	}
	return a.send(uiChunk{Type: "data-run", Data: uiMetadata{Run: run, Lifecycle: now}, Transient: true})
}

// all sends chunks.
func (a *uiAnswer) all(chunks ...uiChunk) error {
	for i := range chunks {
		if err := a.send(chunks[i]); err != nil {
			return err
		}
	}
	return nil
}

// step opens the step of a turn, and closes the one before.
func (a *uiAnswer) step(turn uint32) error {
	if turn == a.turn {
		return nil
	}
	if err := a.closeStep(); err != nil {
		return err
	}
	a.turn = turn
	return a.send(uiChunk{Type: "start-step"})
}

// closeStep closes the step, if one is open.
func (a *uiAnswer) closeStep() error {
	if a.turn == 0 {
		return nil
	}
	if err := a.closeText(); err != nil {
		return err
	}
	a.turn, a.said = 0, false
	return a.send(uiChunk{Type: "finish-step"})
}

func (a *uiAnswer) textID() string { return fmt.Sprintf("r%dt%d", a.run, a.turn) }

func (a *uiAnswer) closeText() error {
	if !a.text {
		return nil
	}
	a.text = false
	return a.send(uiChunk{Type: "text-end", ID: a.textID()})
}

func (a *uiAnswer) takeText(u refold.Text) error {
	if u.Run != a.run || u.Turn <= a.before || u.Text == "" {
		return nil
	}
	if err := a.step(u.Turn); err != nil {
		return err
	}
	if !a.text {
		a.text, a.said = true, true
		if err := a.send(uiChunk{Type: "text-start", ID: a.textID()}); err != nil {
			return err
		}
	}
	return a.send(uiChunk{Type: "text-delta", ID: a.textID(), Delta: u.Text})
}

// restarted is the text of the error with which a response ends when a turn begins
// again, for pages that do not know reset-step: they load the answer again.
const restarted = "turn_restarted: the model began its turn again: call resumeStream()"

// restart makes the text of the turn void.
func (a *uiAnswer) restart(u refold.TextRestarted) (over bool, err error) {
	switch {
	case u.Run != a.run || u.Turn != a.turn || !a.said:
		return false, nil // the page has nothing of it
	case a.again:
		a.text, a.said = false, false
		return false, a.send(uiChunk{Type: "reset-step"})
	}
	return true, a.send(uiChunk{Type: "error", ErrorText: restarted})
}

// uiFinish are the reasons of an answer's end that the AI SDK knows. All others are
// other.
var uiFinish = map[string]string{"": "stop", session.FinishStop: "stop", session.FinishLength: "length", "content_filter": "content-filter"}

// end sends the end of the run.
func (a *uiAnswer) end(u refold.RunEnded, seq uint64) error {
	if err := a.closeStep(); err != nil {
		return err
	}
	about := &uiMetadata{Run: a.run, Lifecycle: u.Lifecycle, Code: u.Code, Detail: u.Detail}
	switch u.Lifecycle {
	case session.Failed:
		return a.all(uiChunk{Type: "message-metadata", Metadata: about}, uiChunk{Type: "error", ErrorText: uiErrorText(string(u.Lifecycle), u.Code, u.Detail)})
	case session.Cancelled:
		return a.all(uiChunk{Type: "message-metadata", Metadata: about}, uiChunk{Type: "abort", Reason: cmp.Or(u.Detail, "cancelled")})
	case session.Interrupted:
		return a.send(uiChunk{Type: "finish", FinishReason: "other", Metadata: about})
	}
	v, err := a.look(seq)
	if err != nil {
		return err
	}
	reason := "stop"
	if v.Last != nil && v.Last.Number == a.run {
		reason = cmp.Or(uiFinish[v.Last.FinishReason], "other")
	}
	return a.send(uiChunk{Type: "finish", FinishReason: reason, Metadata: about})
}
