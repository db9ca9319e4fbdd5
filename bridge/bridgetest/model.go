package bridgetest

import (
	"context"
	"fmt"

	"github.com/refold/refold/bridge/executor"
)

// Turn is one scripted turn of the model: it returns the answer to r. An error
// fails the run.
type Turn func(r executor.Request) (executor.Answer, error)

// Say is a turn that answers with text, which ends the run.
func Say(text string) Turn {
	return func(executor.Request) (executor.Answer, error) { return executor.Answer{Text: text}, nil }
}

// Calls is a turn that calls tools, all in one batch.
func Calls(calls ...executor.AnswerCall) Turn {
	return func(executor.Request) (executor.Answer, error) { return executor.Answer{Calls: calls}, nil }
}

// To is a call of a tool, by the name that the model knows. arguments are as for
// Call. It panics if encoding/json can't encode them.
func To(tool string, arguments any) executor.AnswerCall {
	text, err := encode(arguments)
	if err != nil {
		panic(fmt.Sprintf("bridgetest: arguments of %s: %v", tool, err))
	}
	return executor.AnswerCall{Name: tool, Arguments: text}
}

// Fail is a turn that fails: the run ends `failed`, with this code.
func Fail(code, detail string) Turn {
	return func(executor.Request) (executor.Answer, error) {
		return executor.Answer{}, &executor.Error{Code: code, Detail: detail}
	}
}

// Model is a model of these turns: of each session the first request gets the first
// one, whatever process asks. A session that needs more fails with turns_ended.
func Model(all ...Turn) executor.Model { return turns(all) }

// codeTurnsEnded is the code of a run that needs more turns than there are.
const codeTurnsEnded = "turns_ended"

type turns []Turn

// Generate answers with the next turn. The messages determine which one, so a
// repeated turn gets the same answer.
func (ts turns) Generate(_ context.Context, r executor.Request, delta func(string)) (executor.Answer, error) {
	done := 0
	for _, m := range r.Messages {
		if m.Role == "assistant" {
			done++
		}
	}
	if done >= len(ts) {
		return executor.Answer{}, &executor.Error{
			Code: codeTurnsEnded, Detail: fmt.Sprintf("the model is asked for turn %d, and the test has %d", done+1, len(ts)),
		}
	}
	answer, err := ts[done](r)
	if err == nil && answer.Text != "" {
		delta(answer.Text)
	}
	return answer, err
}

// observedModel is a model that keeps its latest messages and answer.
type observedModel struct {
	executor.Model
	session *Session
}

// Generate calls the model.
func (w observedModel) Generate(ctx context.Context, r executor.Request, delta func(string)) (executor.Answer, error) {
	answer, err := w.Model.Generate(ctx, r, delta)
	w.session.mu.Lock()
	defer w.session.mu.Unlock()
	w.session.shown = append([]executor.Message(nil), r.Messages...)
	if err == nil && len(answer.Calls) == 0 {
		w.session.shown = append(w.session.shown, executor.Message{Role: "assistant", Text: answer.Text, Opaque: answer.Opaque})
	}
	return answer, err
}
