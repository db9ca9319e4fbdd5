package endpoint

import (
	"context"
	"slices"

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
// thoughts, or turns without one. After such a refusal it retries at once in the
// next way, or in that which fills them in, and records that one in the answer's
// Opaque, so that later turns begin with it. It returns an error of the first Make.
//
// If the server refuses images or documents, it retries at once with lines of text
// in their place, in req. It remembers that of the model if there is an answer then.
func (e *Endpoint) GenerateThoughtful(ctx context.Context, req *executor.Request, delta func(text string), t Thoughtful) (executor.Answer, error) {
	if slices.Contains(e.Refused.Of(req.Model), files) {
		withoutFiles(req)
	}
	left := false // files of the request, because the server refused them
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
		if failed == nil {
			return answer, nil
		}
		if failed.Files && withoutFiles(req) {
			if next, err := t.Make(t.Ways[way]); err == nil {
				ask, left, failed.Changed = next, true, true
			}
			return answer, failed
		}
		if to := t.after(way, failed, any); to != way {
			if next, err := t.Make(t.Ways[to]); err == nil {
				ask, way, failed.Changed = next, to, true
			}
		}
		return answer, failed
	})
	if err == nil && left && len(e.Refused.Add(req.Model, files)) > 0 {
		e.log.WarnContext(ctx, "the model takes no images or documents, which are not sent to it any more",
			"session", req.Session, "effect", req.Effect, "model", req.Model)
	}
	if err == nil {
		answer.Opaque = llm.Remember(t.Of, t.Ways[way], answer.Opaque)
	}
	return answer, err
}

// after returns the way to try after a failure, the same one if none is left. any says
// whether the request had thoughts.
func (t *Thoughtful) after(way int, failed *Failure, any bool) int {
	if failed.NoThoughts { // whoever made the turns without
		return max(way, slices.Index(t.Ways, llm.ThoughtsFilled))
	}
	// A server that does not know the setting refuses the request for it.
	unknown := t.Ways[way] == llm.ThoughtsDropped && failed.Err.Code == llm.CodeBadRequest
	if any && (failed.Thoughts || unknown) && way+1 < len(t.Ways) && t.Ways[way+1] != llm.ThoughtsFilled {
		return way + 1
	}
	return way
}
