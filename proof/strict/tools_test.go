package strict

// The rules of tools: the source of each, and tools that break it.

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// toolRule is a rule of tools. good and bad are schemas, or whole lists of tools.
type toolRule struct {
	check     func(body []byte) error
	from      source
	good, bad []string
}

// plainTool is a schema that all APIs accept.
const plainTool = `{"type":"object","properties":{"a":{"type":"string","enum":["x"]},"b":{"type":"array","items":{"type":"integer"}},"c":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["a"]}`

func toolRules() map[providerRule]toolRule {
	const (
		claude = "https://platform.claude.com/docs/en/managed-agents/self-hosted-sandboxes"
		draft  = "https://json-schema.org/draft/2020-12/json-schema-validation"
		google = "https://ai.google.dev/api/caching#FunctionDeclaration"
	)
	prop := func(s string) string { return `{"type":"object","properties":{"a":` + s + `}}` }
	deep := `{"type":"string"}`
	for range 11 {
		deep = prop(deep)
	}
	names := func(names ...string) string { return "names " + strings.Join(names, " ") }
	count := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("f%d", i))
		}
		return names(all...)
	}
	long := strings.Repeat("a", 65)
	return map[providerRule]toolRule{
		anthropicToolName: {AnthropicTools, source{"refusal: tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'; tool names must be unique", "https://github.com/apify/tester-mcp-client/issues/11"},
			[]string{names("f", "9-_")}, []string{names("a.b"), names(long), names("f", "f")}},
		anthropicToolObject: {AnthropicTools, source{"refusal: input_schema.type: Field required", "https://github.com/Kilo-Org/kilocode/issues/12238"},
			[]string{`{"type":"object"}`}, []string{`{}`, `{"type":"string"}`, `{"type":["object"]}`}},
		anthropicToolTop: {AnthropicTools, source{"refusal: input_schema does not support oneOf, allOf, or anyOf at the top level", "https://github.com/anthropics/claude-code/issues/27337"},
			[]string{prop(`{"oneOf":[{"type":"string"}]}`)}, []string{`{"type":"object","anyOf":[{}]}`, `{"type":"object","oneOf":[{}]}`, `{"type":"object","allOf":[{}]}`}},
		anthropicToolKey: {AnthropicTools, source{"refusal: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'", "https://github.com/vantage-sh/vantage-mcp-server/issues/43"},
			[]string{strings.ReplaceAll(plainTool, `"a"`, `"a.b-c"`)}, []string{strings.ReplaceAll(plainTool, `"a"`, `"$a"`), `{"type":"object","properties":{"a":` + strings.ReplaceAll(plainTool, `"a"`, `"a[]"`) + `}}`, `{"type":"object","properties":{"":{}}}`}},
		anthropicToolDraft: {AnthropicTools, source{"refusal: JSON schema is invalid. It must match JSON Schema draft 2020-12. Stricter: references lead to something", claude},
			[]string{prop(`true`)}, []string{prop(`{"type":"unknown"}`), prop(`{"type":"array","items":[{}]}`), prop(`{"$ref":"#/$defs/x"}`), prop(`null`)}},

		openaiToolCount: {OpenAITools, source{"refusal: Invalid 'tools': array too long. Expected an array with maximum length 128", "https://github.com/anomalyco/opencode/issues/4909"},
			[]string{count(128)}, []string{count(129)}},
		openaiToolName: {OpenAITools, source{"refusal: string too long. Expected a string with maximum length 64", "https://github.com/mastra-ai/mastra/issues/6302"},
			[]string{names("f", "9-_")}, []string{names("a.b"), names(long), names("f", "f")}},
		openaiToolObject: {OpenAITools, source{`refusal: schema must be a JSON Schema of 'type: "object"', got 'type: "None"'`, "https://github.com/vercel/ai/issues/7005"},
			[]string{plainTool}, []string{`{"properties":{}}`, `{"type":["object"],"properties":{}}`}},
		openaiToolTop: {OpenAITools, source{"refusal: schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level", "https://github.com/anomalyco/opencode/issues/35516"},
			[]string{prop(`{"not":{}}`)}, []string{`{"type":"object","properties":{},"not":{}}`, `{"type":"object","properties":{},"enum":[{}]}`}},
		openaiToolMember: {OpenAITools, source{"refusals: object schema missing properties; array schema missing items", "https://github.com/bnb-chain/bnbchain-mcp/issues/68"},
			[]string{plainTool}, []string{`{"type":"object"}`, prop(`{"type":"object"}`), prop(`{"type":"array","items":{"type":"array"}}`)}},
		openaiToolEnum: {OpenAITools, source{"JSON Schema: enum should have at least one element, and unique ones. Stricter: must", draft},
			[]string{plainTool}, []string{prop(`{"enum":[]}`), prop(`{"enum":["a","a"]}`)}},
		openaiToolSchema: {OpenAITools, source{"refusal: True is not of type 'object'. MFJS: a property schema must be an object", "https://github.com/can1357/oh-my-pi/issues/5952"},
			[]string{prop(`{}`)}, []string{prop(`true`), prop(`{"type":"array","items":false}`), prop(`{"anyOf":[true]}`), prop(`{"type":"object","properties":{},"additionalProperties":null}`)}},

		chatToolName: {ChatTools, source{"refusal: function name is invalid, must start with a letter and can contain letters, numbers, underscores, and dashes", "https://github.com/MoonshotAI/kimi-cli/issues/1773"},
			[]string{names("f", "G_-9")}, []string{names("9f"), names("-f"), names("_f")}},
		chatToolType: {ChatTools, source{"MFJS: type should be defined in anyOf items; llama.cpp's templates: type is a text", "https://github.com/ggml-org/llama.cpp/issues/21347"},
			[]string{plainTool}, []string{prop(`{"type":["string","null"]}`), prop(`{}`), prop(`{"enum":["a"]}`), prop(`{"type":"string","anyOf":[{"type":"string"}]}`)}},
		chatToolRequired: {ChatTools, source{"MFJS: required names properties", "https://github.com/vercel/ai/pull/18921"},
			[]string{plainTool}, []string{`{"type":"object","properties":{},"required":["a"]}`, `{"type":"object","properties":{},"required":[]}`}},
		chatToolKey: {ChatTools, source{"Anthropic's rule, on servers that lead there", "https://github.com/vantage-sh/vantage-mcp-server/issues/43"},
			[]string{plainTool}, []string{strings.ReplaceAll(plainTool, `"a"`, `"a b"`)}},
		chatToolKeyword: {ChatTools, source{"llama.cpp: Pattern must start with '^'. Stricter: only what MFJS, llama.cpp and Gemini's endpoint have in common", "https://github.com/ggml-org/llama.cpp/issues/26930"},
			[]string{plainTool}, []string{prop(`{"type":"string","pattern":"a"}`), prop(`{"type":"string","items":{"type":"string"}}`), prop(`{"type":"string","default":null}`), prop(`{"type":"object","properties":{},"$defs":{}}`)}},
		chatToolDepth: {ChatTools, source{"OpenAI's guide on structured outputs: up to 10 levels of nesting", "https://platform.openai.com/docs/guides/structured-outputs"},
			[]string{plainTool}, []string{deep}},

		geminiToolCount: {GeminiTools, source{"Vertex: at most 128 function declarations", "https://docs.cloud.google.com/vertex-ai/generative-ai/docs/model-reference/function-calling"},
			[]string{count(128)}, []string{count(129)}},
		geminiToolName: {GeminiTools, source{"refusal: Invalid function name. Must start with a letter or an underscore", "https://github.com/SuperClaude-Org/SuperGemini_Framework/issues/12"},
			[]string{names("f", "_9")}, []string{names("9f"), names("-f"), names("f", "f"), names(long)}},
		geminiToolType: {GeminiTools, source{"refusals: Proto field is not repeating, cannot start list; any_of: it must be the only field set", "https://github.com/taylorwilsdon/google_workspace_mcp/issues/1099"},
			[]string{plainTool}, []string{`{"properties":{}}`, prop(`{}`), prop(`{"type":["string","null"]}`), prop(`{"description":"d","anyOf":[{"type":"string"}]}`)}},
		geminiToolRequired: {GeminiTools, source{"refusal: required[0]: property is not defined", "https://github.com/probelabs/probe/issues/569"},
			[]string{plainTool}, []string{`{"type":"object","properties":{},"required":["a"]}`}},
		geminiToolKey: {GeminiTools, source{"Vertex, FunctionDeclaration.parameters: names begin with a letter or an underscore, a-z, A-Z, 0-9, or underscores, 64", "https://docs.cloud.google.com/vertex-ai/generative-ai/docs/model-reference/function-calling"},
			[]string{plainTool}, []string{strings.ReplaceAll(plainTool, `"a"`, `"a-b"`), strings.ReplaceAll(plainTool, `"a"`, `"9"`)}},
		geminiToolKeyword: {GeminiTools, source{"refusals: Unknown name const, $schema, exclusiveMinimum; only 'enum' and 'date-time' are supported for STRING type", google},
			[]string{prop(`{"type":"string","format":"date-time"}`)}, []string{prop(`{"type":"string","const":"a"}`), prop(`{"type":"string","format":"uri"}`), prop(`{"type":"integer","exclusiveMinimum":0}`), prop(`{"type":"string","default":"a"}`), `{"type":"object","properties":{},"$schema":"x"}`}},
		geminiToolMember: {GeminiTools, source{"refusal: items: missing field", "https://github.com/cline/cline/issues/7339"},
			[]string{plainTool}, []string{prop(`{"type":"array"}`), prop(`{"type":"object"}`)}},
		geminiToolEnum: {GeminiTools, source{"refusals: enum[3]: cannot be empty; enum: only allowed for STRING type", "https://github.com/Smana/runlore/pull/40"},
			[]string{plainTool}, []string{prop(`{"type":"string","enum":[]}`), prop(`{"type":"string","enum":["a",""]}`)}},
	}
}

