package web

import (
	"encoding/json"

	"github.com/refold/refold/actors/session"
)

// This file has the bodies of requests and answers. Their schemas in openapi.json are
// written from it: comments are descriptions, and the tag lim has the limits.

// RunRequest requests a run.
//
//wire:rule {"properties": {"input": {"oneOf": [{"type": "string", "minLength": 1}, {"type": "array", "minItems": 1, "maxItems": 63, "items": {"$ref": "Part.json"}}]}}}
type RunRequest struct {
	// An agent of the server. Absent: the agent `default`; without one, what the session
	// was given, or the install record.
	Agent string `json:"agent,omitempty" lim:"@token"`
	// The user's input: a text, or a list of parts.
	Input json.RawMessage `json:"input"`
	// What to do while another run is active: wait (`queue`, if absent), become input of
	// that run (`steer`), end it and be next (`interrupt`), or be refused with `run_active`
	// (`reject`).
	WhenBusy string `json:"when_busy,omitempty" lim:"enum=queue|steer|interrupt|reject"`
	// The run's own config in place of the agent's: needs the right `operate`.
	Config json.RawMessage `json:"config,omitempty" lim:"object"`
}

// Part is a part of an input: a text, or a stored file.
//
//wire:rule {"oneOf": [{"required": ["text"]}, {"required": ["blob"]}]}
type Part struct {
	// A text.
	Text string `json:"text,omitempty" lim:"any"`
	// The handle of a stored file.
	Blob string `json:"blob,omitempty" lim:"..2048"`
}

// RunAccepted is a request that the session has taken.
type RunAccepted struct {
	// Sequence of the request in the log.
	Seq uint64 `json:"seq" lim:"1.."`
	// The run that it became, or whose input it is.
	Run uint32 `json:"run" lim:"1.."`
	// Position before the run's first update: follow the session after it.
	Position string `json:"position" lim:"any"`
}

// RunState is a run as it is now.
type RunState struct {
	// Number in the session, from 1.
	Run uint32 `json:"run" lim:"1.."`
	// queued, running, waiting_input, paused or interrupting; or, at its end, completed,
	// failed, cancelled or interrupted.
	Lifecycle session.Lifecycle `json:"lifecycle"`
	// It has ended: the rest is final.
	Ended bool `json:"ended"`
	// The answer. Absent before the end.
	Text string `json:"text,omitempty" lim:"any"`
	// Why it failed.
	Code string `json:"code,omitempty" lim:"..session.CodeBytesMax"`
	// Detail of the code, for people.
	Detail string `json:"detail,omitempty" lim:"..session.DetailBytesMax"`
	// Why the model ended its answer, if not by itself.
	FinishReason string `json:"finish_reason,omitempty" lim:"any"`
	// The run's tool calls, in the order in which they ended.
	Calls []Call `json:"calls,omitempty"`
	// Number of its turns.
	Turns uint32 `json:"turns,omitempty"`
	// What its turns used.
	Usage *session.UsageTotal `json:"usage,omitempty"`
	// Its cost in micro-units, by the prices of its config.
	Cost int64 `json:"cost,omitempty"`
}

// Call is a tool call.
type Call struct {
	// Its name in the session.
	Call string `json:"call" lim:"any"`
	// The tool, as the model calls it.
	Tool string `json:"tool" lim:"any"`
	// JSON as the model wrote it. Absent if it is too large for an event: then the view and
	// the approvals have it.
	Arguments string `json:"arguments,omitempty" lim:"any"`
	// Hash of the arguments, which a decision names. Of a call that waits for a person.
	ArgsHash string `json:"args_hash,omitempty" lim:"@hash"`
	// How it ended. Absent before.
	Status string `json:"status,omitempty" lim:"enum=succeeded|failed|cancelled|outcome_unknown|ignored"`
	// Why it did not succeed.
	Code string `json:"code,omitempty" lim:"any"`
	// Detail of the code, for people.
	Detail string `json:"detail,omitempty" lim:"any"`
}

// SessionList is a page of a list.
type SessionList struct {
	// The sessions.
	Sessions []SessionRow `json:"sessions"`
	// Cursor of the next page. Absent: this is the last one.
	Next string `json:"next,omitempty" lim:"any"`
}

// SessionRow is what a list has of a session.
type SessionRow struct {
	// The session.
	Session string `json:"session" lim:"any"`
	// The lifecycle of the latest run, or open, closed, quarantined, unknown or silent.
	State string `json:"state" lim:"any"`
	// Unix milliseconds of its latest activity.
	At int64 `json:"at,omitempty"`
	session.Summary
}

