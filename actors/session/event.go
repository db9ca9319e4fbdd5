package session

import (
	"slices"

	"github.com/refold/refold/actors/spaces"
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

	// Of an event whose text was removed (Redact): what it was. Payload is the copy then.
	Original *Original
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
	DoorChild   Door = "child"   // session-actors: between a session and its children
	DoorSpace   Door = "space"   // workspace bridges
	DoorInstall Door = "install" // install records
)

// Class is the kind of bridge that executes an effect.
type Class string

const (
	ClassLLM   Class = "llm"
	ClassTool  Class = "tool"
	ClassWake  Class = "wake"
	ClassStep  Class = "step"
	ClassSpace Class = "space" // syncs
)

// ClassInfo is a row of the table of classes: what all code that handles effects
// must know of a class. The door for a class's settlements has the same name.
type ClassInfo struct {
	Class   Class
	Role    string // of the users that execute it, by its name in internal/roles
	About   string // the events of its door, for people
	Bridged bool   // bridges pull its effects; else session-actors schedule them

	prefix byte   // first letter of its effects' names, before a number; 0: they are named by their turn
	folds  folder // how the fold handles it
}

// kind is the index of a class in the table.
type kind uint8

const (
	kindLLM kind = iota
	kindTool
	kindWake
	kindStep
	kindSpace
)

// classes is the table of classes, in the order of their doors. CONTRIBUTING.md says what
// else a new class needs.
var classes = [...]ClassInfo{
	kindLLM:   {Class: ClassLLM, Role: "models", About: "what models answered", Bridged: true, folds: generations{}},
	kindTool:  {Class: ClassTool, Role: "tools", About: "what tools answered", Bridged: true, folds: calls{}},
	kindWake:  {Class: ClassWake, Role: "session-actor", About: "what came due", prefix: 'w', folds: wakes{}},
	kindStep:  {Class: ClassStep, Role: "step-hooks", About: "what step hooks decided", Bridged: true, folds: steps{}},
	kindSpace: {Class: ClassSpace, Role: "space-readers", About: "what spaces hold", Bridged: true, prefix: spaces.EffectPrefix, folds: syncs{}},
}

// Classes returns the table of classes, in the order of their doors.
func Classes() []ClassInfo { return slices.Clone(classes[:]) }

// Version is the envelope's version; an absent one counts as this.
const Version = 1

// WindowVersion is the version of a generation that does not show the whole transcript. A
// bridge that does not know it gives the generation back.
const WindowVersion = 2

// Envelope is an event: what is published to refold.<door>.<session>, as JSON or as
// the same map in msgpack.
//
// Data is the body, by Type.
type Envelope struct {
	// The publisher's clock, Unix milliseconds. For people.
	At int64 `msgpack:"at,omitempty" lim:"0..NumberMax"`
	// The publisher. For people, never for authority.
	By string `msgpack:"by,omitempty" lim:"..ByBytesMax"`
	// The body, according to type; {} if absent.
	Data codec.Raw `msgpack:"data,omitempty" lim:"object"`
	// By custom a ULID. Publish with the `Nats-Msg-Id` `<session>.<id>`: JetStream drops a
	// repeat within two minutes. It compares the ids of the whole log, and drops the
	// second of two events with one `Nats-Msg-Id`, also if they are of two sessions; the
	// session rejects the ids of the last 128 events that it accepted.
	ID string `msgpack:"id,omitempty" lim:"..IDBytesMax"`
	// What happened; one of the types below.
	Type string `msgpack:"type" lim:"any"`
	// Version of the protocol; 1 if absent.
	V int `msgpack:"v,omitempty" lim:"=1"`
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
	TypeCompactRequested    = "CompactRequested"
	TypeTranscriptImported  = "TranscriptImported"
	TypeSessionConfigured   = "SessionConfigured"
	TypeSessionClosed       = "SessionClosed"
	TypeSessionHeld         = "SessionHeld"
	TypeRulesAdopted        = "RulesAdopted"
	TypeSessionErased       = "SessionErased"
	TypeSessionTombstone    = "SessionTombstone"
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
	TypeScheduleSet         = "ScheduleSet"
	TypeScheduleRemoved     = "ScheduleRemoved"
	TypeSchedulePause       = "SchedulePauseRequested"
	TypeScheduleResume      = "ScheduleResumeRequested"
	TypeScheduleFired       = "ScheduleFired"
	TypeChildRequested      = "ChildRequested"
	TypeChildStopped        = "ChildStopped"
	TypeChildSettled        = "ChildSettled"
)

