package executor

import (
	"context"
	"encoding/json"
	"time"
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

	// Feedback and Renderings are what Anew, Tried, Again, RenderTools and
	// RenderDefined use; nil: no bridge made the request.
	Feedback   Feedback
	Renderings Renderings
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

// Feedback takes what a Model tells its bridge while it generates. Models use
// the methods of Request.
type Feedback interface {
	Anew() bool
	Tried(fault *Error, after time.Duration)
	Again(d time.Duration) time.Duration
}

// Renderings keeps tools of a request as providers take them. Models use the
// methods of Request.
type Renderings interface {
	// Rendered returns what is kept of a form of the tools, those to define if
	// defined says so, or else what render returns.
	Rendered(form string, defined bool, render func() ([]byte, error)) ([]byte, error)
}

// Anew says that Generate asks again after it has streamed something: those
// who watch are told that what they have is void, and that what is streamed
// from now on is another start's. False: nobody can be told, and what comes
// must not be streamed.
func (r *Request) Anew() bool { return r.Feedback != nil && r.Feedback.Anew() }

// Tried tells the bridge of a try that failed, of a Generate that may try again
// itself: after is what the provider asks to wait, 0 if nothing. Nothing of the
// target starts in this process until then, and its breaker counts the fault. If
// Generate then returns the fault, the generation waits for as long, or is
// settled at once if its start_by comes before.
func (r *Request) Tried(fault *Error, after time.Duration) {
	if r.Feedback != nil {
		r.Feedback.Tried(fault, after)
	}
}

// Again takes a place for one more try of Generate itself, which would wait for
// d, and returns how long it is to wait: longer, if the target's rate says so.
func (r *Request) Again(d time.Duration) time.Duration {
	if r.Feedback == nil {
		return d
	}
	return r.Feedback.Again(d)
}

// RenderTools returns Tools in the form that a provider takes, as render makes
// it of them. It is kept: for each toolset a provider's bridge renders once, not
// every turn, also if many turns begin at once, and until so much else was
// rendered that it is forgotten. What render returns must follow from the tools
// alone; form names it, so that different forms are kept separately. The
// result is shared and must not be changed. An error of render is returned, and
// nothing is kept. A Request that no bridge made keeps nothing.
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
