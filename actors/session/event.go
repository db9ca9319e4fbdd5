package session

import (
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// Event is one message of the log, in stream order: something that happened to a
// session. Requests and settlements are both events. Only the install record has no
// session.
type Event struct {
	Session string // session id; empty for an install record
	Door    Door   // the door through which it was published
	Seq     uint64 // stream sequence
	Time    int64  // stream timestamp, Unix milliseconds
	Payload []byte // a JSON object or a msgpack map: the envelope
}

// Door is the second token of a log subject. It decides who may publish it.
type Door string

const (
	DoorIn      Door = "in"      // clients: request runs
	DoorCtl     Door = "ctl"     // operators, hosts of tools
	DoorApprove Door = "approve" // approvers: decide over calls
	DoorLLM     Door = "llm"     // model bridges
	DoorTool    Door = "tool"    // tool bridges
	DoorWake    Door = "wake"    // session-actors
	DoorStep    Door = "step"    // step hooks
	DoorSpace   Door = "space"   // workspace bridges
	DoorInstall Door = "install" // install records
)

// Version is the envelope's version; an absent one counts as this.
const Version = 1

// Envelope is what every event's payload holds. Data is the body, by Type.
type Envelope struct {
	At   int64     `msgpack:"at,omitempty"` // publisher's clock, Unix ms, for people
	By   string    `msgpack:"by,omitempty"` // the author's name, for display; it grants nothing
	Data codec.Raw `msgpack:"data,omitempty"`
	ID   string    `msgpack:"id,omitempty"` // at most 64 bytes; the last 128 are refused
	Type string    `msgpack:"type"`
	V    int       `msgpack:"v,omitempty"`
}

// With returns the payload of an event: e with body as its Data, which must be of
// e's type. The bytes are the same as if body were encoded first. It fails as
// codec.Marshal does.
func (e Envelope) With(body any) ([]byte, error) {
	return codec.MarshalIn(make([]byte, 0, payloadRoom), struct {
		At   int64  `msgpack:"at,omitempty"`
		By   string `msgpack:"by,omitempty"`
		Data any    `msgpack:"data,omitempty"`
		ID   string `msgpack:"id,omitempty"`
		Type string `msgpack:"type"`
		V    int    `msgpack:"v,omitempty"`
	}{e.At, e.By, body, e.ID, e.Type, e.V})
}

// Event types: the wire's names.
const (
	TypeRunRequested        = "RunRequested"
	TypeSteerRequested      = "SteerRequested"
	TypeRunCancelRequested  = "RunCancelRequested"
	TypeRunInterrupt        = "RunInterruptRequested"
	TypeRunPauseRequested   = "RunPauseRequested"
	TypeRunResumeRequested  = "RunResumeRequested"
	TypeRunEdited           = "RunEdited"
	TypeRunCompleted        = "RunCompleted"
	TypeRunFailed           = "RunFailed"
	TypeSessionConfigured   = "SessionConfigured"
	TypeSessionClosed       = "SessionClosed"
	TypeToolRegistrySet     = "ToolRegistrySet"
	TypeToolProfileSelected = "ToolProfileSelected"
	TypeToolOverridesSet    = "ToolOverridesSet"
	TypeHostSessionUpdated  = "HostSessionUpdated"
	TypeFactsSet            = "FactsSet"
	TypeApprovalDecided     = "ApprovalDecided"
	TypeToolCallsObserved   = "ToolCallsObserved"
	TypeGenerationSettled   = "GenerationSettled"
	TypeToolCallSettled     = "ToolCallSettled"
	TypeToolBatchSettled    = "ToolBatchSettled"
	TypeStepPrepared        = "StepPrepared"
	TypeWakeSettled         = "WakeSettled"
)

// Content is text, a blob, or parts. Exactly one of the three is given.
type Content struct {
	Blob      *codec.Ref `json:"blob,omitempty" msgpack:"blob,omitempty"`
	MediaType string     `json:"media_type,omitempty" msgpack:"media_type,omitempty"` // of the blob
	Name      string     `json:"name,omitempty" msgpack:"name,omitempty"`             // of the file in the blob; a model is shown it
	Parts     []Content  `json:"parts,omitempty" msgpack:"parts,omitempty"`
	Size      int64      `json:"size,omitempty" msgpack:"size,omitempty"` // of the blob, bytes
	Text      string     `json:"text,omitempty" msgpack:"text,omitempty"` // at most 256 KiB
}

// RunRequested requests a run.
type RunRequested struct {
	Config     *RunConfig `msgpack:"config,omitempty"`
	Input      Content    `msgpack:"input"`
	Roles      []string   `msgpack:"roles,omitempty"`      // for step rules: role("admin")
	Submission string     `msgpack:"submission,omitempty"` // same value and content as before: a no-op
	WhenBusy   string     `msgpack:"when_busy,omitempty"`  // queue (default), steer, interrupt, reject
}

// The values of RunRequested.WhenBusy: what happens to a request while a run is
// active.
const (
	BusyQueue     = "queue"     // the default, also when empty: it waits its turn
	BusySteer     = "steer"     // its input steers the active run; its config is used only if none is active
	BusyInterrupt = "interrupt" // the active run is interrupted, and this one is at the head of the queue
	BusyReject    = "reject"    // it is refused
)

// SteerRequested gives the active run more input, before its next turn. Without
// an active run it starts one.
type SteerRequested struct {
	Input Content `msgpack:"input"`
	Run   uint32  `msgpack:"run,omitempty"` // 0: the active one
}

// RunControl is the body of RunCancelRequested, RunInterruptRequested and
// RunPauseRequested.
type RunControl struct {
	Reason string `msgpack:"reason,omitempty"` // for people
	Run    uint32 `msgpack:"run,omitempty"`    // 0: the active one
}

// RunResumeRequested lets a paused run go on.
type RunResumeRequested struct {
	Budget *Budget `msgpack:"budget,omitempty"` // through ctl alone: replaces the run's budget
	Reason string  `msgpack:"reason,omitempty"`
	Run    uint32  `msgpack:"run,omitempty"` // 0: the active one
}

// RunEdited gives a queued run another input.
type RunEdited struct {
	Input Content `msgpack:"input"`
	Run   uint32  `msgpack:"run"`
}

// RunEnded is the body of RunCompleted and RunFailed, which end a run of
// completion explicit that waits for input.
type RunEnded struct {
	Code   string `msgpack:"code,omitempty"`
	Detail string `msgpack:"detail,omitempty"`
	Run    uint32 `msgpack:"run,omitempty"` // 0: the active one
}

// SessionClosed closes the session for good.
type SessionClosed struct{}

// ApprovalDecided decides over one call that waits for a person.
type ApprovalDecided struct {
	ArgsHash  string `msgpack:"args_hash"`           // hex: of the arguments that the decision is about
	Arguments string `msgpack:"arguments,omitempty"` // decision approve: run with these instead, JSON text
	Call      string `msgpack:"call"`                // r1t2c0
	Decision  string `msgpack:"decision"`            // approve, deny
	Manifest  string `msgpack:"manifest,omitempty"`  // hex: of the pack that the decision is about; needed to approve a call that enables one
	Reason    string `msgpack:"reason,omitempty"`    // shown to the model
}

// The values of ApprovalDecided.Decision.
const (
	DecisionApprove = "approve"
	DecisionDeny    = "deny"
)

// ToolRegistrySet replaces the session's whole registry: tools, profiles and
// default profile. Its bindings apply from the next turn on.
type ToolRegistrySet planner.Defaults

// ToolOverridesSet changes the lists of a scope: a list given replaces the present
// one, an empty one clears it, an absent one leaves it.
type ToolOverridesSet struct {
	Disable *[]string `msgpack:"disable,omitempty"`
	Enable  *[]string `msgpack:"enable,omitempty"`
	Force   *[]string `msgpack:"force,omitempty"`
	Scope   string    `msgpack:"scope"` // session, or run: the active one, until it ends
}

// The values of ToolOverridesSet.Scope.
const (
	ScopeSession = "session"
	ScopeRun     = "run"
)

// ToolProfileSelected selects the session's profile.
type ToolProfileSelected struct {
	Profile string `msgpack:"profile"`
}

// HostSessionUpdated is the status of the session's host session.
type HostSessionUpdated HostSession

// HostSession is the host session's status in a settlement of host.session.open or
// host.session.close, so that one event changes both.
type HostSession struct {
	ID     string `msgpack:"id,omitempty"`
	Root   string `msgpack:"root,omitempty"`  // its working directory, absolute, as the host sees it
	Route  string `msgpack:"route,omitempty"` // the worker that holds it
	Status string `msgpack:"status"`
}

// FactsSet sets facts; a null removes one.
type FactsSet struct {
	Facts codec.Pairs `msgpack:"facts"` // name to text or null
}

// ToolCallsObserved settles a generation whose model called tools.
type ToolCallsObserved struct {
	Calls        []ObservedCall `msgpack:"calls"`
	Effect       string         `msgpack:"effect"`
	FinishReason string         `msgpack:"finish_reason,omitempty"` // absent: FinishToolCalls
	Model        string         `msgpack:"model,omitempty"`
	Opaque       codec.Raw      `msgpack:"opaque,omitempty"` // provider items to send back verbatim
	Text         *Content       `msgpack:"text,omitempty"`
	Usage        *Usage         `msgpack:"usage,omitempty"`
}

// ObservedCall is one call as the model made it. Arguments that are too large for
// an event are a blob: the call is refused, and people can still read what the
// model wrote.
type ObservedCall struct {
	Arguments      string     `msgpack:"arguments,omitempty"`      // JSON text, as the model wrote it; empty is {}
	ArgumentsBlob  *codec.Ref `msgpack:"arguments_blob,omitempty"` // instead of arguments
	ProviderCallID string     `msgpack:"provider_call_id,omitempty"`
	Size           int64      `msgpack:"size,omitempty"` // of the blob, bytes
	ToolName       string     `msgpack:"tool_name"`
}

// Usage is the tokens that a generation used.
type Usage struct {
	CacheWriteTokens int64 `msgpack:"cache_write_tokens,omitempty"` // of the input, written to the provider's cache
	CachedTokens     int64 `msgpack:"cached_tokens,omitempty"`      // of the input, read from the provider's cache
	InputTokens      int64 `msgpack:"input_tokens,omitempty"`
	OutputTokens     int64 `msgpack:"output_tokens,omitempty"`
	ReasoningTokens  int64 `msgpack:"reasoning_tokens,omitempty"` // of the output
}

// GenerationSettled settles a generation that called no tool, or failed.
type GenerationSettled struct {
	Effect       string    `msgpack:"effect"`
	Error        *Fault    `msgpack:"error,omitempty"`
	FinishReason string    `msgpack:"finish_reason,omitempty"`
	Model        string    `msgpack:"model,omitempty"`
	Opaque       codec.Raw `msgpack:"opaque,omitempty"`
	Status       string    `msgpack:"status"` // ok, failed
	Text         *Content  `msgpack:"text,omitempty"`
	Usage        *Usage    `msgpack:"usage,omitempty"`
}

// The values of finish_reason that Refold's bridges write; another value is a
// provider's own word. A run whose last answer ended otherwise than by FinishStop
// says so in its end.
const (
	FinishStop          = "stop"
	FinishToolCalls     = "tool_calls"     // of an answer without calls: the provider announced some
	FinishLength        = "length"         // the output limit, or the end of the context
	FinishContentFilter = "content_filter" // the provider filtered the answer
	FinishRefusal       = "refusal"        // the model refused
	FinishEmpty         = "empty"          // there is no text, and no call
	FinishThoughts      = "thoughts_only"  // there are only thoughts
)

// Fault is a failure with a code for programs and a detail for people.
type Fault struct {
	Code      string `msgpack:"code"`
	Detail    string `msgpack:"detail,omitempty"`
	Retryable bool   `msgpack:"retryable,omitempty"`
}

// ToolCallSettled settles one tool call.
type ToolCallSettled struct {
	DurationMS  int64        `msgpack:"duration_ms,omitempty"`
	Effect      string       `msgpack:"effect"`
	Error       *Fault       `msgpack:"error,omitempty"`
	HostSession *HostSession `msgpack:"host_session,omitempty"`
	Output      *Content     `msgpack:"output,omitempty"`
	PlanHash    string       `msgpack:"plan_hash,omitempty"` // hex
	Status      string       `msgpack:"status"`              // succeeded, failed, cancelled, outcome_unknown
}

// ToolBatchSettled settles every call of a batch that has no result yet, later
// groups included. A host loop that ran the whole plan publishes it.
type ToolBatchSettled struct {
	Batch    string            `msgpack:"batch"`     // r1t2
	PlanHash string            `msgpack:"plan_hash"` // hex
	Results  []ToolCallSettled `msgpack:"results"`
}

// StepPrepared settles a step: a hook's decision about one turn. Absent fields
// leave the run's config as it is.
type StepPrepared struct {
	ActiveTools *[]string    `msgpack:"active_tools,omitempty"`
	Context     codec.Raw    `msgpack:"context,omitempty"` // an object, for later turns
	Effect      string       `msgpack:"effect"`
	Error       *Fault       `msgpack:"error,omitempty"`
	Model       string       `msgpack:"model,omitempty"`
	Params      codec.Raw    `msgpack:"params,omitempty"`
	Status      string       `msgpack:"status"` // ok, failed: then the hook's fallback applies
	System      string       `msgpack:"system,omitempty"`
	ToolChoice  string       `msgpack:"tool_choice,omitempty"`
	ToolRefs    *[]codec.Ref `msgpack:"tool_refs,omitempty"`
}

// WakeSettled reports that a wake is due.
type WakeSettled struct {
	Effect string `msgpack:"effect"`
}
