package llm

import (
	"strings"

	"github.com/refold/refold/bridge/executor"
)

// ends are the known words of all APIs and servers for why an answer ended, in
// lower case, and what they mean: a finish reason, or the code of a failure.
// One table serves all clients, since gateways pass on the words of others. The
// sources are in conformance/testdata/answers.
var ends = map[string]string{
	"stop": FinishStop, "end_turn": FinishStop, "stop_sequence": FinishStop, "eos": FinishStop, "eos_token": FinishStop,
	"complete": FinishStop, "completed": FinishStop, "end": FinishStop, "finish_reason_stop": FinishStop,

	"tool_calls": FinishToolCalls, "tool_call": FinishToolCalls, "tool_use": FinishToolCalls, "function_call": FinishToolCalls,

	"length": FinishLength, "max_tokens": FinishLength, "max_output_tokens": FinishLength, "model_length": FinishLength,
	"max_length": FinishLength, "token_limit": FinishLength, "model_context_window_exceeded": FinishLength,

	"refusal": FinishRefusal,

	"content_filter": FinishContentFilter, "content_filtered": FinishContentFilter, "guardrail_intervened": FinishContentFilter,
	"sensitive": FinishContentFilter, "error_toxic": FinishContentFilter, "safety": FinishContentFilter, "recitation": FinishContentFilter,
	"language": FinishContentFilter, "blocklist": FinishContentFilter, "prohibited_content": FinishContentFilter, "spii": FinishContentFilter,
	"image_safety": FinishContentFilter, "image_prohibited_content": FinishContentFilter, "image_recitation": FinishContentFilter,
	"model_armor": FinishContentFilter, "jailbreak": FinishContentFilter,

	"error": CodeOverloaded, "server_error": CodeOverloaded, "internal_error": CodeOverloaded, "failed": CodeOverloaded,
	"insufficient_system_resource": CodeOverloaded, "engine_overloaded": CodeOverloaded, "timeout": CodeOverloaded,
	"time_limit": CodeOverloaded, "network_error": CodeNetwork, "abort": CodeNetwork, "aborted": CodeNetwork,
	"cancelled": CodeNetwork, "canceled": CodeNetwork,

	"malformed_function_call": CodeMalformedAnswer, "malformed_response": CodeMalformedAnswer, "malformed_tool_use": CodeMalformedAnswer,
	"malformed_model_output": CodeMalformedAnswer, "too_many_tool_calls": CodeMalformedAnswer, "unexpected_tool_call": CodeMalformedAnswer,
	"missing_thought_signature": CodeMalformedAnswer, "tool_use_failed": CodeMalformedAnswer,
}

// End sets an answer's finish reason from its provider's word. An unknown word
// stays, so that the run's end names it. thought means that the model thought. A
// word that means a failure gives its code: then there is no answer.
func End(a *executor.Answer, word string, thought bool) (code string) {
	end, known := ends[strings.ToLower(word)]
	if !known && strings.Contains(strings.ToLower(word), "malformed") { // function_call_filter: MALFORMED_FUNCTION_CALL
		end, known = CodeMalformedAnswer, true
	}
	switch {
	case word == "" || end == FinishStop || end == FinishToolCalls && len(a.Calls) > 0:
		a.FinishReason = FinishStop
		if len(a.Calls) > 0 { // some servers send stop
			a.FinishReason = FinishToolCalls
		}
	case !known:
		a.FinishReason = Clip(word, finishBytesMax)
		return ""
	case end == FinishToolCalls, end == FinishLength, end == FinishContentFilter, end == FinishRefusal:
		a.FinishReason = end
		return ""
	case strings.EqualFold(word, "unexpected_tool_call") && len(a.Calls) > 0: // the session refuses the call
		a.FinishReason = FinishToolCalls
	default:
		return end
	}
	if len(a.Calls) == 0 && IsBlank(a.Text) {
		a.FinishReason = FinishEmpty
		if thought {
			a.FinishReason = FinishThoughts
		}
	}
	return ""
}

// finishBytesMax is the length of an unknown word.
const finishBytesMax = 64