// requestOf returns a request with one tool of that schema, or with tools of
// names, in the form of the API that a rule is of.
func requestOf(rule providerRule, text string) []byte {
	api, _, _ := strings.Cut(string(rule), " ")
	tool := map[string]string{
		"anthropic": `{"name":"NAME","input_schema":SCHEMA}`, "openai": `{"name":"NAME","parameters":SCHEMA}`,
		"chat": `{"function":{"name":"NAME","parameters":SCHEMA}}`, "gemini": `{"name":"NAME","parametersJsonSchema":SCHEMA}`,
	}[api]
	schema, names := text, []string{"f"}
	if list, ok := strings.CutPrefix(text, "names "); ok {
		schema, names = plainTool, strings.Fields(list)
	}
	var tools []string
	for _, name := range names {
		tools = append(tools, strings.NewReplacer("NAME", name, "SCHEMA", schema).Replace(tool))
	}
	list := strings.Join(tools, ",")
	if api == "gemini" {
		list = `{"functionDeclarations":[` + list + `]}`
	}
	return []byte(`{"tools":[` + list + `]}`)
}

// TestToolRules: good tools pass, and tools that break a rule are refused for
// just that rule.
func TestToolRules(t *testing.T) {
	t.Parallel()
	for rule, r := range toolRules() {
		if len(r.good) == 0 || len(r.bad) == 0 || r.from.title == "" || !strings.HasPrefix(r.from.url, "https://") {
			t.Errorf("%s: %d good ones, %d bad ones; stated by %q at %q", rule, len(r.good), len(r.bad), r.from.title, r.from.url)
		}
		for _, text := range r.good {
			if err := r.check(requestOf(rule, text)); err != nil {
				t.Errorf("%s: %.200s: %v", rule, text, err)
			}
		}
		for _, text := range r.bad {
			var got *broken
			if err := r.check(requestOf(rule, text)); !errors.As(err, &got) || got.rule != rule {
				t.Errorf("%s: %.200s: got %v", rule, text, err)
			}
		}
	}
}
