package bridge

import (
	"context"
	"encoding/json"

	"github.com/refold/refold/actors/session"
)

// Model carries out the generations of one provider. Generate is called at
// most once at a time per effect name in this process, from several
// goroutines for different effects. It streams what it has through delta (nil
// is never passed; one call at a time, none after Generate returned; what comes
// when ctx is over is dropped): the words of the answer from the first on, and
// nothing else, so no thoughts. Pieces may be as small as they come. Who begins
// again says so with [Request.Anew]. It returns the whole answer, which counts also
// if it comes when ctx is over. A returned *Error settles the generation
// `failed` with its code; any other error with code `model_error`, or as one
// that is Retryable, `deadline_exceeded`, if it wraps
// context.DeadlineExceeded. But what is
// Retryable starts the generation again after a while, under another Start, as
// long as the effect's start_by allows: a Model that retries by itself need not
// go on for long. When ctx is cancelled Generate must return soon.
type Model interface {
	Generate(ctx context.Context, req Request, delta func(text string)) (Answer, error)
}

// Request is one generation, with the text that the log holds filled in. It is
// read-only: what it refers to is shared with other generations.
type Request struct {
	Session    string          // session id
	Effect     string          // r1t2
	Start      string          // ULID of this start of the effect
	Model      string          // the provider's name of the model
	System     string          // empty: none
	Params     json.RawMessage // an object, or nil; passed on as it is
	Format     *Format         // of the answer; nil: words
	Messages   []Message       // never empty
	Tools      []Tool          // what may be called, in the order to be shown; empty: none
	ToolChoice string          // auto (or empty), none, required, or a tool_name

	// Defined are the tools to define in the same order in all turns of the run,
	// if the provider can restrict calls to Tools, which are among them. A Model
	// whose provider can't ignores them. nil: they are Tools.
	Defined []Tool

	// CacheTTL is how long the provider is asked to keep the prompt cached: 5m (or
	// empty), 1h, or off, which asks for nothing.
	CacheTTL string

	// OutputTokensMax is how many tokens the run's budgets leave for the answer,
	// those of its thoughts included: a Model asks its provider for no more, if
	// the provider has such a limit. 0: no limit.
	OutputTokensMax int64

	Toolset string // fingerprint, hex: what has the same one has the same Tools

	starting *starting   // hears what becomes of this start; nil: nobody does
	deltas   *liveDeltas // what is streamed goes there; nil: nowhere

	// rendered keeps what is rendered of Tools; nil: nothing does.
	rendered *renderings
	asked    *session.Generation // for which rendered keeps it
}

// Format is the form that an answer's words must have: JSON.
type Format struct {
	Name   string          // of the schema; of A-Za-z0-9_-; empty: none is given
	Schema json.RawMessage // JSON Schema; nil: any object
	Strict bool            // the provider must hold the answer to the schema, and may refuse schemas that it can't
}

// Message is one item of the conversation. Roles are user, assistant, tool.
type Message struct {
	Role   string
	Text   string          // user: the input; assistant: its words, may be empty; tool: the result
	Parts  []Part          // user, tool: images of the prompt, the text, then the images that lines of it name; nil: there is no image
	Calls  []MessageCall   // assistant: the calls it made; each has one tool message, in this order
	CallID string          // tool: the ID of the call that this is the result of
	Error  bool            // tool: the result tells of a failure
	Opaque json.RawMessage // assistant: what its provider said to send back verbatim, or nil; it may be another provider's
}

// Part is a piece of a message that has images: words, or an image. In the
// message's Text a line stands for each image.
type Part struct {
	Text      string // empty: Data is an image
	MediaType string // image/png
	Data      []byte
}

// MessageCall is a call that the model made earlier. IDs are ours, not the
// model's: real models repeat theirs.
type MessageCall struct {
	ID        string // the effect's name, r1t2c0
	Name      string // tool_name
	Arguments string // JSON text as the model wrote it, or an object that stands for it
	// Omitted is how many bytes the model wrote, if no event could hold them:
	// the call was refused, and Arguments is a small object that says so. 0:
	// Arguments are as the model wrote them, be they valid JSON or not.
	Omitted int64
}

// Tool is what the model is shown of a tool.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema 2020-12
}

// Answer is what the model said: words, calls, or both.
type Answer struct {
	Text         string
	Calls        []AnswerCall
	Model        string // which model really answered
	FinishReason string // stop, tool_calls, length, content_filter
	Usage        Usage
	Opaque       json.RawMessage
}

// AnswerCall is one call that the model made.
type AnswerCall struct {
	ID        string // the provider's id; data, may repeat
	Name      string
	Arguments string // JSON text, as the model wrote it; above 256 KiB the session refuses the call
}

// Usage is what a generation cost, in tokens. CachedTokens, which the provider
// read from its cache, and CacheWriteTokens, which it wrote there, are a part of
// InputTokens; ReasoningTokens are a part of OutputTokens.
type Usage struct {
	InputTokens, OutputTokens, CachedTokens, CacheWriteTokens, ReasoningTokens int64
}
