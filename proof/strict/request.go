package strict

import (
	"encoding/json"
	"errors"
	"slices"
)

// The rules for a request besides its conversation: caches and callable tools.
const (
	anthropicMarks  providerRule = "anthropic request: at most four cache marks"
	requestSize     providerRule = "request: size"
	anthropicMark   providerRule = "anthropic request: cache mark"
	openaiAllowed   providerRule = "openai request: allowed tools are tools"
	openaiRetention providerRule = "openai request: one retention"
	openaiCacheKey  providerRule = "openai request: cache key"
	geminiAllowed   providerRule = "gemini request: allowed functions are declared"
)

// marksMax is the most cache marks that Anthropic accepts, and cacheKeyMax the
// greatest length of OpenAI's prompt_cache_key, in bytes.
const (
	marksMax    = 4
	cacheKeyMax = 64
)

// atMost checks the size of a request.
func atMost(body []byte, bytesMax int) error {
	if len(body) > bytesMax {
		return breaks(requestSize, "it has %d bytes, at most %d", len(body), bytesMax)
	}
	return nil
}

// AnthropicRequest returns the first broken rule of a whole request.
func AnthropicRequest(body []byte) error {
	type block struct {
		Type  string          `json:"type"`
		Text  string          `json:"text"`
		Cache json.RawMessage `json:"cache_control"`
	}
	var request struct {
		Tools    []block `json:"tools"`
		System   []block `json:"system"`
		Messages []struct {
			Content []block `json:"content"`
		} `json:"messages"`
	}
	if err := errors.Join(Unicode(body), atMost(body, anthropicBodyMax), anthropicFormat(body), json.Unmarshal(body, &request)); err != nil {
		return err
	}
	blocks := slices.Concat(request.Tools, request.System)
	tools := len(request.Tools)
	for i := range request.Messages {
		blocks = append(blocks, request.Messages[i].Content...)
	}
	marks, longer := 0, true
	for i, b := range blocks {
		if b.Cache == nil {
			continue
		}
		var mark struct{ Type, TTL string }
		if err := decode(b.Cache, &mark); err != nil {
			return breaks(anthropicMark, "block %d: %v", i, err)
		}
		switch {
		case mark.Type != "ephemeral" || mark.TTL != "" && mark.TTL != "5m" && mark.TTL != "1h":
			return breaks(anthropicMark, "block %d is marked %s", i, b.Cache)
		case b.Type == "thinking" || b.Type == "redacted_thinking" || i >= tools && b.Type == "text" && IsBlank(b.Text):
			return breaks(anthropicMark, "block %d of type %s is marked", i, b.Type)
		case mark.TTL == "1h" && !longer:
			return breaks(anthropicMark, "block %d is kept for longer than an earlier one", i)
		}
		longer = mark.TTL == "1h"
		if marks++; marks > marksMax {
			return breaks(anthropicMarks, "block %d has the fifth mark", i)
		}
	}
	return nil
}

// OpenAIRequest returns the first broken rule of a whole request, of chat
// completions or of Responses.
func OpenAIRequest(body []byte) error {
	type named struct {
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	type allowed struct {
		Mode  string  `json:"mode"`
		Tools []named `json:"tools"`
	}
	var request struct {
		Tools     []named         `json:"tools"`
		Choice    json.RawMessage `json:"tool_choice"`
		Key       string          `json:"prompt_cache_key"`
		Options   json.RawMessage `json:"prompt_cache_options"`
		Retention json.RawMessage `json:"prompt_cache_retention"`
	}
	if err := errors.Join(Unicode(body), atMost(body, openaiFilesMax), openaiFormat(body, false), json.Unmarshal(body, &request)); err != nil {
		return err
	}
	switch {
	case request.Options != nil && request.Retention != nil:
		return breaks(openaiRetention, "it has %s and %s", request.Options, request.Retention)
	case len(request.Key) > cacheKeyMax:
		return breaks(openaiCacheKey, "its key has %d bytes", len(request.Key))
	}
	var choice struct {
		Type string `json:"type"`
		allowed
		Nested *allowed `json:"allowed_tools"` // of chat completions
	}
	if json.Unmarshal(request.Choice, &choice) != nil || choice.Type != "allowed_tools" {
		return nil
	}
	may := choice.allowed
	if choice.Nested != nil {
		may = *choice.Nested
	}
	if may.Mode != "auto" && may.Mode != "required" || len(may.Tools) == 0 {
		return breaks(openaiAllowed, "the mode is %q, of %d tools", may.Mode, len(may.Tools))
	}
	for _, tool := range may.Tools {
		if !slices.Contains(request.Tools, tool) {
			return breaks(openaiAllowed, "%s%s is allowed, but not a tool", tool.Name, tool.Function.Name)
		}
	}
	return nil
}

// ChatRequest returns the first broken rule of a whole request to a strict server of
// chat completions.
func ChatRequest(body []byte) error {
	return errors.Join(OpenAIRequest(body), openaiFormat(body, true))
}

// GeminiRequest returns the first broken rule of a whole request.
func GeminiRequest(body []byte) error {
	var request struct {
		Tools []struct {
			Functions []struct {
				Name string `json:"name"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
		Config struct {
			Calling struct {
				Mode    string   `json:"mode"`
				Allowed []string `json:"allowedFunctionNames"`
			} `json:"functionCallingConfig"`
		} `json:"toolConfig"`
	}
	if err := errors.Join(Unicode(body), atMost(body, geminiBodyMax), geminiFormat(body), json.Unmarshal(body, &request)); err != nil {
		return err
	}
	calling := request.Config.Calling
	if len(calling.Allowed) > 0 && calling.Mode != "ANY" && calling.Mode != "VALIDATED" {
		return breaks(geminiAllowed, "the mode is %q", calling.Mode)
	}
	for _, name := range calling.Allowed {
		declared := false
		for _, tool := range request.Tools {
			for _, f := range tool.Functions {
				declared = declared || f.Name == name
			}
		}
		if !declared {
			return breaks(geminiAllowed, "%q is allowed, but not declared", name)
		}
	}
	return nil
}
