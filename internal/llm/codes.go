package llm

import "github.com/refold/refold/actors/session"

// The codes of failed generations. The set is closed; the texts are wire.
const (
	CodeContextLength     = "context_length_exceeded" // the conversation is longer than the model accepts
	CodeContentFilter     = "content_filter"          // the provider refused the content
	CodeAuth              = "auth"                    // the provider refused the key
	CodeBadRequest        = "bad_request"             // the provider refused the request
	CodeRateLimited       = "rate_limited"            // too many requests or tokens, or no credit left
	CodeOverloaded        = "overloaded"              // the provider failed
	CodeNetwork           = "network"                 // no connection, or an answer that broke off
	CodeMalformedAnswer   = "malformed_answer"        // the provider could not read what its model wrote
	CodeRecordingEnded    = "recording_ended"         // a recording has no such turn
	CodeRecordingMismatch = "recording_mismatch"      // the request differs from the recorded one
	CodeScriptMismatch    = "script_mismatch"         // the request differs from the one that the script expects
)

// The values of an Answer's FinishReason, besides a provider's unknown words.
const (
	FinishStop          = session.FinishStop
	FinishToolCalls     = session.FinishToolCalls
	FinishLength        = session.FinishLength
	FinishContentFilter = session.FinishContentFilter
	FinishRefusal       = session.FinishRefusal
	FinishEmpty         = session.FinishEmpty
	FinishThoughts      = session.FinishThoughts
)