// eventType is a row of the table of events.
type eventType struct {
	name       string
	doors      []Door
	afterClose bool // a closed session accepts it
	settles    bool // it settles an effect of class kind
	kind       kind
	eventBody
}

// Which events come through which doors. Operators may request what clients may.
var (
	byClients   = []Door{DoorIn, DoorCtl}
	byOperators = []Door{DoorCtl}
	byFamily    = []Door{DoorChild}
)

// eventTypes is the table of events. A closed session accepts settlements, which
// change nothing any more, wakes, and run requests, which may be repeats.
var eventTypes = [...]eventType{
	{name: TypeRunRequested, doors: byClients, afterClose: true, eventBody: doorBody[RunRequested]((*State).foldRunRequested)},
	{name: TypeSteerRequested, doors: byClients, eventBody: contentBody((*State).steerRequested)},
	{name: TypeRunCancelRequested, doors: byClients, eventBody: body((*State).runCancelRequested)},
	{name: TypeRunInterrupt, doors: byClients, eventBody: body((*State).runInterruptRequested)},
	{name: TypeRunPauseRequested, doors: byClients, eventBody: body((*State).runPauseRequested)},
	{name: TypeRunResumeRequested, doors: byClients, eventBody: doorBody[RunResumeRequested]((*State).runResumeRequested)},
	{name: TypeRunEdited, doors: byClients, eventBody: contentBody((*State).runEdited)},
	{name: TypeRunCompleted, doors: byClients, eventBody: body((*State).runCompleted)},
	{name: TypeRunFailed, doors: byClients, eventBody: body((*State).runFailed)},
	{name: TypeCompactRequested, doors: byClients, eventBody: doorBody[CompactRequested]((*State).compactRequested)},
	{name: TypeTranscriptImported, doors: byOperators, eventBody: body((*State).transcriptImported)},
	{name: TypeSessionConfigured, doors: byOperators, eventBody: rawBody[SessionConfigured]((*State).sessionConfigured)},
	{name: TypeSessionClosed, doors: byOperators, eventBody: body((*State).sessionClosed)},
	{name: TypeSessionHeld, doors: byOperators, afterClose: true, eventBody: body((*State).sessionHeld)},
	{name: TypeRulesAdopted, doors: byOperators, eventBody: body((*State).rulesAdopted)},
	{name: TypeSessionErased, doors: byOperators, afterClose: true, eventBody: body((*State).sessionErased)},
	{name: TypeSessionTombstone, doors: []Door{DoorWake}, afterClose: true, eventBody: body((*State).sessionTombstone)},
	{name: TypeToolRegistrySet, doors: byOperators, eventBody: rawBody[ToolRegistrySet]((*State).toolRegistrySet)},
	{name: TypeToolProfileSelected, doors: byOperators, eventBody: body((*State).toolProfileSelected)},
	{name: TypeToolOverridesSet, doors: byOperators, eventBody: body((*State).toolOverridesSet)},
	{name: TypeHostSessionUpdated, doors: byOperators, eventBody: body((*State).hostSessionUpdated)},
	{name: TypeFactsSet, doors: byOperators, eventBody: body((*State).factsSet)},
	{name: TypeApprovalDecided, doors: []Door{DoorApprove}, eventBody: body((*State).approvalDecided)},
	{name: TypeReplyGiven, doors: []Door{DoorIn, DoorApprove}, eventBody: doorBody[ReplyGiven]((*State).replyGiven)},
	settlementOf[ToolCallsObserved](kindLLM, TypeToolCallsObserved),
	settlementOf[GenerationSettled](kindLLM, TypeGenerationSettled),
	settlementOf[ToolCallSettled](kindTool, TypeToolCallSettled),
	{name: TypeToolBatchSettled, doors: []Door{DoorTool}, afterClose: true, eventBody: rawBody[ToolBatchSettled]((*State).toolBatchSettled)},
	settlementOf[StepPrepared](kindStep, TypeStepPrepared),
	settlementOf[WakeSettled](kindWake, TypeWakeSettled),
	{name: TypeScheduleSet, doors: byOperators, eventBody: rawBody[ScheduleSet]((*State).scheduleSet)},
	{name: TypeScheduleRemoved, doors: byOperators, eventBody: body((*State).scheduleRemoved)},
	{name: TypeSchedulePause, doors: byOperators, eventBody: body((*State).schedulePauseRequested)},
	{name: TypeScheduleResume, doors: byOperators, eventBody: body((*State).scheduleResumeRequested)},
	settlementOf[ScheduleFired](kindWake, TypeScheduleFired),
	{name: TypeChildRequested, doors: byFamily, afterClose: true, eventBody: rawBody[ChildRequested]((*State).childRequested)},
	{name: TypeChildStopped, doors: byFamily, afterClose: true, eventBody: body((*State).childStopped)},
	{name: TypeChildSettled, doors: byFamily, afterClose: true, settles: true, kind: kindTool, eventBody: eventBody{data: newOf[ChildSettled]}},
	{name: TypeWorkspaceSyncRequested, doors: byOperators, eventBody: rawBody[WorkspaceSyncRequested]((*State).workspaceSyncRequested)},
	{name: TypeWorkspaceApplyRequested, doors: byOperators, eventBody: body((*State).workspaceApplyRequested)},
	{name: TypeWorkspaceDetached, doors: byOperators, eventBody: body((*State).workspaceDetached)},
	settlementOf[WorkspaceSnapshotReady](kindSpace, TypeWorkspaceSnapshotReady),
	settlementOf[WorkspaceSyncUnchanged](kindSpace, TypeWorkspaceSyncUnchanged),
	settlementOf[WorkspaceSyncFailed](kindSpace, TypeWorkspaceSyncFailed),
}

