package endpoint

import (
	"context"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
)

// Attempt sends one request and reads the answer.
type Attempt func(ctx context.Context, delta func(text string)) (executor.Answer, *Failure)

// Thoughtful makes the requests for a provider to which earlier thoughts are sent.
type Thoughtful struct {
	Of   string         // the provider whose thoughts are sent, as in llm.Pieces
	Ways []llm.Thoughts // the ways in which they can be sent, ascending; the first one is llm.ThoughtsSent
	Make func(thoughts llm.Thoughts) (Attempt, error)
}

// GenerateThoughtful is Generate for a provider that may refuse earlier
// thoughts. After such a refusal it retries at once with the next of the ways,
// and records that one in the answer's Opaque, so that later turns begin with
// it. It returns an error of the first Make.
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
		// A server that does not know the setting refuses the request for it.
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
