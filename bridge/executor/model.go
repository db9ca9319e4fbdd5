package executor

import (
	"context"
	"encoding/json"
	"time"
)

// Model executes the generations of one provider. Generate is called at most once
// at a time per effect name in this process, from several goroutines for
// different effects.
//
// Generate streams the text of the answer through delta, from its beginning and
// without thoughts. delta is never nil; it must be called from one goroutine at a
// time, and not after Generate returned; after the end of ctx it drops the text.
// Pieces may be small. A Generate that starts the answer again must call
// [Request.Anew]. When ctx is cancelled Generate must return soon.
//
// It returns the whole answer, which counts even after the end of ctx. A returned
// *Error settles the generation `failed` with its code; any other error with code
// `model_error`, or, if it wraps context.DeadlineExceeded, as a Retryable
// `deadline_exceeded`. After a Retryable error the bridge starts the generation
// again after a while, under another Start, until the effect's start_by: a Model
// that retries by itself need not do so for long.
type Model interface {
	Generate(ctx context.Context, req Request, delta func(text string)) (Answer, error)
}

// Request is one generation, with its text from the log. It is read-only: it shares
// data with other generations.
type Request struct {
	Session    string          // session id
	Effect     string          // r1t2
	Start      string          // ULID of this start of the effect
	Model      string          // the provider's name of the model
	System     string          // empty: none
	Params     json.RawMessage // an object, or nil; passed on unchanged
	Format     *Format         // of the answer; nil: text
	Messages   []Message       // never empty
	Tools      []Tool          // tools that may be called, in the order to show; empty: none
	ToolChoice string          // auto (or empty), none, required, or a tool_name

	// Defined are the tools to define in the same order in all turns of the run, if
	// the provider can restrict calls to Tools, which are a subset. Other Models
	// ignore Defined. nil: the same as Tools.
	Defined []Tool

	// CacheTTL is how long the provider should keep the prompt cached: 5m (or
	// empty), 1h, or off, which requests no caching.
	CacheTTL string

	// Compact: the last message asks for a summary of the others, in place of an answer.
	Compact bool

	// OutputTokensMax is how many tokens the run's budgets leave for the answer,
	// including thoughts: a Model passes it to its provider, if the provider has
	// such a limit. 0: no limit.
	OutputTokensMax int64

	Toolset string // fingerprint of Tools, hex

	// Feedback is used by Anew, Tried and Again, Renderings by RenderTools and
	// RenderDefined; nil: no bridge made the request.
	Feedback   Feedback
	Renderings Renderings
}

// Format is the JSON format that an answer's text must have.
type Format struct {
	Name   string          // of the schema, of A-Za-z0-9_-; may be empty
	Schema json.RawMessage // JSON Schema; nil: any object
	Strict bool            // the provider is to hold the model to the schema, if it can
}

// Message is one item of the conversation. Roles are user, assistant, tool.
type Message struct {
	Role   string
	Text   string          // user: the input; assistant: its text, may be empty; tool: the result
	Parts  []Part          // user, tool: images of the prompt, the text, then the images that the text names; nil: no images
	Calls  []MessageCall   // assistant: its calls; each has one tool message, in this order
	CallID string          // tool: the ID of the call
	Error  bool            // tool: the result is a failure
	Opaque json.RawMessage // assistant: items that its provider wants back verbatim, or nil; it may be another provider
}

// Part is a piece of a message with images or documents: text, or one of these. The
// message's Text has a line for each of them.
type Part struct {
	Text      string // empty: Data is an image or a document
	Name      string // of the file; may be empty
	MediaType string // image/png, application/pdf: a label, which may be wrong
	Data      []byte
}

// MessageCall is a call that the model made earlier. IDs are ours, not the
// model's: real models repeat theirs.
type MessageCall struct {
	ID        string // the effect's name, r1t2c0
	Name      string // tool_name
	Arguments string // JSON text as the model wrote it, or an object in its place
	// Omitted is how many bytes the model wrote, if no event could hold them: the
	// call was refused, and Arguments is a small object with the reason. 0:
	// Arguments are as the model wrote them, valid JSON or not.
	Omitted int64
}

