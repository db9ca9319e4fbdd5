package endpoint

import (
	"context"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
)

// Asking sends one request that was made, and reads the answer.
type Asking func(ctx context.Context, delta func(text string)) (executor.Answer, *Failure)

// Thoughtful makes the requests of a provider that is sent earlier thoughts.
type Thoughtful struct {
	Of   string         // whose thoughts are sent, as llm.Pieces has it
	Ways []llm.Thoughts // how they can be sent, ascending; the first one is llm.ThoughtsSent
	Make func(thoughts llm.Thoughts) (Asking, error)
}

// GenerateThoughtful is Generate for a provider that may refuse earlier thoughts.
// On such a refusal it asks at once with the next of the ways, and the answer's
// Opaque tells later turns to begin with that one. An error of Make for the first
// request is returned.
func (e *Endpoint) GenerateThoughtful(ctx context.Context, req *executor.Request, delta func(text string), t Thoughtful) (executor.Answer, error) {
	before, any := llm.ThoughtsOf(t.Of, req.Messages)
	way := 0
	for way < len(t.Ways)-1 && t.Ways[way] < before {
		way++
	}
	ask, err := t.Make(t.Ways[way])
	if err != nil {
		return executor.Answer{}, err
	}
	answer, err := e.Generate(ctx, req, delta, func(ctx context.Context, delta func(text string)) (executor.Answer, *Failure) {
		answer, failed := ask(ctx, delta)
		if failed == nil || !any || way == len(t.Ways)-1 {
			return answer, failed
		}
		// A server that does not know the setting refuses that.
		if unknown := t.Ways[way] == llm.ThoughtsDropped && failed.Err.Code == llm.CodeBadRequest; failed.Thoughts || unknown {
			if next, err := t.Make(t.Ways[way+1]); err == nil {
				ask, failed.Changed = next, true
				way++
			}
		}
		return answer, failed
	})
	if err == nil {
		answer.Opaque = llm.Remember(t.Of, t.Ways[way], answer.Opaque)
	}
	return answer, err
}