// SteerRequest is more input for the active run.
//
//wire:rule {"properties": {"input": {"oneOf": [{"type": "string", "minLength": 1}, {"type": "array", "minItems": 1, "maxItems": 63, "items": {"$ref": "Part.json"}}]}}}
type SteerRequest struct {
	// The user's input: a text, or a list of parts.
	Input json.RawMessage `json:"input"`
}

// Reason is the body of a control.
type Reason struct {
	// For people.
	Reason string `json:"reason,omitempty" lim:"..session.DetailBytesMax"`
}

// ResumeRequest lets a paused run go on.
type ResumeRequest struct {
	// For people.
	Reason string `json:"reason,omitempty" lim:"..session.DetailBytesMax"`
	// Replaces the run's budget as a whole, and needs the right `operate`: a run that its
	// budget paused goes on with a larger one alone. {} is no limit.
	Budget json.RawMessage `json:"budget,omitempty" lim:"object"`
}

// FailRequest ends a run that waits for input as failed.
type FailRequest struct {
	// For people.
	Reason string `json:"reason,omitempty" lim:"..session.DetailBytesMax"`
	// The run's code, for programs; `explicit` if absent.
	Code string `json:"code,omitempty" lim:"1..session.CodeBytesMax"`
}

// ProfileRequest selects a profile.
type ProfileRequest struct {
	// A profile of the session's registry.
	Profile string `json:"profile" lim:"@token"`
}

// ConfigRequest sets a session's own config.
type ConfigRequest struct {
	// The data of SessionConfigured, as docs/protocol.md describes it. It replaces the
	// session's config as a whole.
	Config json.RawMessage `json:"config" lim:"object"`
}

// RegistryRequest replaces a session's registry.
type RegistryRequest struct {
	// The data of ToolRegistrySet, as docs/protocol.md describes it.
	Registry json.RawMessage `json:"registry" lim:"object"`
}

// ReleaseRequest is the quarantine that a person has seen.
type ReleaseRequest struct {
	// Sequence of the first event that is not processed.
	Seq uint64 `json:"seq" lim:"1.."`
	// Why the session is stopped.
	Reason string `json:"reason" lim:"any"`
}

// Taken is a control that the session has taken.
type Taken struct {
	// Sequence of the event in the log.
	Seq uint64 `json:"seq" lim:"1.."`
}

// Redacted is an event whose text was removed.
type Redacted struct {
	// Sequence of the event in the log.
	Seq uint64 `json:"seq" lim:"1.."`
	// Its type.
	Type string `json:"type" lim:"any"`
	// Notices that had its text, and were deleted.
	Notices int `json:"notices" lim:"0.."`
	// Dead letters of webhooks that had its text, and were deleted.
	DeadLetters int `json:"dead_letters" lim:"0.."`
	// Blobs that it named. `refold blobs sweep` deletes them if nothing else names them.
	Blobs int `json:"blobs" lim:"0.."`
}

// FactsRequest sets facts.
type FactsRequest struct {
	// Values by name; null removes a fact.
	Facts map[string]*string `json:"facts" lim:"1..session.FactsMax,key=..session.FactNameBytesMax,value=..session.FactValueBytesMax,value=null"`
}

// AgentRequest names an agent.
type AgentRequest struct {
	// An agent of the server.
	Agent string `json:"agent" lim:"@token"`
}

// OverridesRequest changes lists of tools. A given list replaces the old one, an empty one
// clears it, and an absent one leaves it.
type OverridesRequest struct {
	// The session's lists, or those of the active run, which end with it.
	Scope string `json:"scope" lim:"enum=session|run"`
	// Tools that are not offered, whatever else names them.
	Disable *[]string `json:"disable,omitempty" lim:"..session.NamesMax,item=@tool"`
	// Tools to add to the profile.
	Enable *[]string `json:"enable,omitempty" lim:"..session.NamesMax,item=@tool"`
	// Tools to add to any list.
	Force *[]string `json:"force,omitempty" lim:"..session.NamesMax,item=@tool"`
}

// ApprovalList is the calls that wait for a person.
type ApprovalList struct {
	// The calls, by session.
	Approvals []Approval `json:"approvals"`
}

