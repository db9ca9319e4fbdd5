package openai

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/internal/llm/endpoint"
)

// The members of a request that the client adds by itself and that some server
// refuses. Instead of max_completion_tokens it is then sent max_tokens.
const (
	memberUsage     = "stream_options"
	memberLimit     = "max_completion_tokens"
	memberLimitOld  = "max_tokens"
	memberCacheKey  = "prompt_cache_key"
	memberCacheLife = "prompt_cache_options"
	memberCacheKeep = "prompt_cache_retention"
	memberInclude   = "include"
)

var optional = []string{memberUsage, memberLimit, memberCacheKey, memberCacheLife, memberCacheKeep, memberInclude}

// attempt returns an attempt with the request that build returns, without the
// optional members that the server refused earlier. If it refuses one now, the next
// attempt is without it too, and an answer to that is remembered.
func (m *Model) attempt(req *executor.Request, build func(without []string) (endpoint.Attempt, error)) (endpoint.Attempt, error) {
	without := m.endpoint.Refused.Of(req.Model)
	ask, err := build(without)
	if err != nil {
		return nil, err
	}
	given, err := llm.Params(req.Params, nil)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, delta func(text string)) (executor.Answer, *endpoint.Failure) {
		answer, failed := ask(ctx, delta)
		if failed == nil {
			for _, member := range m.endpoint.Refused.Add(req.Model, without...) {
				m.log.WarnContext(ctx, "the server refuses a member of requests, which is not sent any more",
					slog.String("session", req.Session), slog.String("effect", req.Effect), slog.String("model", req.Model), slog.String("member", member))
			}
			return answer, nil
		}
		if member := refusedOf(failed, without, given); member != "" {
			if next, err := build(append(slices.Clip(without), member)); err == nil {
				without, ask, failed.Changed = append(slices.Clip(without), member), next, true
			}
		}
		return answer, failed
	}, nil
}

// refusedOf returns the optional member that a server refused, "" if none: one that
// was not left out, and that params did not set.
func refusedOf(failed *endpoint.Failure, without []string, given map[string]json.RawMessage) string {
	for _, member := range optional {
		if _, own := given[member]; !own && !slices.Contains(without, member) && failed.Refuses(member) {
			return member
		}
	}
	return ""
}
