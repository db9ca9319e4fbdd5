package openai

import (
	"encoding/json"
	"regexp"

	"github.com/openai/openai-go/v3"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
)

// The values of prompt_cache_options.ttl: the least time for which OpenAI keeps
// a cache entry. The longest one differs between the APIs.
const (
	chatLifetime     = "30m"
	responseLifetime = "12h"
)

// The names of models that accept prompt_cache_options, and of earlier ones
// that accept prompt_cache_retention: 24h. A snapshot's name ends with a date.
var (
	takesLifetime  = regexp.MustCompile(`^gpt-(5\.([6-9]|[1-9][0-9])|[6-9]|[1-9][0-9])([.-]|$)`)
	takesRetention = regexp.MustCompile(
		`^(gpt-5\.5(-pro)?|gpt-5\.4|gpt-5\.2|gpt-5\.1(-codex(-max|-mini)?|-chat-latest)?|gpt-5(-codex)?|gpt-4\.1)(-\d{4}-\d{2}-\d{2})?$`)
)

// cache adds the members for OpenAI's prompt cache: a key, so that a session's
// requests reach the same server, and a retention time if the config wants more
// than the model's default. Members of params win, and those of without are left
// out. lifetime is the longest one that the API accepts.
func cache(req *executor.Request, members map[string]json.RawMessage, extra map[string]any, lifetime string, without []string) {
	if req.CacheTTL == session.CacheTTLOff {
		return
	}
	if _, given := members[memberCacheKey]; !given && req.Session != "" {
		extra[memberCacheKey] = req.Session
	}
	_, options := members[memberCacheLife]
	_, retention := members[memberCacheKeep]
	switch {
	case req.CacheTTL != session.CacheTTLLong || options || retention:
	case takesLifetime.MatchString(req.Model):
		extra[memberCacheLife] = map[string]string{"ttl": lifetime}
	case takesRetention.MatchString(req.Model):
		extra[memberCacheKeep] = string(openai.ChatCompletionNewParamsPromptCacheRetention24h)
	}
	for _, member := range without {
		if _, given := members[member]; !given {
			delete(extra, member)
		}
	}
}

// allowedMode returns the tool choice of a masked request. If restricted, it is
// the mode of allowed_tools.
func allowedMode(req *executor.Request) (mode string, restricted bool) {
	switch {
	case len(req.Tools) == 0:
		return "none", false
	case req.ToolChoice == "" || req.ToolChoice == "auto":
		return "auto", true
	case req.ToolChoice == "required":
		return "required", true
	}
	return req.ToolChoice, false // none, or a tool
}

// newAllowedChoice returns the tool choice of a masked request.
func newAllowedChoice(req *executor.Request) openai.ChatCompletionToolChoiceOptionUnionParam {
	mode, restricted := allowedMode(req)
	if !restricted {
		return newToolChoice(mode)
	}
	allowed := openai.ChatCompletionAllowedToolsParam{Mode: openai.ChatCompletionAllowedToolsMode(mode)}
	for i := range req.Tools {
		allowed.Tools = append(allowed.Tools, map[string]any{"type": "function", "function": map[string]any{"name": req.Tools[i].Name}})
	}
	return openai.ChatCompletionToolChoiceOptionUnionParam{OfAllowedTools: &openai.ChatCompletionAllowedToolChoiceParam{AllowedTools: allowed}}
}