func settlementOf[T any](k kind, name string) eventType {
	return eventType{name: name, doors: []Door{Door(classes[k].Class)}, afterClose: true, settles: true, kind: k, eventBody: eventBody{data: newOf[T]}}
}

// Content is text, a blob, or parts: one of the three; an empty value counts as
// absent. Without any it is empty, which a tool's output and a model's text may be;
// $defs/filled is the form that may not.
//
//wire:rule {"dependentRequired": {"media_type": ["blob"], "name": ["blob"], "size": ["blob"]}}
//wire:rule {"allOf": [{"not": {"properties": {"text": {"minLength": 1}}, "required": ["text", "blob"]}}, {"not": {"properties": {"text": {"minLength": 1}, "parts": {"minItems": 1}}, "required": ["text", "parts"]}}, {"not": {"properties": {"parts": {"minItems": 1}}, "required": ["blob", "parts"]}}]}
//wire:rule {"$defs": {"filled": {"description": "Content that is not empty.", "$ref": "#", "anyOf": [{"properties": {"text": {"minLength": 1}}, "required": ["text"]}, {"required": ["blob"]}, {"properties": {"parts": {"minItems": 1}}, "required": ["parts"]}]}}}
type Content struct {
	// Content in the object store: text over 256 KiB, or anything that is not text.
	Blob *codec.Ref `json:"blob,omitempty" msgpack:"blob,omitempty"`
	// Media type of the blob.
	MediaType string `json:"media_type,omitempty" msgpack:"media_type,omitempty" lim:"..NameBytesMax"`
	// Name of the file in the blob, which a model is shown.
	Name string `json:"name,omitempty" msgpack:"name,omitempty" lim:"..NameBytesMax"`
	// Several contents in order; a model is shown them with line breaks between. At most
	// 64, including those inside parts.
	Parts []Content `json:"parts,omitempty" msgpack:"parts,omitempty" lim:"..PartsMax,filled"`
	// Size of the blob in bytes. Like `media_type` and `name`, only with a blob.
	Size int64 `json:"size,omitempty" msgpack:"size,omitempty" lim:"0..NumberMax"`
	// Text.
	Text string `json:"text,omitempty" msgpack:"text,omitempty" lim:"..TextBytesMax" hint:"store it as a blob"`
}

