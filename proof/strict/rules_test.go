package strict

// The source of each rule of a provider, and for each a conversation that
// breaks it: a validator that can't fail is worthless.

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// source is a document that states a rule: what a provider publishes of its API
// (the types of its SDK are generated from the specification, and carry the
// reference's text), else a report that quotes the API's refusal. `Stricter`
// says what of a rule is ours: nothing empty is sent, and no provider's
// leniency is needed.
type source struct{ title, url string }

func ruleSources() map[providerRule]source {
	const (
		openaiTypes    = "https://github.com/openai/openai-python/blob/main/src/openai/types/"
		anthropicTypes = "https://github.com/anthropics/anthropic-sdk-python/blob/main/src/anthropic/types/"
		vision         = "https://platform.claude.com/docs/en/build-with-claude/vision"
		contentProto   = "https://github.com/googleapis/googleapis/blob/master/google/ai/generativelanguage/v1beta/content.proto"
	)
	return map[providerRule]source{
		chatRole:      {"OpenAI SDK, ChatCompletionRole: developer, system, user, assistant, tool (and function, which is deprecated)", openaiTypes + "chat/chat_completion_role.py"},
		chatContent:   {"OpenAI SDK, content: required of every message, of the assistant's unless tool_calls is given. Stricter: not empty", openaiTypes + "chat/chat_completion_assistant_message_param.py"},
		chatCallsOnly: {"OpenAI SDK, tool_call_id is a field of tool messages alone, as tool_calls is of the assistant's. Stricter: so is what was thought", openaiTypes + "chat/chat_completion_tool_message_param.py"},
		chatAnswered:  {"refusal: An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'", "https://github.com/BerriAI/litellm/issues/10083"},
		chatAsked:     {"refusal: messages with role 'tool' must be a response to a preceding message with 'tool_calls'", "https://github.com/openai/openai-go/issues/43"},
		chatOnce:      {"refusal: Duplicate value for 'tool_call_id'. Stricter: nor does the model call by one id again", "https://github.com/agno-agi/agno/issues/5116"},
		chatName:      {"refusal: 'messages[].tool_calls[].function.name' matches '^[a-zA-Z0-9_-]+$'; at most 64 says the SDK's FunctionDefinition", "https://github.com/mcp-use/mcp-use/issues/90"},
		chatID:        {"refusal, by Mistral: Tool call id must be a-z, A-Z, 0-9, with a length of 9; OpenAI accepts at most 40", "https://github.com/anomalyco/opencode/issues/1680"},
		chatArguments: {"refusals: arguments must be a valid JSON object string; a server parses them for its chat template (vLLM)", "https://github.com/justrach/codegraff/issues/752"},
		chatAlternate: {"refusal, by Mistral's chat templates: After the optional system message, conversation roles must alternate user/assistant/user/assistant/...", "https://github.com/nomic-ai/gpt4all/issues/3273"},
		chatAfterTool: {"refusal, by Mistral: Unexpected role 'user' after role 'tool'", "https://github.com/NousResearch/hermes-agent/issues/20154"},
		chatLast:      {"refusal, by Mistral: Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant", "https://github.com/0xPlaygrounds/rig/pull/1130"},

		responsesForm:     {"OpenAI SDK, function call: arguments, call_id, name and type are required", openaiTypes + "responses/response_function_tool_call_param.py"},
		responsesRole:     {"OpenAI SDK, role of an input message: user, assistant, system or developer", openaiTypes + "responses/easy_input_message_param.py"},
		responsesContent:  {"OpenAI SDK, content of a message and output of a function_call_output are required. Stricter: not empty", openaiTypes + "responses/response_input_param.py"},
		responsesAnswered: {"refusal: No tool output found for function call", "https://github.com/Azure/azure-sdk-for-python/issues/46092"},
		responsesAsked:    {"refusal: No tool call found for function call output with call_id", "https://github.com/continuedev/continue/issues/10092"},
		responsesOnce:     {"refusal, by another provider of this API: Each function_call must have exactly one matching function_call_output; OpenAI: call_id is unique", "https://github.com/NousResearch/hermes-agent/issues/102629"},
		responsesName:     {"OpenAI SDK, FunctionDefinition: name is of a-z, A-Z, 0-9, underscores and dashes, at most 64", openaiTypes + "shared_params/function_definition.py"},
		responsesID:       {"refusal: 'input[].call_id' is at most 64 long. Stricter: of letters, digits, _ and -", "https://github.com/RooCodeInc/Roo-Code/pull/10763"},
		responsesObject:   {"refusal, by vLLM: /v1/responses rejects a historical function_call with malformed arguments", "https://github.com/local-inference-lab/vllm/issues/684"},

		responsesThought: {"refusals: Item of type 'reasoning' was provided without its required following item; Items are not persisted when `store` is set to false", "https://github.com/continuedev/continue/issues/8933"},

		anthropicRole:      {"refusal, by Bedrock: first message must use the \"user\" role; Anthropic itself lets it pass. The SDK: roles are user and assistant", "https://github.com/anthropics/anthropic-sdk-typescript/issues/622"},
		anthropicAlternate: {"Anthropic SDK: turns alternate, those of one role are combined. Stricter: we combine them, so that results stand first", anthropicTypes + "message_create_params.py"},
		anthropicLast:      {"refusal: This model does not support assistant message prefill. The conversation must end with a user message", "https://github.com/vybestack/llxprt-code/pull/3695"},
		anthropicContent:   {"refusals: all messages must have non-empty content; text content blocks must contain non-whitespace text. Stricter: so has a result", "https://github.com/anthropics/claude-code/issues/23440"},
		anthropicBlock:     {"refusal: `tool_result` blocks can only be in `user` messages; the SDK: tool_use is what the model produces", "https://github.com/tghamm/Anthropic.SDK/issues/128"},
		anthropicAnswered:  {"refusal: Each `tool_use` block must have a corresponding `tool_result` block in the next message", "https://github.com/anthropics/claude-code/issues/1237"},
		anthropicAsked:     {"refusal: each tool_result block must have a corresponding tool_use block in the previous message", "https://github.com/anthropics/claude-code/issues/18947"},
		anthropicOnce:      {"refusals: tool_use ids must be unique; each tool_use must have a single result", "https://github.com/vectorize-io/hindsight/pull/4250"},
		anthropicFirst:     {"refusal: Messages following tool_use blocks must begin with a matching number of tool_result blocks", "https://github.com/anthropics/anthropic-sdk-typescript/issues/653"},
		anthropicInput:     {"refusal: tool_use.input: Input should be a valid dictionary", "https://github.com/anthropics/anthropic-sdk-typescript/issues/648"},
		anthropicName:      {"refusal: tools.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'; later 128", "https://github.com/anthropics/claude-code/issues/985"},
		anthropicID:        {"refusal: tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", "https://github.com/tailcallhq/forgecode/issues/1142"},

		anthropicThought: {"Anthropic SDK, ThinkingBlockParam: signature is required; RedactedThinkingBlockParam: data is", anthropicTypes + "thinking_block_param.py"},

		anthropicSide: {"Anthropic's guide on vision: the maximal dimensions per image are 8000x8000 px", vision},
		anthropicMany: {"Anthropic's guide on vision: 100 images, for models with a context of 200k; of more than 20, none has more than 2000x2000 px. Stricter: documents count too", vision},

		geminiRole:      {"Gemini API, Content: role must be user or model", contentProto},
		geminiAlternate: {"refusal: Please ensure that multiturn requests alternate between user and model", "https://github.com/Portkey-AI/gateway/issues/258"},
		geminiLast:      {"refusal: Please ensure that multiturn requests ends with a user role or a function response", "https://github.com/songquanpeng/one-api/issues/836"},
		geminiParts:     {"refusals: contents.parts must not be empty; required oneof field 'data' must have one initialized field", "https://github.com/vercel/ai/issues/3775"},
		geminiText:      {"refusal: required oneof field 'data' must have one initialized field, of an empty text", "https://github.com/router-for-me/CLIProxyAPI/issues/1292"},
		geminiBlock:     {"report: responses under the role model are refused, that of the user is right; the API: a call is returned from the model", "https://github.com/maximhq/bifrost/pull/2222"},
		geminiParity:    {"refusal: the number of function response parts is equal to the number of function call parts of the function call turn", "https://github.com/google-gemini/gemini-cli/issues/16984"},
		geminiAfter:     {"refusal: function response turn comes immediately after a function call turn", "https://github.com/langchain-ai/langchain/issues/27799"},
		geminiMatch:     {"Gemini API, FunctionResponse: id matches the call's, name is the function's", contentProto},
		geminiApart:     {"report: words beside a response are taken for a part of it", "https://github.com/google-gemini/gemini-cli/pull/28700"},
		geminiArgs:      {"Gemini API, FunctionCall and FunctionResponse: args and response are Structs", contentProto},
		geminiImage:     {"Gemini API, Blob: mime_type and data are required. Stricter: images of a user, and in responses, alone", contentProto},
		geminiSignature: {"Gemini API, Part: thought_signature is of a thought of the model's, to be reused in later requests", contentProto},
		geminiName:      {"Google's Dart package, FunctionCall: name is of a-z, A-Z, 0-9, underscores and dashes, at most 64 (63 in content.proto of 2024)", "https://pub.dev/documentation/google_cloud_ai_generativelanguage_v1beta/latest/generativelanguage/FunctionCall/name.html"},
	}
}