// Approval is a call that waits for a person.
type Approval struct {
	// The session.
	Session string `json:"session" lim:"any"`
	// The run.
	Run uint32 `json:"run" lim:"1.."`
	// The call's name in the session.
	Call string `json:"call" lim:"any"`
	// The tool.
	ToolID string `json:"tool_id" lim:"any"`
	// The tool, as the model calls it.
	Tool string `json:"tool" lim:"any"`
	// JSON as the model wrote it; empty is {}.
	Arguments string `json:"arguments" lim:"any"`
	// Hash of the arguments: a decision names it.
	ArgsHash string `json:"args_hash" lim:"@hash"`
	// Unix milliseconds, after which the call is refused.
	Deadline int64 `json:"deadline,omitempty"`
	// Why the call would not run if it was approved now.
	Code string `json:"code,omitempty" lim:"any"`
	// Detail of the code, for people.
	Detail string `json:"detail,omitempty" lim:"any"`
	// The pack that the call would enable.
	Pack *PackShown `json:"pack,omitempty"`
	// The calls above a session that is a child: its own first, the root's last.
	Parents []ParentCall `json:"parents,omitempty"`
}

// ParentCall is a call that a session carries out for another one.
type ParentCall struct {
	// The session whose call it is.
	Session string `json:"session" lim:"any"`
	// The call's name in it.
	Call string `json:"call" lim:"any"`
}

// QuestionList is the calls that wait for a reply.
type QuestionList struct {
	// The calls, by session.
	Questions []Question `json:"questions"`
}

// Question is a call that waits for a reply.
type Question struct {
	// The session.
	Session string `json:"session" lim:"any"`
	// The run.
	Run uint32 `json:"run" lim:"1.."`
	// The call's name in the session.
	Call string `json:"call" lim:"any"`
	// The tool.
	ToolID string `json:"tool_id" lim:"any"`
	// The tool, as the model calls it.
	Tool string `json:"tool" lim:"any"`
	// JSON: what is asked.
	Arguments string `json:"arguments" lim:"any"`
	// Hash of the arguments: a reply names it.
	ArgsHash string `json:"args_hash" lim:"@hash"`
	// Who may answer: those with the right approve alone, or also those with the right ask.
	By string `json:"by" lim:"enum=approvers|clients"`
	// Unix milliseconds, after which the call fails.
	Deadline int64 `json:"deadline,omitempty"`
	// The calls above a session that is a child: its own first, the root's last.
	Parents []ParentCall `json:"parents,omitempty"`
}

// Reply answers a call that waits for it.
type Reply struct {
	LinkReply
	// Hash of the arguments that were answered.
	ArgsHash string `json:"args_hash" lim:"@hash"`
}

// LinkReply is an answer: an output, or why there is none.
type LinkReply struct {
	// The answer. If the call has a schema, it is one JSON text that fits.
	Output string `json:"output,omitempty" lim:"..session.TextBytesMax"`
	// In place of an output: why nobody answers, which the model is shown.
	Declined string `json:"declined,omitempty" lim:"..session.DetailBytesMax"`
}

// PackShown is a pack of tools that a call would enable.
type PackShown struct {
	// Its name.
	Name string `json:"name" lim:"any"`
	// Hash of its manifest: an approval names it.
	Manifest string `json:"manifest" lim:"@hash"`
	// The key that signed it. Absent: the grant names its hash.
	Signer string `json:"signer,omitempty" lim:"any"`
	// All of its texts that a model is shown, by path.
	Texts map[string]string `json:"texts,omitempty" lim:"key=any,value=any"`
}

// Decision is a person's decision over a call.
type Decision struct {
	// What was decided.
	Decision string `json:"decision" lim:"enum=approve|deny"`
	// Hash of the arguments that the person was shown.
	ArgsHash string `json:"args_hash" lim:"@hash"`
	// JSON with which an approved call runs in place of the model's.
	Arguments string `json:"arguments,omitempty" lim:"any"`
	// Why it is denied, which the model is shown.
	Reason string `json:"reason,omitempty" lim:"..session.DetailBytesMax"`
	// Hash of the manifest that the person was shown, if the call would enable a pack.
	Manifest string `json:"manifest,omitempty" lim:"@hash"`
}

// Blob is a stored file.
type Blob struct {
	// Handle for the parts of this session's requests.
	Blob string `json:"blob" lim:"any"`
	// Media type, by the content.
	MediaType string `json:"media_type" lim:"any"`
	// Size in bytes.
	Size int64 `json:"size" lim:"1.."`
	// Unix milliseconds: until when the handle is good.
	Expires int64 `json:"expires"`
}

// Health is the state of the server.
type Health struct {
	// The server works.
	Status string `json:"status" lim:"=ok"`
}
