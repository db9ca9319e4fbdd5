package recorded

import (
	"context"
	"fmt"

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

// messages returns the conversation as a session shows it: a name for each
// message, the message, and the turn that it is.
func (c *Conversation) messages(yield func(name string, m executor.Message, turn *Turn) bool) {
	for r, run := range c.Runs {
		if !yield(fmt.Sprintf("r%d's input", r+1), executor.Message{Role: "user", Text: run.User}, nil) {
			return
		}
		for t := range run.Turns {
			turn, name := &run.Turns[t], fmt.Sprintf("r%dt%d", r+1, t+1)
			m := executor.Message{Role: "assistant", Text: turn.Text}
			for _, call := range turn.Calls {
				m.Calls = append(m.Calls, executor.MessageCall{Name: call.Name, Arguments: call.Arguments})
			}
			if !yield(name, m, turn) {
				return
			}
			for i, call := range turn.Calls {
				if !yield(fmt.Sprintf("%sc%d, %s's result", name, i, call.Name), executor.Message{Role: "tool", Text: call.Result}, nil) {
					return
				}
			}
		}
	}
}

// noOutput is the text shown to a model for a tool without output.
const noOutput = "(no output)"

// next returns the turn that follows the messages shown.
func (c *Conversation) next(shown []executor.Message) (next *Turn, err error) {
	at := 0
	err = llm.Fail(llm.CodeRecordingEnded, "conversation %s has no turn after the %d messages shown", c.ID, len(shown))
	c.messages(func(name string, want executor.Message, turn *Turn) bool {
		if at == len(shown) {
			switch want.Role {
			case "assistant":
				next, err = turn, nil
			case "tool":
				err = mismatch(at, name, llm.Excerpt(want.Text), "nothing")
			}
			return false
		}
		got := &shown[at]
		switch {
		case turn != nil && turn.Text == "" && len(turn.Calls) == 0 && got.Role == "user":
			return true // a transcript has no item for an empty turn
		case want.Role == "tool" && want.Text == "" && got.Text == noOutput:
			want.Text = noOutput
		}
		at++
		what, wanted, is := llm.Differ(&want, got)
		if what != "" {
			err = mismatch(at, name+", "+what, wanted, is)
		}
		return what == ""
	})
	return next, err
}

// mismatch returns the error for the first message that differs from the recording.
func mismatch(at int, what, want, got string) error {
	return llm.Fail(llm.CodeRecordingMismatch, "message %d, %s: expected %s, shown %s", at, what, want, got)
}