// RunRequested requests a run.
type RunRequested struct {
	// The definition that the run is requested for: the hash of the session's config and
	// registry ([semantics.md](semantics.md#an-agents-definition)). The request is
	// `agent_changed` if the session has another. It is no part of what a submission
	// repeats.
	Agent string `msgpack:"agent,omitempty" lim:"@hash"`
	// The run's own config. Through the door in it may have the fields that the install
	// policy lists, and what it leaves out is the operator's. Through ctl it has a model
	// and a provider.
	Config *RunConfig `msgpack:"config,omitempty"`
	// The user's input.
	Input Content `msgpack:"input" lim:"filled"`
	// Roles of the requester, for step rules and hooks. Through the door in only if the
	// install policy lists roles.
	Roles []string `msgpack:"roles,omitempty" lim:"..RolesMax,item=1..RoleBytesMax"`
	// The same value with the same `data`, but for `agent`, again is a no-op, whatever
	// became of the first request, also when the session is closed. With other data it is
	// `duplicate_submission`. A session remembers at least its newest 10,000.
	Submission string `msgpack:"submission,omitempty" lim:"..IDBytesMax"`
	// What to do while another run is active. `queue`, if absent: wait. `steer`: become input of that
	// run, as a SteerRequested does; `config` and `roles` are ignored. `interrupt`:
	// interrupt it and go to the head of the queue. `reject`: be rejected.
	WhenBusy string `msgpack:"when_busy,omitempty" lim:"enum=Busy"`
}

// The values of RunRequested.WhenBusy: what happens to a request while a run is
// active.
const (
	BusyQueue     = "queue"     // the default, also when empty: it waits its turn
	BusySteer     = "steer"     // its input steers the active run; its config is used only if none is active
	BusyInterrupt = "interrupt" // the active run is interrupted, and this one is at the head of the queue
	BusyReject    = "reject"    // it is refused
)

// SteerRequested gives the active run more input, before its next turn. Without an
// active run it starts one.
type SteerRequested struct {
	// The user's input.
	Input Content `msgpack:"input" lim:"filled"`
	// The active run, whichever it is if absent. Another number is `stale`, or
	// `illegal_transition` if that run is queued.
	Run uint32 `msgpack:"run,omitempty" lim:"@run"`
}

// RunControl is the body of RunCancelRequested, RunInterruptRequested and
// RunPauseRequested.
type RunControl struct {
	// For people. RunFinished repeats that of a cancel.
	Reason string `msgpack:"reason,omitempty" lim:"..DetailBytesMax"`
	// The run; the active one if absent.
	Run uint32 `msgpack:"run,omitempty" lim:"@run"`
}

// RunResumeRequested resumes a paused run where it was.
type RunResumeRequested struct {
	// Replaces the run's budget as a whole; through `ctl` alone, else `not_permitted`. A
	// run that its budget paused needs one: without it the event is `illegal_transition`,
	// with one that does not suffice either it is `invalid_data`. `{}` is no limit.
	Budget *Budget `msgpack:"budget,omitempty"`
	// For people.
	Reason string `msgpack:"reason,omitempty" lim:"..DetailBytesMax"`
	// The run; the active one if absent.
	Run uint32 `msgpack:"run,omitempty" lim:"@run"`
}

// RunEdited gives a queued run another input.
type RunEdited struct {
	// The new input.
	Input Content `msgpack:"input" lim:"filled"`
	// The queued run.
	Run uint32 `msgpack:"run" lim:"@run"`
}

// RunEnded is the body of RunCompleted and RunFailed, which end a run of
// completion explicit that waits for input.
type RunEnded struct {
	// For programs, repeated in RunFinished.
	Code string `msgpack:"code,omitempty" lim:"..CodeBytesMax"`
	// For people.
	Detail string `msgpack:"detail,omitempty" lim:"..DetailBytesMax"`
	// The run; the active one if absent.
	Run uint32 `msgpack:"run,omitempty" lim:"@run"`
}

// SessionClosed closes the session for good: its runs are cancelled, and it accepts no
// others.
type SessionClosed struct{}

