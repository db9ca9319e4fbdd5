package strict

// The rules of whole requests: the source of each, and requests that break it.

import (
	"errors"
	"fmt"
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
	const structured = "https://platform.openai.com/docs/guides/structured-outputs"
	of := func(schema string) string {
		return `{"type":"object","properties":{"a":` + schema + `},"required":["a"],"additionalProperties":false}`
	}
	closed := of(`{"type":"string"}`)
	answer := func(name string, strict bool, schema string) string {
		return fmt.Sprintf(`{"text":{"format":{"type":"json_schema","name":%q,"strict":%t,"schema":%s}}}`, name, strict, schema)
	}
	claude := func(schema string) string {
		return `{"output_config":{"format":{"type":"json_schema","schema":` + schema + `}}}`
	}
	wide := func(n int, schema string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"p%d":%s`, i, schema))
		}
		return `{"type":"object","properties":{` + strings.Join(all, ",") + `},"additionalProperties":false}`
	}
	return map[providerRule]requestRule{
		requestUnicode: {Unicode, source{"refusals: no low surrogate in string; a session that holds NUL can't be sent again (issue 94055)", "https://github.com/anthropics/claude-code/issues/68325"},
			[]string{`{"s":"\ud83d\ude00 \\ud83d \\u0000 \u0001"}`}, []string{`{"s":"\ud83d"}`, `{"s":"\ude00\ud83d"}`, `{"s":"\\\ud83d\u0041"}`, `{"s":"\u0000"}`, "{\"s\":\"\xff\"}", `{"\uDEAD":1}`}},
		openaiFormatName: {OpenAIRequest, source{"OpenAI SDK, ResponseFormatJSONSchema: name is of a-z, A-Z, 0-9, underscores and dashes, at most 64", openai},
			[]string{answer("sum", false, `{"type":"object","properties":{}}`), text("")}, []string{answer("a b", false, `{"type":"object","properties":{}}`), answer("", true, `{"type":"object","properties":{}}`)}},
		openaiFormatClosed: {OpenAIRequest, source{"OpenAI's guide: additionalProperties: false must always be set in objects", structured},
			[]string{answer("s", true, closed), answer("s", false, `{"type":"object","properties":{}}`)}, []string{answer("s", true, `{"type":"object","properties":{}}`), answer("s", true, `{"type":"array","items":{"type":"string"}}`)}},
		openaiFormatRequired: {OpenAIRequest, source{"OpenAI's guide: all fields must be required", structured},
			[]string{answer("s", true, closed)}, []string{answer("s", true, strings.Replace(closed, `,"required":["a"]`, "", 1))}},
		openaiFormatKeyword: {OpenAIRequest, source{"OpenAI's guide on supported schemas. Stricter: of its restrictions of values only enum, as at Azure", "https://learn.microsoft.com/en-us/azure/ai-foundry/openai/how-to/structured-outputs"},
			[]string{answer("s", true, closed)}, []string{answer("s", true, of(`{"type":"string","minLength":1}`)), answer("s", true, of(`{"type":["string","null"]}`)), answer("s", true, of(`{"type":"string","default":"a"}`)),
				answer("s", true, of(`{}`)), answer("s", true, of(`{"type":"array"}`)), answer("s", true, of(`{"type":"string","format":"uri"}`)), answer("s", true, of(`{"enum":[],"type":"string"}`))}},
		anthropicFormatClosed: {AnthropicRequest, source{"refusal: For 'object' type, 'additionalProperties' must be explicitly set to false", "https://github.com/ax-llm/ax/issues/458"},
			[]string{claude(closed), text("")}, []string{claude(`{"type":"object","properties":{}}`), claude(of(`{"type":"object","additionalProperties":false}`))}},
		anthropicFormatWord: {AnthropicRequest, source{"refusal: For 'array' type, 'minItems' values other than 0 or 1 are not supported; the guide: no constraints of numbers and texts", "https://github.com/ghostlobster/memorize-everything/issues/93"},
			[]string{claude(of(`{"type":"string","format":"uri"}`))}, []string{claude(of(`{"type":"array","items":{"type":"string"},"minItems":8}`)), claude(of(`{"type":"string","minLength":1}`)), claude(of(`{"type":"string","enum":[{}]}`)), claude(of(`{"type":"string","format":"regex"}`))}},
		anthropicFormatMany: {AnthropicRequest, source{"Anthropic's guide on structured outputs: at most 24 optional parameters, and 16 with union types", "https://platform.claude.com/docs/en/build-with-claude/structured-outputs"},
			[]string{claude(wide(24, `{"type":"string"}`))}, []string{claude(wide(25, `{"type":"string"}`)), claude(wide(17, `{"anyOf":[{"type":"string"},{"type":"null"}]}`))}},
		requestSize: {GeminiRequest, source{"Gemini API: a request with inline data has at most 20 MB; Anthropic's has 32 MB, OpenAI's files 50 MB", "https://ai.google.dev/gemini-api/docs/image-understanding"},
			[]string{`{"contents":"` + strings.Repeat("a", 1<<20) + `"}`}, []string{`{"contents":"` + strings.Repeat("a", 20<<20) + `"}`}},
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
				t.Errorf("%s: %.2000s: %v", rule, body, err)
			}
		}
		for _, body := range r.bad {
			var got *broken
			if err := r.check([]byte(body)); !errors.As(err, &got) || got.rule != rule {
				t.Errorf("%s: %.2000s: got %v", rule, body, err)
			}
		}
	}
}
