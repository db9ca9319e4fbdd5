package recorded

import (
	"context"
	"fmt"
	"strconv"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
)

// ModelName is the model's name in answers, and the name of provider and model
// in the config of Install.
const ModelName = "recorded"

// Model answers as the recorded models did. It keeps nothing between two
// generations and is safe for concurrent use.
type Model struct{ recording *Recording }

// NewModel returns the model of a recording.
func NewModel(r *Recording) *Model { return &Model{recording: r} }

var _ executor.Model = (*Model)(nil)

// Generate returns the turn that follows the messages of req. It fails with
// recording_mismatch if these are not the recorded ones, and with
// recording_ended if the file has no such turn.
func (m *Model) Generate(ctx context.Context, req executor.Request, delta func(text string)) (executor.Answer, error) {
	c, ok := m.recording.OfSession(req.Session)
	if !ok {
		return executor.Answer{}, llm.Fail(llm.CodeRecordingMismatch, "the recording has no conversation for session %s: name the session %s, or %s--again",
			req.Session, m.recording.conversations[0].Session(), m.recording.conversations[0].Session())
	}
	turn, err := c.next(req.Messages)
	if err != nil {
		return executor.Answer{}, err
	}
	if err := llm.Stream(ctx, turn.Text, delta); err != nil {
		return executor.Answer{}, err
	}
	answer := executor.Answer{Text: turn.Text, Model: ModelName, FinishReason: llm.FinishStop}
	for _, call := range turn.Calls {
		answer.FinishReason = llm.FinishToolCalls
		answer.Calls = append(answer.Calls, executor.AnswerCall{ID: call.ProviderID, Name: call.Name, Arguments: call.Arguments})
	}
	return answer, nil
}

// next returns the turn that follows the messages shown.
func (c *Conversation) next(shown []executor.Message) (*Turn, error) {
	w := walk{shown: shown}
	for r := range c.Runs {
		if w.done() {
			break
		}
		run := &c.Runs[r]
		if err := w.user(run); err != nil {
			return nil, err
		}
		for t := range run.Turns {
			if w.done() {
				return &run.Turns[t], nil
			}
			if err := w.turn(&run.Turns[t], fmt.Sprintf("r%dt%d", r+1, t+1)); err != nil {
				return nil, err
			}
		}
	}
	return nil, llm.Fail(llm.CodeRecordingEnded, "conversation %s has no turn after the %d messages shown", c.ID, len(shown))
}

// walk compares the messages shown with the recording, one by one.
type walk struct {
	shown []executor.Message
	at    int
}

func (w *walk) done() bool { return w.at == len(w.shown) }

// user compares the next message with the input of a run.
func (w *walk) user(run *Run) error {
	m := &w.shown[w.at]
	w.at++
	if m.Role != "user" {
		return w.mismatch("the message", "the user's "+llm.Excerpt(run.User), "the "+m.Role+"'s "+llm.Excerpt(m.Text))
	}
	return w.equal("the user's text", run.User, m.Text)
}

// turn compares the next messages with a turn and its results.
func (w *walk) turn(t *Turn, name string) error {
	m := &w.shown[w.at]
	if t.Text == "" && len(t.Calls) == 0 && m.Role == "user" {
		return nil // a transcript has no item for an empty turn
	}
	w.at++
	if m.Role != "assistant" {
		return w.mismatch(name, "the model's "+llm.Excerpt(t.Text), "the "+m.Role+"'s "+llm.Excerpt(m.Text))
	}
	if err := w.equal(name+", the model's text", t.Text, m.Text); err != nil {
		return err
	}
	if len(m.Calls) != len(t.Calls) {
		return w.mismatch(name, strconv.Itoa(len(t.Calls))+" calls", strconv.Itoa(len(m.Calls)))
	}
	for i, call := range t.Calls {
		at := fmt.Sprintf("%sc%d", name, i)
		if err := w.equal(at+", the call's name", call.Name, m.Calls[i].Name); err != nil {
			return err
		}
		if err := w.equal(at+", "+call.Name+"'s arguments", call.Arguments, m.Calls[i].Arguments); err != nil {
			return err
		}
	}
	for i := range t.Calls {
		if err := w.result(&t.Calls[i], fmt.Sprintf("%sc%d, %s's result", name, i, t.Calls[i].Name)); err != nil {
			return err
		}
	}
	return nil
}

// noOutput is the text shown to a model for a tool without output.
const noOutput = "(no output)"

// result compares the next message with a call's result.
func (w *walk) result(call *Call, name string) error {
	if w.done() {
		return w.mismatch(name, llm.Excerpt(call.Result), "nothing")
	}
	m := &w.shown[w.at]
	w.at++
	switch {
	case m.Role != "tool":
		return w.mismatch(name, llm.Excerpt(call.Result), "the "+m.Role+"'s "+llm.Excerpt(m.Text))
	case m.Error:
		return w.mismatch(name, llm.Excerpt(call.Result), "the error "+llm.Excerpt(m.Text))
	case call.Result == "" && m.Text == noOutput:
		return nil
	}
	return w.equal(name, call.Result, m.Text)
}

func (w *walk) equal(what, want, got string) error {
	if want == got {
		return nil
	}
	wantExcerpt, gotExcerpt := llm.Difference(want, got)
	return w.mismatch(what, wantExcerpt, gotExcerpt)
}

// mismatch returns the error for the first message that differs from the recording.
func (w *walk) mismatch(what, want, got string) error {
	return llm.Fail(llm.CodeRecordingMismatch, "message %d, %s: expected %s, shown %s", w.at, what, want, got)
}