// ApprovalDecided decides over a call that waits for a person.
//
//wire:rule {"if": {"properties": {"decision": {"const": "deny"}}}, "then": {"properties": {"arguments": false}}}
type ApprovalDecided struct {
	// Hash of the arguments that were decided over, as in ApprovalRequested and in the
	// view.
	ArgsHash string `msgpack:"args_hash" lim:"@hash"`
	// With `approve`: the call runs with these instead, as JSON. Arguments that the tool's
	// schema does not allow are `invalid_data`; those that the policy denies are
	// `not_permitted`; those that exceed 768 KiB together with the arguments of the
	// batch's other calls without a result are `limit_exceeded`. The call then continues
	// to wait.
	Arguments string `msgpack:"arguments,omitempty" lim:"1..planner.ArgumentsBytesMax"`
	// The call that waits.
	Call string `msgpack:"call" lim:"@call"`
	// Whether the call runs.
	Decision string `msgpack:"decision" lim:"enum=Decision"`
	// Of a call that enables a pack: hash of the manifest that was decided over, as in
	// ApprovalRequested and in the view. Required with approve.
	Manifest string `msgpack:"manifest,omitempty" lim:"@hash"`
	// With deny: the reason that the model is shown.
	Reason string `msgpack:"reason,omitempty" lim:"..DetailBytesMax"`
}

// The values of ApprovalDecided.Decision.
const (
	DecisionApprove = "approve"
	DecisionDeny    = "deny"
)

// SessionConfigured sets the session's config, for runs that are requested from now on
// and bring none.
type SessionConfigured struct {
	RunConfig
	// The number of runs that may queue; 16 if absent.
	QueueMax int `msgpack:"queue_max,omitempty" lim:"1..QueueMax"`
}

// ToolRegistrySet replaces the session's registry as a whole, from the next turn on.
// It may not bind a tool more loosely than the install record.
//
//wire:rule {"properties": {"tools": {"items": {"properties": {"needs": false}}}}}
type ToolRegistrySet planner.Defaults

// ToolOverridesSet changes the lists of the session or of the active run. A given list
// replaces the old one, an empty list clears it, and an absent list leaves it.
type ToolOverridesSet struct {
	// Tools that are not offered, whatever else names them.
	Disable *[]string `msgpack:"disable,omitempty" lim:"..NamesMax,unique,item=@tool"`
	// Tools to add to the profile.
	Enable *[]string `msgpack:"enable,omitempty" lim:"..NamesMax,unique,item=@tool"`
	// Tools to add to any list.
	Force *[]string `msgpack:"force,omitempty" lim:"..NamesMax,unique,item=@tool"`
	// The session's lists, or those of the active run, which end with it.
	Scope string `msgpack:"scope" lim:"enum=Scope"`
}

// The values of ToolOverridesSet.Scope.
const (
	ScopeSession = "session"
	ScopeRun     = "run"
)

// ToolProfileSelected selects the profile of runs whose config names none. It takes
// effect with the next turn.
type ToolProfileSelected struct {
	// A profile of the registry.
	Profile string `msgpack:"profile" lim:"@token"`
}

// HostSessionUpdated reports the status of the host session.
type HostSessionUpdated HostSession

// HostSession is a working directory on a host, in which the tools of a session work.
//
// A settlement of host.session.open or host.session.close has it, so that one event
// changes both.
type HostSession struct {
	// The host's name for it.
	ID string `json:"id,omitempty" msgpack:"id,omitempty" lim:"..HostIDBytesMax"`
	// Its working directory as paths there see it: an absolute path. Paths in resource
	// keys are relative to it. It stays with the `id` until another one is reported.
	// Without it an absolute path gives the bare key.
	Root string `json:"root,omitempty" msgpack:"root,omitempty" lim:"..HostRootBytesMax" pattern:"^(/|$)"`
	// The worker that holds it. If it is a target below the executor's, such as `host-w1`
	// for `host`, later calls of tools that need a ready host session go to that target; a
	// route of another form is for people.
	Route string `json:"route,omitempty" msgpack:"route,omitempty" lim:"..HostIDBytesMax"`
	// Only ready makes the tools of a host available. none forgets the host session.
	Status string `json:"status" msgpack:"status" lim:"enum=ready|closed|expired|error|none"`
}

// FactsSet sets and removes facts, all that it names or none. The change takes effect
// with the next turn.
type FactsSet struct {
	// Null removes. Names have 1 to 64 bytes, values at most 256; a session has at most
	// 64.
	Facts codec.Pairs `msgpack:"facts" lim:"key=1..FactNameBytesMax,value=null,value=..FactValueBytesMax"`
}

