package strict

// The rules of whole requests: the source of each, and requests that break it.

import (
	"errors"
	"strings"
	"testing"
)

// requestRule is a rule of whole requests.
type requestRule struct {
	check func(body []byte) error
	from  source
	good  []string
	bad   []string
}

func requestRules() map[providerRule]requestRule {
	const (
		goSDK  = "https://github.com/anthropics/anthropic-sdk-go/blob/main/message.go"
		caches = "https://platform.claude.com/docs/en/build-with-claude/prompt-caching"
		openai = "https://github.com/openai/openai-go/blob/main/responses/response.go"
		gemini = "https://github.com/googleapis/googleapis/blob/master/google/ai/generativelanguage/v1beta/content.proto"
	)
	text := func(mark string) string {
		return `{"messages":[{"role":"user","content":[{"type":"text","text":"hi"` + mark + `}]}]}`
	}
	const mark, hour = `,"cache_control":{"type":"ephemeral"}`, `,"cache_control":{"type":"ephemeral","ttl":"1h"}`
	marked := func(marks ...string) string {
		var blocks []string
		for _, m := range marks {
			blocks = append(blocks, `{"type":"text","text":"hi"`+m+`}`)
		}
		return `{"tools":[{"name":"f"}],"system":[],"messages":[{"role":"user","content":[` + strings.Join(blocks, ",") + `]}]}`
	}
	const tools = `"tools":[{"type":"function","name":"f"},{"type":"function","name":"g"}]`
	const chat = `"tools":[{"type":"function","function":{"name":"f","parameters":{}}}]`
	allow := func(names string) string {
		return `{` + tools + `,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[` + names + `]}}`
	}
	declare := func(mode, names string) string {
		return `{"tools":[{"functionDeclarations":[{"name":"f"}]}],"toolConfig":{"functionCallingConfig":{"mode":"` + mode + `","allowedFunctionNames":[` + names + `]}}}`
	}
	return map[providerRule]requestRule{
		requestUnicode: {Unicode, source{"refusals: no low surrogate in string; a session that holds NUL can't be sent again (issue 94055)", "https://github.com/anthropics/claude-code/issues/68325"},
			[]string{`{"s":"\ud83d\ude00 \\ud83d \\u0000 \u0001"}`}, []string{`{"s":"\ud83d"}`, `{"s":"\ude00\ud83d"}`, `{"s":"\\\ud83d\u0041"}`, `{"s":"\u0000"}`, "{\"s\":\"\xff\"}", `{"\uDEAD":1}`}},
		anthropicMarks: {AnthropicRequest, source{"refusal: A maximum of 4 blocks with cache_control may be provided", caches},
			[]string{marked(), marked(mark, mark, mark, mark)},
			[]string{marked(mark, mark, mark, mark, mark),
				`{"tools":[{"name":"f"` + mark + `}],"system":[{"type":"text","text":"s"` + mark + `}],` + strings.TrimPrefix(marked(mark, mark, mark), `{"tools":[{"name":"f"}],"system":[],`)}},
		anthropicMark: {AnthropicRequest, source{"Anthropic SDK, CacheControlEphemeralParam: ttl is 5m or 1h; the page on caching: longer ones stand first, thoughts and empty text have no mark", goSDK},
			[]string{text(mark), text(hour), marked(hour, mark)},
			[]string{text(`,"cache_control":{"type":"forever"}`), text(`,"cache_control":{"type":"ephemeral","ttl":"30m"}`), text(`,"cache_control":{"type":"ephemeral","for":"5m"}`),
				marked(mark, hour), strings.Replace(text(mark), `"hi"`, `" "`, 1), strings.Replace(text(mark), `"text","text"`, `"thinking","thinking"`, 1)}},
		openaiAllowed: {OpenAIRequest, source{"OpenAI SDK, ToolChoiceAllowedParam: the mode is auto or required, tools are definitions that the model should be allowed to call. Stricter: of the request's tools, at least one", openai},
			[]string{`{}`, allow(`{"type":"function","name":"g"}`), `{"tool_choice":"auto"}`,
				`{` + chat + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"f"}}]}}}`},
			[]string{allow(`{"type":"function","name":"h"}`), allow(``), strings.Replace(allow(`{"type":"function","name":"g"}`), "auto", "none", 1),
				`{` + chat + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"g"}}]}}}`}},
		openaiRetention: {OpenAIRequest, source{"OpenAI SDK: prompt_cache_retention is deprecated, use prompt_cache_options.ttl instead. Stricter: never both", openai},
			[]string{`{"prompt_cache_options":{"ttl":"30m"}}`, `{"prompt_cache_retention":"24h"}`},
			[]string{`{"prompt_cache_options":{"ttl":"30m"},"prompt_cache_retention":"24h"}`}},
		openaiCacheKey: {OpenAIRequest, source{"OpenAI SDK: prompt_cache_key replaces user. Stricter: as long as a metadata key, 64", openai},
			[]string{`{"prompt_cache_key":"s1"}`}, []string{`{"prompt_cache_key":"` + strings.Repeat("s", 65) + `"}`}},
		geminiAllowed: {GeminiRequest, source{"Gemini API, FunctionCallingConfig: allowed_function_names is set with ANY or VALIDATED alone, and names declarations", gemini},
			[]string{`{}`, declare("VALIDATED", `"f"`), declare("ANY", `"f"`), declare("NONE", ``)},
			[]string{declare("AUTO", `"f"`), declare("NONE", `"f"`), declare("VALIDATED", `"g"`)}},
	}
}

// TestRequestRules: a good request passes, and one that breaks a rule is
// refused for just that rule.
func TestRequestRules(t *testing.T) {
	t.Parallel()
	for rule, r := range requestRules() {
		if len(r.good) == 0 || len(r.bad) == 0 || r.from.title == "" || !strings.HasPrefix(r.from.url, "https://") {
			t.Errorf("%s: %d good requests, %d bad ones; stated by %q at %q", rule, len(r.good), len(r.bad), r.from.title, r.from.url)
		}
		for _, body := range r.good {
			if err := r.check([]byte(body)); err != nil {
				t.Errorf("%s: %s: %v", rule, body, err)
			}
		}
		for _, body := range r.bad {
			var got *broken
			if err := r.check([]byte(body)); !errors.As(err, &got) || got.rule != rule {
				t.Errorf("%s: %s: got %v", rule, body, err)
			}
		}
	}
}