// Tool is a tool as the model is shown it.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema 2020-12
}

// Answer is the model's answer: text, calls, or both.
type Answer struct {
	Text         string
	Calls        []AnswerCall
	Model        string // the model that answered
	FinishReason string // stop, tool_calls, length, content_filter, refusal, empty, thoughts_only, or the provider's own word
	Usage        Usage
	Opaque       json.RawMessage
}

// AnswerCall is one call that the model made.
type AnswerCall struct {
	ID        string // the provider's id; data, may repeat
	Name      string
	Arguments string // JSON text, as the model wrote it; above 256 KiB the session refuses the call
}

// Usage is the cost of a generation, in tokens. CachedTokens, which the provider
// read from its cache, and CacheWriteTokens, which it wrote there, are part of
// InputTokens; ReasoningTokens are part of OutputTokens.
type Usage struct {
	InputTokens, OutputTokens, CachedTokens, CacheWriteTokens, ReasoningTokens int64
}

// Feedback receives a Model's reports while it generates. Models use the methods of
// Request.
type Feedback interface {
	Anew() bool
	Tried(fault *Error, after time.Duration)
	Again(d time.Duration) time.Duration
}

// Renderings caches the tools of a request in a provider's form. Models use the
// methods of Request.
type Renderings interface {
	// Rendered returns the cached form of Tools, or of Defined if defined is true,
	// or else the result of render.
	Rendered(form string, defined bool, render func() ([]byte, error)) ([]byte, error)
}

// Anew reports that Generate tries again after it has streamed text: followers
// learn that the text so far is void, and that further text is of another start.
// If it returns false, they can't learn it, and Generate must stream nothing
// more.
func (r *Request) Anew() bool { return r.Feedback != nil && r.Feedback.Anew() }

// Tried reports a failed try to the bridge, also if Generate will try again
// itself. after is the pause that the provider asks for, 0 for none. No
// generation of the target starts in this process until then, and its breaker
// counts the fault. If Generate then returns the fault, the generation waits for
// the pause, or is settled at once if its start_by is earlier.
func (r *Request) Tried(fault *Error, after time.Duration) {
	if r.Feedback != nil {
		r.Feedback.Tried(fault, after)
	}
}

// Again reserves one more try of Generate itself, after a wait of d, and returns
// the time to wait: longer than d if the target's rate requires it, and longer than any
// deadline if the effect may not be started any more.
func (r *Request) Again(d time.Duration) time.Duration {
	if r.Feedback == nil {
		return d
	}
	return r.Feedback.Again(d)
}

// RenderTools returns Tools in the form of a provider, which render makes. The
// bridge caches the result, so that it renders once for each toolset, not every
// turn, also if many turns begin at once; the least recently used results are
// evicted. The result of render must follow from the tools alone; form is part of
// the cache's key. The caller must not change the result, which is shared.
// RenderTools returns an error of render, and does not cache it. Without a bridge
// nothing is cached.
func (r Request) RenderTools(form string, render func(tools []Tool) ([]byte, error)) ([]byte, error) {
	return r.render(form, false, r.Tools, render)
}

// RenderDefined is RenderTools for the tools to define: Defined, or Tools if
// that is nil.
func (r Request) RenderDefined(form string, render func(tools []Tool) ([]byte, error)) ([]byte, error) {
	if r.Defined == nil {
		return r.RenderTools(form, render)
	}
	return r.render(form, true, r.Defined, render)
}

func (r Request) render(form string, defined bool, tools []Tool, render func(tools []Tool) ([]byte, error)) ([]byte, error) {
	if r.Renderings == nil {
		return render(tools)
	}
	return r.Renderings.Rendered(form, defined, func() ([]byte, error) { return render(tools) })
}
