package llm

// The codes of generations that failed: a closed set; the texts are wire.
const (
	CodeContextLength     = "context_length_exceeded" // the conversation is longer than the model takes
	CodeContentFilter     = "content_filter"          // the provider refused the content
	CodeAuth              = "auth"                    // the provider refused the key
	CodeBadRequest        = "bad_request"             // the provider refused the request, and would again
	CodeRateLimited       = "rate_limited"            // too many requests or tokens, or no credit left
	CodeOverloaded        = "overloaded"              // the provider failed
	CodeNetwork           = "network"                 // no connection, or an answer that broke off
	CodeRecordingEnded    = "recording_ended"         // the recording has no such turn
	CodeRecordingMismatch = "recording_mismatch"      // shown something else than was recorded
	CodeScriptMismatch    = "script_mismatch"         // shown something else than the script expects
)

// The ways in which an answer ends, as an Answer's FinishReason says them.
const (
	FinishStop          = "stop"
	FinishToolCalls     = "tool_calls"
	FinishLength        = "length"
	FinishContentFilter = "content_filter"
)