// ToolCallsObserved settles a generation whose model called tools.
type ToolCallsObserved struct {
	// The calls, in the model's order. The first 64 may run; the rest get limit_exceeded
	// results.
	Calls []ObservedCall `msgpack:"calls" lim:"1..CallsSeenMax"`
	// The effect that this settles.
	Effect string `msgpack:"effect" lim:"@generation"`
	// Why the answer ended, as in [GenerationSettled](#generationsettled); absent:
	// `tool_calls`. With `length`, calls whose arguments are not complete JSON are
	// refused, `invalid_arguments`, and so is the last call if it has none.
	FinishReason string `msgpack:"finish_reason,omitempty" lim:"..NameBytesMax"`
	// The model that answered.
	Model string `msgpack:"model,omitempty" lim:"..NameBytesMax"`
	// Items of the provider, any value, to be sent back verbatim.
	Opaque codec.Raw `msgpack:"opaque,omitempty"`
	// The model's text in addition to its calls.
	Text  *Content `msgpack:"text,omitempty"`
	Usage *Usage   `msgpack:"usage,omitempty"`
}

// ObservedCall is one call as the model made it. Arguments that are too large for
// an event are a blob: the call is refused, and people can still read what the
// model wrote.
//
//wire:rule {"dependentRequired": {"size": ["arguments_blob"]}, "not": {"required": ["arguments", "arguments_blob"]}}
type ObservedCall struct {
	// JSON text, as the model wrote it. Absent or empty counts as {}.
	Arguments string `msgpack:"arguments,omitempty" lim:"any"`
	// In place of arguments that no event can hold; never together with them. The call is
	// refused as invalid_arguments, too large.
	ArgumentsBlob *codec.Ref `msgpack:"arguments_blob,omitempty"`
	// The model's own id of the call, which may repeat.
	ProviderCallID string `msgpack:"provider_call_id,omitempty" lim:"..ByBytesMax"`
	// Size of the blob in bytes.
	Size int64 `msgpack:"size,omitempty" lim:"0..NumberMax"`
	// The tool's name as the model wrote it.
	ToolName string `msgpack:"tool_name" lim:"any"`
}

// Usage is the tokens that one turn of a model used. An absent field is 0.
type Usage struct {
	// Input tokens written to the provider's cache.
	CacheWriteTokens int64 `msgpack:"cache_write_tokens,omitempty" lim:"0..TokensMax"`
	// Input tokens read from the provider's cache.
	CachedTokens int64 `msgpack:"cached_tokens,omitempty" lim:"0..TokensMax"`
	// Tokens shown to the model.
	InputTokens int64 `msgpack:"input_tokens,omitempty" lim:"0..TokensMax"`
	// Tokens that the model wrote.
	OutputTokens int64 `msgpack:"output_tokens,omitempty" lim:"0..TokensMax"`
	// Output tokens of reasoning, which is not shown.
	ReasoningTokens int64 `msgpack:"reasoning_tokens,omitempty" lim:"0..TokensMax"`
}

