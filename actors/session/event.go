package session

import (
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// Event is one message of the log, in stream order: something that happened
// to a session. Requests and settlements are both events. The install record
// is the one event without a session.
type Event struct {
	Session string // session id; empty for an install record
	Door    Door   // the door that it came through
	Seq     uint64 // stream sequence
	Time    int64  // stream timestamp, Unix milliseconds
	Payload []byte // a JSON object or a msgpack map: the envelope
}

// Door is the second token of a log subject: who may say what.
type Door string

const (
	DoorIn      Door = "in"      // clients: ask for runs
	DoorCtl     Door = "ctl"     // operators, approvers, hosts of tools
	DoorLLM     Door = "llm"     // model bridges
	DoorTool    Door = "tool"    // tool bridges
	DoorWake    Door = "wake"    // timer bridges, and session-actors
	DoorStep    Door = "step"    // step hooks
	DoorSpace   Door = "space"   // workspace bridges
	DoorInstall Door = "install" // install records
)

// Version is the envelope's version; an absent one counts as this.
const Version = 1

// Envelope is what every event's payload holds. Data is the body, by Type.
type Envelope struct {
	At   int64     `msgpack:"at,omitempty"` // publisher's clock, Unix ms, for people
	By   string    `msgpack:"by,omitempty"` // who, for people, never for authority
	Data codec.Raw `msgpack:"data,omitempty"`
	ID   string    `msgpack:"id,omitempty"` // at most 64 bytes; the last 128 are refused
	Type string    `msgpack:"type"`
	V    int       `msgpack:"v,omitempty"`
}

// Event types: the wire's names.
const (
	TypeRunRequested        = "RunRequested"
	TypeSessionConfigured   = "SessionConfigured"
	TypeToolRegistrySet     = "ToolRegistrySet"
	TypeToolProfileSelected = "ToolProfileSelected"
	TypeToolOverridesSet    = "ToolOverridesSet"
	TypeHostSessionUpdated  = "HostSessionUpdated"
	TypeFactsSet            = "FactsSet"
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
	Parts     []Content  `json:"parts,omitempty" msgpack:"parts,omitempty"`
	Size      int64      `json:"size,omitempty" msgpack:"size,omitempty"` // of the blob, bytes
	Text      string     `json:"text,omitempty" msgpack:"text,omitempty"` // at most 256 KiB
}

// RunRequested asks for a run.
type RunRequested struct {
	Config     *RunConfig `msgpack:"config,omitempty"`
	Input      Content    `msgpack:"input"`
	Roles      []string   `msgpack:"roles,omitempty"`      // for step rules: role("admin")
	Submission string     `msgpack:"submission,omitempty"` // same value, same content: a no-op
	WhenBusy   string     `msgpack:"when_busy,omitempty"`  // queue (default), reject
}

// RunConfig is how a run behaves. The one that holds is the run's own, else
// the session's, else the install record's; whole, never merged.
type RunConfig struct {
	ActiveTools *[]string          `msgpack:"active_tools,omitempty"` // absent: the profile; empty: no tools
	DeadlinesMS *DeadlinesMS       `msgpack:"deadlines_ms,omitempty"`
	Disable     []string           `msgpack:"disable,omitempty"`
	Enable      []string           `msgpack:"enable,omitempty"`
	Force       []string           `msgpack:"force,omitempty"`
	Model       string             `msgpack:"model,omitempty"`
	Params      codec.Raw          `msgpack:"params,omitempty"` // an object, passed on as it is
	Profile     string             `msgpack:"profile,omitempty"`
	Provider    string             `msgpack:"provider,omitempty"`  // a subject token
	StepHook    *StepHook          `msgpack:"step_hook,omitempty"` // asked before each turn
	Steps       []planner.StepRule `msgpack:"steps,omitempty"`     // absent: the session's, else the profile's
	System      string             `msgpack:"system,omitempty"`
	ToolChoice  string             `msgpack:"tool_choice,omitempty"` // auto (default), none, required, or a tool by either name; the last two hold for the first turn
	ToolRefs    *[]codec.Ref       `msgpack:"tool_refs,omitempty"`   // instead of active_tools: descriptors of the registry
	TurnsMax    int                `msgpack:"turns_max,omitempty"`   // 0: 100
}

// StepHook names a program that decides, before each turn, what the turn
// offers. What happens when it does not answer is stated here, not left open.
type StepHook struct {
	DeadlineMS int64  `msgpack:"deadline_ms,omitempty"` // 0: 30 seconds
	Fallback   string `msgpack:"fallback,omitempty"`    // rules (default): as though there were no hook; fail: the run fails
	Hook       string `msgpack:"hook"`                  // a subject token
}

// The values of StepHook.Fallback.
const (
	FallbackRules = "rules" // the default, also when empty
	FallbackFail  = "fail"
)

// DeadlinesMS bounds effects, in milliseconds from the event that opens them.
type DeadlinesMS struct {
	Call int64 `msgpack:"call,omitempty"` // 0: 10 minutes
	Turn int64 `msgpack:"turn,omitempty"` // 0: 10 minutes
}

// SessionConfig is the session's own config. On the wire queue_max stands
// among the fields of the RunConfig.
type SessionConfig struct {
	QueueMax int       `msgpack:"queue_max,omitempty"` // 0: 16
	Run      RunConfig `msgpack:"run"`
}

// ToolRegistrySet replaces the session's registry, as a whole: tools, profiles
// and default profile. The bindings that it holds count from the next turn on.
type ToolRegistrySet planner.Defaults

// ToolOverridesSet changes the lists of a scope: a list given replaces the one
// that is there, an empty one clears it, an absent one leaves it.
type ToolOverridesSet struct {
	Disable *[]string `msgpack:"disable,omitempty"`
	Enable  *[]string `msgpack:"enable,omitempty"`
	Force   *[]string `msgpack:"force,omitempty"`
	Scope   string    `msgpack:"scope"` // session, or run: the active one, and no longer than it
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

// HostSessionUpdated tells the status of the session's host session.
type HostSessionUpdated struct {
	ID     string `msgpack:"id,omitempty"`
	Status string `msgpack:"status"` // ready, closed, expired, error, none
}

// HostSession is the status that a settlement of host.session.open or
// host.session.close carries, so that one event changes both.
type HostSession struct {
	ID     string `msgpack:"id,omitempty"`
	Route  string `msgpack:"route,omitempty"` // which worker holds it
	Status string `msgpack:"status"`
}

// FactsSet sets facts; a null removes one.
type FactsSet struct {
	Facts codec.Pairs `msgpack:"facts"` // name to text or null
}

// ToolCallsObserved settles a generation whose model called tools.
type ToolCallsObserved struct {
	Calls  []ObservedCall `msgpack:"calls"`
	Effect string         `msgpack:"effect"`
	Model  string         `msgpack:"model,omitempty"`
	Opaque codec.Raw      `msgpack:"opaque,omitempty"` // provider items to send back verbatim
	Text   *Content       `msgpack:"text,omitempty"`
	Usage  *Usage         `msgpack:"usage,omitempty"`
}

// ObservedCall is one call as the model made it. Arguments that are too large
// for an event come as a blob: the call is refused, and what the model wrote
// is still there to be read.
type ObservedCall struct {
	Arguments      string     `msgpack:"arguments,omitempty"`      // JSON text, as the model wrote it; empty is {}
	ArgumentsBlob  *codec.Ref `msgpack:"arguments_blob,omitempty"` // instead of arguments
	ProviderCallID string     `msgpack:"provider_call_id,omitempty"`
	Size           int64      `msgpack:"size,omitempty"` // of the blob, bytes
	ToolName       string     `msgpack:"tool_name"`
}

// Usage is what a generation cost, in tokens.
type Usage struct {
	CachedTokens    int64 `msgpack:"cached_tokens,omitempty"`
	InputTokens     int64 `msgpack:"input_tokens,omitempty"`
	OutputTokens    int64 `msgpack:"output_tokens,omitempty"`
	ReasoningTokens int64 `msgpack:"reasoning_tokens,omitempty"`
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

// Fault is a failure with a code that programs read and a detail for people.
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

// ToolBatchSettled settles every call of a batch that has no result yet, those
// of later groups included: what a host loop says that ran the plan itself.
type ToolBatchSettled struct {
	Batch    string            `msgpack:"batch"`     // r1t2
	PlanHash string            `msgpack:"plan_hash"` // hex
	Results  []ToolCallSettled `msgpack:"results"`
}

// StepPrepared settles a step: what an outside hook decided for one turn.
// What is absent stays as the run's config has it.
type StepPrepared struct {
	ActiveTools *[]string    `msgpack:"active_tools,omitempty"`
	Context     codec.Raw    `msgpack:"context,omitempty"` // an object; carries on to later turns
	Effect      string       `msgpack:"effect"`
	Error       *Fault       `msgpack:"error,omitempty"`
	Model       string       `msgpack:"model,omitempty"`
	Params      codec.Raw    `msgpack:"params,omitempty"`
	Status      string       `msgpack:"status"` // ok, failed: the hook's fallback
	System      string       `msgpack:"system,omitempty"`
	ToolChoice  string       `msgpack:"tool_choice,omitempty"`
	ToolRefs    *[]codec.Ref `msgpack:"tool_refs,omitempty"`
}

// WakeSettled says that a wake's due has come.
type WakeSettled struct {
	Effect string `msgpack:"effect"`
}
