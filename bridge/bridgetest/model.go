package bridgetest

import (
	"context"
	"fmt"

	"github.com/refold/refold/bridge/executor"
)

// Turn is what the model says in one of its turns, shown r. It may look at what
// it is shown; an error of its own fails the run.
type Turn func(r executor.Request) (executor.Answer, error)

// Say is a turn that answers, and so ends the run.
func Say(text string) Turn {
	return func(executor.Request) (executor.Answer, error) { return executor.Answer{Text: text}, nil }
}

// Calls is a turn that calls tools, all in one batch.
func Calls(calls ...executor.AnswerCall) Turn {
	return func(executor.Request) (executor.Answer, error) { return executor.Answer{Calls: calls}, nil }
}

// To is a call of a tool, by the name that the model knows. arguments are as
// those of Call. It panics if they can't be written as JSON.
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

// codeTurnsEnded is the end of a run that asks for a turn too many.
const codeTurnsEnded = "turns_ended"

// turns is a model that says what a test says.
type turns []Turn

// Generate says the next turn. Which one it is follows from what is shown, so a
// turn that is asked again is answered again.
func (ts turns) Generate(_ context.Context, r executor.Request, delta func(string)) (executor.Answer, error) {
	said := 0
	for _, m := range r.Messages {
		if m.Role == "assistant" {
			said++
		}
	}
	if said >= len(ts) {
		return executor.Answer{}, &executor.Error{
			Code: codeTurnsEnded, Detail: fmt.Sprintf("the model is asked for turn %d, and Options.Turns has %d", said+1, len(ts)),
		}
	}
	answer, err := ts[said](r)
	if err == nil && answer.Text != "" {
		delta(answer.Text)
	}
	return answer, err
}

// observedModel is a model that keeps what it is shown, and what it said.
type observedModel struct {
	executor.Model
	session *Session
}

// Generate asks the model.
func (w observedModel) Generate(ctx context.Context, r executor.Request, delta func(string)) (executor.Answer, error) {
	answer, err := w.Model.Generate(ctx, r, delta)
	said := executor.Message{Role: "assistant", Text: answer.Text, Opaque: answer.Opaque}
	w.session.mu.Lock()
	defer w.session.mu.Unlock()
	w.session.shown = append([]executor.Message(nil), r.Messages...)
	if err == nil && len(answer.Calls) == 0 {
		w.session.shown = append(w.session.shown, said)
	}
	return answer, err
}