// GenerationSettled settles a generation that called no tool, or failed.
//
//wire:rule {"if": {"properties": {"status": {"const": "failed"}}}, "then": {"required": ["error"]}, "else": {"properties": {"error": false}}}
type GenerationSettled struct {
	// The effect that this settles.
	Effect string `msgpack:"effect" lim:"@generation"`
	// Present with status failed, and only then.
	Error *Fault `msgpack:"error,omitempty"`
	// Why the answer ended: `stop`; `length` (the output limit); `content_filter` (the
	// provider filtered it); `refusal` (the model refused); `empty` (no text);
	// `thoughts_only`; `tool_calls` (calls were announced, and none came); or a provider's
	// own word.
	FinishReason string `msgpack:"finish_reason,omitempty" lim:"..NameBytesMax"`
	// The model that answered.
	Model string `msgpack:"model,omitempty" lim:"..NameBytesMax"`
	// Items of the provider, any value, to be sent back verbatim.
	Opaque codec.Raw `msgpack:"opaque,omitempty"`
	// How the generation ended.
	Status string `msgpack:"status" lim:"enum=ok|failed"`
	// The answer; it becomes the run's output.
	Text  *Content `msgpack:"text,omitempty"`
	Usage *Usage   `msgpack:"usage,omitempty"`
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

// Fault is a failure: a code for programs, a detail for people and models.
type Fault struct {
	// lower_snake_case.
	Code string `msgpack:"code" lim:"1..CodeBytesMax"`
	// A sentence. Where the session repeats it, it is cut at 256 bytes.
	Detail string `msgpack:"detail,omitempty" lim:"any"`
	// Whether another attempt may succeed. Bridges retry by themselves; the session
	// retries generations as the run's retry says.
	Retryable bool `msgpack:"retryable,omitempty"`
}

// ToolCallSettled settles a tool call of a bridge or of a host loop.
//
//wire:rule {"if": {"properties": {"status": {"const": "succeeded"}}}, "then": {"properties": {"error": false}}}
type ToolCallSettled struct {
	// How long the call ran, in milliseconds.
	DurationMS int64 `msgpack:"duration_ms,omitempty" lim:"0..NumberMax"`
	// The effect that this settles.
	Effect string `msgpack:"effect" lim:"@call"`
	// Never with status succeeded.
	Error *Fault `msgpack:"error,omitempty"`
	// The new status of the host session: one event settles the call and changes the
	// status. While a host session is ready, the end of another one is ignored.
	HostSession *HostSession `msgpack:"host_session,omitempty"`
	// What the model is shown. Refold's bridges put results that are files, or larger than
	// 256 KiB, in parts: text for the model, and a blob each.
	Output *Content `msgpack:"output,omitempty"`
	// Hash of the plan that the effect names; another one is a `bad_settlement`. For a
	// call of a host loop, the hash that the view names; another one is `plan_mismatch`,
	// and the call stays open.
	PlanHash string `msgpack:"plan_hash,omitempty" lim:"@hash"`
	// How the call ended. outcome_unknown: it may have taken effect.
	Status string `msgpack:"status" lim:"enum=succeeded|failed|cancelled|outcome_unknown"`
}

// ToolBatchSettled settles every call of a batch that has no result yet, including
// those of later groups. A host loop that ran the plan itself publishes it.
type ToolBatchSettled struct {
	// The turn that made the calls: `r1t2`, whichever attempt that was.
	Batch string `msgpack:"batch" lim:"@turn"`
	// Hash of the batch's plan. With any other the whole event is refused.
	PlanHash string `msgpack:"plan_hash" lim:"@hash"`
	// One for each call without a result, in any order. An existing result may be repeated
	// unchanged.
	Results []ToolCallSettled `msgpack:"results" lim:"..CallsMax"`
}

// StepPrepared settles a step: what an outside hook decided for one turn, in place of
// the step rules. What it leaves out stays as the run's config has it.
//
//wire:rule {"if": {"properties": {"status": {"const": "failed"}}}, "then": {"required": ["error"]}, "else": {"properties": {"error": false}}}
//wire:rule {"not": {"required": ["active_tools", "tool_refs"]}}
type StepPrepared struct {
	// The tools of the turn in display order, in place of the config's. An empty list is
	// no tools.
	ActiveTools *[]string `msgpack:"active_tools,omitempty" lim:"..planner.StepToolsMax,item=@tool"`
	// Replaces the run's context, for later turns; at most 4 KiB, encoded.
	Context codec.Raw `msgpack:"context,omitempty" lim:"object"`
	// The effect that this settles.
	Effect string `msgpack:"effect" lim:"@step"`
	// Present with status failed, and only then.
	Error *Fault `msgpack:"error,omitempty"`
	// The provider's name of the model.
	Model string `msgpack:"model,omitempty" lim:"..planner.StepModelBytesMax"`
	// Replaces the config's as a whole; at most 32 KiB, encoded.
	Params codec.Raw `msgpack:"params,omitempty" lim:"object"`
	// failed: the fallback of the run's step_hook applies.
	Status string `msgpack:"status" lim:"enum=ok|failed"`
	// Replaces the config's.
	System string `msgpack:"system,omitempty" lim:"..planner.StepSystemBytesMax"`
	// auto, none, required, or a tool of the registry, for this turn.
	ToolChoice string `msgpack:"tool_choice,omitempty" lim:"@tool"`
	// Instead of `active_tools`: descriptors that the registry binds.
	ToolRefs *[]codec.Ref `msgpack:"tool_refs,omitempty" lim:"..planner.StepToolsMax"`
}

// WakeSettled reports that the time of a wake has come. The session's clock is at
// least its due from now on.
type WakeSettled struct {
	// The effect that this settles.
	Effect string `msgpack:"effect" lim:"@wake"`
}