// read decodes a conversation in a provider's form, with no field unknown.
func read[T any](t *testing.T, text string) []T {
	t.Helper()
	var v []T
	dec := json.NewDecoder(strings.NewReader("[" + text + "]"))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// validate checks a conversation written in the form of the provider that a
// rule is of.
func validate(t *testing.T, provider, text string) error {
	t.Helper()
	switch provider {
	case "chat":
		return Chat(read[ChatMessage](t, text))
	case "responses":
		return Responses(read[ResponseItem](t, text))
	case "anthropic":
		return Anthropic(read[AnthropicMessage](t, text))
	}
	return Gemini(read[GeminiTurn](t, text))
}

// wellFormed is a conversation with two calls, in each form.
func wellFormed() map[string]string {
	return map[string]string{
		"chat": `{"role":"system","content":"s"},{"role":"user","content":"hi"},
			{"role":"assistant","tool_calls":[{"id":"aaaaaaaaa","type":"function","function":{"name":"f","arguments":"{\"x\":[1.5e3]}"}},{"id":"bbbbbbbbb","type":"function","function":{"name":"g","arguments":" {} "}}]},
			{"role":"tool","tool_call_id":"bbbbbbbbb","content":"2"},{"role":"tool","tool_call_id":"aaaaaaaaa","content":"1"},
			{"role":"assistant","content":"(interrupted)"},{"role":"user","content":"more"},
			{"role":"assistant","content":"yes","reasoning_content":"so","reasoning_details":[{"type":"reasoning.text","text":"so"}]},{"role":"user","content":"so"}`,
		"responses": `{"role":"developer","content":[{"type":"input_text","text":"s"}]},{"type":"message","role":"user","content":"hi"},{"type":"message","role":"assistant","content":"let me see"},
			{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call","call_id":"b","name":"g","arguments":"{\"s\":\"\\ud83d\\ude00\"}"},
			{"type":"function_call_output","call_id":"b","output":"2"},{"type":"function_call_output","call_id":"a","output":"1"},
			{"type":"message","role":"user","content":"more"}`,
		"anthropic": `{"role":"user","content":[{"type":"text","text":"hi"}]},
			{"role":"assistant","content":[{"type":"text","text":"let me see"},{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"g","input":{"x":1}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"2"},{"type":"tool_result","tool_use_id":"a","content":"1","is_error":true},{"type":"text","text":"more"}]}`,
		"gemini": `{"role":"user","parts":[{"text":"hi"}]},
			{"role":"model","parts":[{"text":"let me see"},{"functionCall":{"id":"a","name":"f","args":{}}},{"functionCall":{"id":"b","name":"g"}}]},
			{"role":"user","parts":[{"functionResponse":{"id":"b","name":"g","response":{"output":"2"}}},{"functionResponse":{"id":"a","name":"f","response":{"error":"1"}}}]},
			{"role":"model","parts":[{"text":"well"}]},{"role":"user","parts":[{"text":"and"},{"text":"more"}]}`,
	}
}

// illFormed is, for each rule, conversations that break it and no other that is
// looked at before.
func illFormed() map[providerRule][]string {
	const (
		hi    = `{"role":"user","content":"hi"}`
		ask   = `{"role":"assistant","tool_calls":[{"id":"aaaaaaaaa","type":"function","function":{"name":"f","arguments":"{}"}}]}`
		tell  = `{"role":"tool","tool_call_id":"aaaaaaaaa","content":"1"}`
		rHi   = `{"type":"message","role":"user","content":"hi"}`
		rAsk  = `{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`
		rTell = `{"type":"function_call_output","call_id":"a","output":"1"}`
		cHi   = `{"role":"user","content":[{"type":"text","text":"hi"}]}`
		cUse  = `{"type":"tool_use","id":"a","name":"f","input":{}}`
		cAsk  = `{"role":"assistant","content":[` + cUse + `]}`
		cRes  = `{"type":"tool_result","tool_use_id":"a","content":"1"}`
		cTell = `{"role":"user","content":[` + cRes + `]}`
		gHi   = `{"role":"user","parts":[{"text":"hi"}]}`
		gSay  = `{"role":"model","parts":[{"text":"well"}]}`
		gCall = `{"functionCall":{"id":"a","name":"f","args":{}}}`
		gAsk  = `{"role":"model","parts":[` + gCall + `]}`
		gRes  = `{"functionResponse":{"id":"a","name":"f","response":{}}}`
		gTell = `{"role":"user","parts":[` + gRes + `]}`
	)
	long := strings.Repeat("a", 65)
	swap := func(in, old, with string) string { return strings.Replace(in, old, with, 1) }
	return map[providerRule][]string{
		chatRole:      {hi + `,{"role":"system","content":"x"}`},
		chatContent:   {``, `{"role":"user"}`, hi + `,{"role":"assistant"}`, hi + "," + ask + `,{"role":"tool","tool_call_id":"aaaaaaaaa"}`, `{"role":"user","content":" "}`},
		chatCallsOnly: {`{"role":"user","content":"x","tool_call_id":"a"}`, `{"role":"user","content":"x","reasoning_content":"so"}`},
		chatAnswered:  {hi + "," + ask, hi + "," + ask + "," + hi + "," + tell},
		chatAsked:     {hi + "," + tell, hi + "," + ask + "," + swap(tell, `"aaaaaaaaa"`, `"b"`)},
		chatOnce: {hi + "," + ask + "," + tell + "," + tell,
			hi + "," + ask + "," + tell + "," + swap(ask, `"role":"assistant"`, `"role":"assistant","content":"x"`) + "," + tell,
			hi + "," + ask + "," + tell + `,{"role":"assistant","content":"x"},` + hi + "," + ask + "," + tell},
		chatName: {hi + "," + swap(ask, `"f"`, `""`), hi + "," + swap(ask, `"f"`, `"a b"`), hi + "," + swap(ask, `"f"`, `"`+long+`"`)},
		chatID:   {hi + "," + swap(ask, `"aaaaaaaaa"`, `""`), hi + "," + swap(ask, `"aaaaaaaaa"`, `"aaaaaaaaaa"`), hi + "," + swap(ask, `"aaaaaaaaa"`, `"aaaa_aaaa"`)},
		chatArguments: {hi + "," + swap(ask, `"{}"`, `""`), hi + "," + swap(ask, `"{}"`, `"[]"`), hi + "," + swap(ask, `"{}"`, `"{}{}"`), hi + "," + swap(ask, `"{}"`, `"{\"s\":\"\\ud83d\"}"`),
			hi + "," + swap(ask, `"{}"`, `"{\"n\":1e400}"`), hi + "," + swap(ask, `"{}"`, `"{\"a\":`+strings.Repeat("[", 64)+strings.Repeat("]", 64)+`}"`)},
		chatAlternate: {hi + "," + hi, hi + `,{"role":"assistant","content":"x"},{"role":"assistant","content":"y"}`, `{"role":"assistant","content":"x"},` + hi},
		chatAfterTool: {hi + "," + ask + "," + tell + "," + hi},
		chatLast:      {hi + `,{"role":"assistant","content":"x"}`},

		responsesForm:     {rHi + `,{"type":"odd","call_id":"a"}`, rHi + "," + swap(rAsk, `,"arguments":"{}"`, ``)},
		responsesRole:     {swap(rHi, "user", "tool")},
		responsesContent:  {``, swap(rHi, `"hi"`, `""`), rHi + "," + rAsk + "," + swap(rTell, `"1"`, `""`)},
		responsesAnswered: {rHi + "," + rAsk, rHi + "," + rAsk + "," + rHi + "," + rTell},
		responsesAsked:    {rHi + "," + rTell, rHi + "," + rTell + "," + rAsk},
		responsesOnce:     {rHi + "," + rAsk + "," + rTell + "," + rTell, rHi + "," + rAsk + "," + rAsk + "," + rTell},
		responsesName:     {rHi + "," + swap(rAsk, `"f"`, `"a.b"`)},
		responsesID:       {rHi + "," + swap(rAsk, `"a"`, `""`), rHi + "," + swap(rAsk, `"a"`, `"`+long+`"`), rHi + "," + swap(rAsk, `"a"`, `"a:b"`)},
		responsesObject:   {rHi + "," + swap(rAsk, `"{}"`, `"{"`), rHi + "," + swap(rAsk, `"{}"`, `"null"`)},

		responsesThought: {rHi + `,{"type":"reasoning","id":"x","encrypted_content":"y"}`, rHi + `,{"type":"reasoning","id":"x","encrypted_content":"y"},` + rHi,
			rHi + `,{"type":"reasoning","id":"x"},` + rAsk + "," + rTell},

		anthropicRole:      {`{"role":"system","content":[{"type":"text","text":"s"}]}`, cAsk + "," + cTell},
		anthropicAlternate: {cHi + "," + cHi, cHi + "," + cAsk + "," + cTell + "," + cHi},
		anthropicLast:      {cHi + `,{"role":"assistant","content":[{"type":"text","text":"well"}]}`},
		anthropicContent:   {``, `{"role":"user","content":[]}`, swap(cHi, `"hi"`, `" \n"`), cHi + "," + cAsk + "," + swap(cTell, `"1"`, `""`)},
		anthropicBlock:     {swap(cHi, `{"type":"text","text":"hi"}`, cUse), swap(cHi, `"text","text"`, `"odd","text"`), cHi + "," + swap(cAsk, cUse, cRes)},
		anthropicAnswered:  {cHi + "," + cAsk, cHi + "," + cAsk + "," + cHi},
		anthropicAsked:     {swap(cHi, `{"type":"text","text":"hi"}`, cRes), cHi + "," + cAsk + "," + swap(cTell, `"a"`, `"b"`)},
		anthropicOnce: {cHi + "," + cAsk + "," + swap(cTell, cRes, cRes+","+cRes), cHi + "," + swap(cAsk, cUse, cUse+","+cUse),
			cHi + "," + cAsk + "," + cTell + "," + cAsk + "," + cTell},
		anthropicFirst: {cHi + "," + cAsk + "," + swap(cTell, cRes, `{"type":"text","text":"so"},`+cRes)},
		anthropicInput: {cHi + "," + swap(cAsk, `"input":{}`, `"input":[]`), cHi + "," + swap(cAsk, `,"input":{}`, ``), cHi + "," + swap(cAsk, `"input":{}`, `"input":"{}"`), cHi + "," + swap(cAsk, `"input":{}`, `"input":{"s":"\ud83d"}`)},
		anthropicName:  {cHi + "," + swap(cAsk, `"f"`, `"a b"`), cHi + "," + swap(cAsk, `"f"`, `"`+long+`"`)},
		anthropicID:    {cHi + "," + swap(cAsk, `"a"`, `"a:1"`), cHi + "," + swap(cAsk, `"a"`, `"`+long+`:"`)},

		anthropicThought: {cHi + "," + swap(cAsk, cUse, `{"type":"thinking","thinking":"hm"},`+cUse) + "," + cTell, swap(cHi, `"text","text":"hi"`, `"redacted_thinking","data":"x"`)},

		anthropicSide: {pictures(1, 8001)},
		anthropicMany: {pictures(101, 2), pictures(21, 2001)},

		geminiRole:      {gSay + "," + gHi, swap(gHi, "user", "function")},
		geminiAlternate: {gHi + "," + gHi, gHi + "," + gSay + "," + gAsk},
		geminiLast:      {gHi + "," + gSay},
		geminiParts:     {``, `{"role":"user","parts":[]}`, `{"role":"user","parts":[{}]}`, swap(gHi, `"hi"`, `"hi","functionCall":{"name":"f"}`)},
		geminiText:      {swap(gHi, `"hi"`, `""`)},
		geminiBlock:     {swap(gHi, `{"text":"hi"}`, gCall), gHi + "," + swap(gAsk, gCall, gRes)},
		geminiParity:    {gHi + "," + gAsk, gHi + "," + gAsk + "," + gHi, gHi + "," + gAsk + "," + swap(gTell, gRes, gRes+","+gRes)},
		geminiAfter:     {gTell, gHi + "," + gSay + "," + gTell},
		geminiMatch:     {gHi + "," + gAsk + "," + swap(gTell, `"f"`, `"g"`), gHi + "," + gAsk + "," + swap(gTell, `"a"`, `"b"`)},
		geminiApart:     {gHi + "," + gAsk + "," + swap(gTell, gRes, gRes+`,{"text":"more"}`), gHi + "," + gAsk + "," + swap(gTell, gRes, `{"text":"more"},`+gRes)},
		geminiArgs:      {gHi + "," + swap(gAsk, `"args":{}`, `"args":[]`), gHi + "," + swap(gAsk, `"args":{}`, `"args":{"a":`+strings.Repeat("[", 32)+strings.Repeat("]", 32)+`}`), gHi + "," + gAsk + "," + swap(gTell, `"response":{}`, `"response":"1"`)},
		geminiImage:     {swap(gHi, `"text":"hi"`, `"inlineData":{"mimeType":"image/png","data":""}`), swap(gHi, `"text":"hi"`, `"inlineData":{"mimeType":"text/html","data":"aGk="}`)},
		geminiSignature: {swap(gHi, `"hi"`, `"hi","thoughtSignature":"aGk="`)},
		geminiName:      {gHi + "," + swap(gAsk, `"f"`, `"a b"`), gHi + "," + gAsk + "," + swap(gTell, `"f"`, `""`)},
	}
}

// TestProviderRules: the validators accept well-formed conversations, and
// refuse one that breaks a rule for just that rule. Every rule has its source.
func TestProviderRules(t *testing.T) {
	t.Parallel()
	for provider, text := range wellFormed() {
		if err := validate(t, provider, text); err != nil {
			t.Errorf("%s: a good conversation: %v", provider, err)
		}
	}
	cases := illFormed()
	for rule, from := range ruleSources() {
		if len(cases[rule]) == 0 || from.title == "" || !strings.HasPrefix(from.url, "https://") {
			t.Errorf("%s: %d conversations break it; stated by %q at %q", rule, len(cases[rule]), from.title, from.url)
		}
	}
	for rule, texts := range cases {
		if _, ok := ruleSources()[rule]; !ok {
			t.Errorf("%s: nothing states it", rule)
		}
		for _, text := range texts {
			provider, _, _ := strings.Cut(string(rule), ":")
			err := validate(t, provider, text)
			var got *broken
			if !errors.As(err, &got) || got.rule != rule {
				t.Errorf("%s: %s: got %v", rule, text, err)
			}
		}
	}
}
