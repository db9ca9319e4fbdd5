package web

import (
	"encoding/json"

	"github.com/refold/refold/actors/session"
)

// This file has the answers of the operations that the inspector's pages use.

// CallerShown is who sends a request.
type CallerShown struct {
	// The name under which events are published.
	Subject string `json:"subject" lim:"any"`
	// What it may do.
	Rights []Right `json:"rights" lim:"item=enum=read|ask|approve|operate|erase"`
	// It sees some sessions alone.
	Scoped bool `json:"scoped,omitempty"`
	// Agents that it may name.
	Agents []string `json:"agents" lim:"item=any"`
	// The server masks secrets: it sends nothing as it is stored, so no page can prove a session.
	Redacts bool `json:"redacts,omitempty"`
}

// EventList is a page of a session's events.
type EventList struct {
	// The events, in the order of the log.
	Events []EventHead `json:"events"`
	// Number of all events of the session.
	Total int `json:"total" lim:"0.."`
	// Sequence with which the next page begins. Absent: this is the last one.
	Next uint64 `json:"next,omitempty" lim:"1.."`
}

// EventHead is what a list shows of an event.
type EventHead struct {
	// Sequence in the log.
	Seq uint64 `json:"seq" lim:"1.."`
	// Its number in the session, from 1.
	N int `json:"n" lim:"1.."`
	// Unix milliseconds, of the log.
	Time int64 `json:"time"`
	// The door through which it was published.
	Door string `json:"door" lim:"any"`
	// Its type. Absent: it can't be read.
	Type string `json:"type,omitempty" lim:"any"`
	// The publisher. For people, never for authority.
	By string `json:"by,omitempty" lim:"any"`
	// Size in bytes.
	Bytes int `json:"bytes" lim:"0.."`
	// What it did, for people.
	Line string `json:"line,omitempty" lim:"any"`
	// The run that is active after it, else the run that ended last.
	Run uint32 `json:"run,omitempty" lim:"1.."`
	// The turn that is the latest one after it, such as r1t2.
	Turn string `json:"turn,omitempty" lim:"any"`
	// Why it had no effect. Absent: it had one.
	Rejected string `json:"rejected,omitempty" lim:"any"`
	// Types of the notices that it led to.
	Notices []string `json:"notices,omitempty" lim:"item=any"`
	// Effects that it opened.
	Opened []string `json:"opened,omitempty" lim:"item=any"`
}

// EventShown is an event with all that it did.
type EventShown struct {
	EventHead
	// Id of the event.
	ID string `json:"id,omitempty" lim:"any"`
	// Unix milliseconds, of the publisher's clock.
	At int64 `json:"at,omitempty"`
	// Its data. Absent: there is none, it can't be read, or it is too large to be shown:
	// the raw bytes have it.
	Data json.RawMessage `json:"data,omitempty" lim:"object"`
	// Whether its text was removed: what is shown is a copy without it.
	Redacted bool `json:"redacted,omitempty"`
	// Why it can't be read.
	Fault string `json:"fault,omitempty" lim:"any"`
	// Detail of the code for which it had no effect.
	Detail string `json:"detail,omitempty" lim:"any"`
	// The notices that it led to.
	Said []NoticeShown `json:"said,omitempty"`
	// The effects that it opened.
	Effects []EffectAsked `json:"effects,omitempty"`
	// Effects that it ended without a settlement.
	Withdrawn []string `json:"withdrawn,omitempty" lim:"item=any"`
	// What it changed in the state.
	Changes []Change `json:"changes,omitempty"`
	// There are more changes than are shown.
	More bool `json:"more,omitempty"`
	// Hash of the event.
	Leaf string `json:"leaf,omitempty" lim:"any"`
	// Hash chain over the session's events up to this one.
	Chain string `json:"chain" lim:"@hash"`
	// Hash of the state after it.
	Hash string `json:"hash" lim:"@hash"`
	// Sequence of the session's event before it.
	Previous uint64 `json:"previous,omitempty" lim:"1.."`
	// Sequence of the session's event after it.
	Following uint64 `json:"following,omitempty" lim:"1.."`
}

// NoticeShown is a notice.
type NoticeShown struct {
	// Its type.
	Type string `json:"type" lim:"any"`
	// Its data.
	Data json.RawMessage `json:"data,omitempty" lim:"object"`
}

// EffectAsked is an effect as a session opened it.
type EffectAsked struct {
	// Its name.
	Effect string `json:"effect" lim:"any"`
	// The class of the effect.
	Class string `json:"class" lim:"any"`
	// The target.
	Target string `json:"target" lim:"any"`
	// Unix milliseconds: when a wake settles it.
	Deadline int64 `json:"deadline,omitempty"`
	// Unix milliseconds, after which nobody starts it.
	StartBy int64 `json:"start_by,omitempty"`
	// Size of its message in bytes.
	Bytes int `json:"bytes" lim:"0.."`
	// SHA-256 of its message.
	Hash string `json:"hash" lim:"@hash"`
}

// Change is a path at which two states differ.
type Change struct {
	// Names of members and places in lists, such as run.turns or items[3].
	Path string `json:"path" lim:"any"`
	// The value before, as JSON. Absent: it was added.
	Old string `json:"old,omitempty" lim:"any"`
	// The value after, as JSON. Absent: it was removed.
	New string `json:"new,omitempty" lim:"any"`
}

// ChangeList is how two states of a session differ.
type ChangeList struct {
	// The paths, in order.
	Changes []Change `json:"changes"`
	// There are more than are shown.
	More bool `json:"more,omitempty"`
}

// StateShown is a session's state after one of its events.
type StateShown struct {
	// Sequence of the event.
	Seq uint64 `json:"seq" lim:"1.."`
	// Its number in the session, from 1.
	N int `json:"n" lim:"1.."`
	// The state as people see it.
	View session.View `json:"view"`
	// The state as it is stored. Its fields are no part of the protocol.
	Record json.RawMessage `json:"record,omitempty" lim:"object"`
}

// Timeline is what took a session's time: spans, in the order in which they began. It has
// them as columns, which take a fifth of the bytes that objects would: the n-th value of
// each column is of the n-th span.
type Timeline struct {
	// Texts that columns name by their places. The first one is empty.
	Names []string `json:"names" lim:"item=any"`
	// Its name in the session, such as r1t2c0.
	Places []string `json:"places" lim:"item=any"`
	// Where the span is that it is a part of, counted from it: -2 is two spans earlier. 0: it
	// is a part of none of these spans.
	Parents []int `json:"parents"`
	// What it is, in names: run, queue, pause, turn, step, attempt, compaction, retry_wait,
	// group, call, approval, wake; or of one that is open, also space.
	Kinds []int `json:"kinds" lim:"item=0.."`
	// Its run, less the run of the span before it. The first one is less 0, as in all columns
	// of differences.
	Runs []int64 `json:"runs"`
	// When it began, in Unix milliseconds, less that of the span before it.
	Begins []int64 `json:"begins"`
	// How long it took, in milliseconds. -1: it is open.
	Took []int64 `json:"took" lim:"item=-1.."`
	// Sequence of the event that ended it, or that began an open one, less that of the span
	// before it.
	Seqs []int64 `json:"seqs"`
	// Model or tool, in names.
	Labels []int `json:"labels" lim:"item=0.."`
	// How a person decided, or how the run or the call ended, in names.
	Outcomes []int `json:"outcomes" lim:"item=0.."`
	// Why it failed, in names.
	Codes []int `json:"codes" lim:"item=0.."`
	// 1: it failed, or was refused.
	Failed []int `json:"failed" lim:"item=0..1"`
	// Of an open one: when it ends at the latest, in milliseconds after it began. 0: it has no
	// deadline.
	Deadlines []int64 `json:"deadlines" lim:"item=0.."`
}

// ToolsShown says which tools a turn was offered, and why not the others.
type ToolsShown struct {
	// The turn, such as r1t2.
	Turn string `json:"turn" lim:"any"`
	// Sequence of the event that decided its tools.
	Seq uint64 `json:"seq" lim:"1.."`
	// What decided.
	Decided session.ViewTurn `json:"decided"`
	// All tools of its registry.
	Tools []ToolShown `json:"tools"`
	// All turns of the session, in order.
	Turns []TurnShown `json:"turns"`
}

// ToolShown is a tool of a turn.
type ToolShown struct {
	session.ViewTool
	// For the model.
	Description string `json:"description,omitempty" lim:"any"`
	// JSON Schema of its arguments. Absent: it is too large to be shown.
	Schema json.RawMessage `json:"schema,omitempty" lim:"object"`
	// Who carries it out: class and target.
	Executor string `json:"executor" lim:"any"`
	// Whether a call may run twice without harm.
	RetrySafe bool `json:"retry_safe,omitempty"`
	// Whether a call needs a person: never, always, or a condition.
	Approval string `json:"approval,omitempty" lim:"any"`
}

// TurnShown is a turn in a list.
type TurnShown struct {
	// The turn, such as r1t2.
	Turn string `json:"turn" lim:"any"`
	// Sequence of the event that decided its tools.
	Seq uint64 `json:"seq" lim:"1.."`
	// Fingerprint of the offered tools: turns with the same one were offered the same.
	Toolset string `json:"toolset,omitempty" lim:"any"`
}

// BatchShown is how the calls of a turn were planned.
type BatchShown struct {
	// The turn, such as r1t2. Absent: the latest one has no calls.
	Batch string `json:"batch,omitempty" lim:"any"`
	// Sequence of the event with the calls; without any, of the session's latest event.
	Seq uint64 `json:"seq" lim:"1.."`
	// Hash of the plan.
	PlanHash string `json:"plan_hash,omitempty" lim:"any"`
	// What the model said beside its calls: the beginning of it.
	Text string `json:"text,omitempty" lim:"any"`
	// The calls, in the model's order.
	Calls []BatchCall `json:"calls"`
	// Number of calls beyond those that may run.
	Excess int `json:"excess,omitempty" lim:"0.."`
}

// BatchCall is a call of a batch, and why it stands where it does.
type BatchCall struct {
	// The call's name, such as r1t2c0.
	Call string `json:"call" lim:"any"`
	// The tool, as the model calls it.
	Tool string `json:"tool" lim:"any"`
	// Its group, from 1. Absent: it is in none.
	Group int `json:"group,omitempty" lim:"1.."`
	// Status of the call.
	Status string `json:"status" lim:"any"`
	// Code of a result that the session gave.
	Code string `json:"code,omitempty" lim:"any"`
	// Detail of the code.
	Detail string `json:"detail,omitempty" lim:"any"`
	// What the call uses. Absent: nothing that another call could use.
	Key string `json:"key,omitempty" lim:"any"`
	// Whether it reads or writes.
	Access string `json:"access,omitempty" lim:"any"`
	// It may run beside others.
	ParallelSafe bool `json:"parallel_safe,omitempty"`
	// The earlier calls, from 0, beside which it may not run.
	Conflicts []int `json:"conflicts,omitempty" lim:"item=0.."`
	// What asked that a person decides over it. Absent: nothing did.
	AskedBy string `json:"asked_by,omitempty" lim:"any"`
}

// EffectList is the latest effects of a session.
type EffectList struct {
	// The latest one first.
	Effects []EffectShown `json:"effects"`
	// There are older ones.
	More bool `json:"more,omitempty"`
	// Why it is not known what is stored and who works on it. Absent: it is known.
	Unknown string `json:"unknown,omitempty" lim:"any"`
}

// EffectShown is an effect, and what became of it.
type EffectShown struct {
	EffectAsked
	// Sequence of the event that opened it.
	Seq uint64 `json:"seq" lim:"1.."`
	// Unix milliseconds: when it was opened.
	Asked int64 `json:"asked"`
	// Sequence of the event after which it was not open any more. Absent: it is open.
	EndedSeq uint64 `json:"ended_seq,omitempty" lim:"1.."`
	// Unix milliseconds, of that event.
	Ended int64 `json:"ended,omitempty"`
	// Whether its message is stored with the bytes that the fold asks for. Effects are kept
	// for about an hour.
	Stored string `json:"stored,omitempty" lim:"enum=same|other|gone"`
	// Of an open one: the instance of the bridge that works on it.
	Holder string `json:"holder,omitempty" lim:"any"`
}

// PreviewRequest is an event that is not published.
type PreviewRequest struct {
	// Its type.
	Type string `json:"type" lim:"1..64"`
	// Its data, as docs/protocol.md describes it for the type.
	Data json.RawMessage `json:"data,omitempty" lim:"object"`
	// The door through which it would come.
	Door string `json:"door" lim:"enum=in|ctl|approve"`
}

// Preview is what would come of an event.
type Preview struct {
	// Why it would have no effect. Absent: it would have one.
	Rejected string `json:"rejected,omitempty" lim:"any"`
	// Detail of the code.
	Detail string `json:"detail,omitempty" lim:"any"`
	// The notices that it would lead to.
	Said []NoticeShown `json:"said,omitempty"`
	// The effects that it would open.
	Effects []EffectAsked `json:"effects,omitempty"`
	// Effects that it would end without a settlement.
	Withdrawn []string `json:"withdrawn,omitempty" lim:"item=any"`
	// What it would change in the state.
	Changes []Change `json:"changes,omitempty"`
	// There are more changes than are shown.
	More bool `json:"more,omitempty"`
	// Sequence of the event after which it was tried.
	After uint64 `json:"after" lim:"1.."`
}

// Proof is what the server has of a session. A page that folds the session's events again
// compares it with what it gets.
type Proof struct {
	// The session as the log names it: a token's scope, which answers leave out elsewhere,
	// is part of it, and so of the state's hash.
	Session string `json:"session" lim:"any"`
	// SHA-256 of the install record that the session pinned.
	Install string `json:"install" lim:"@hash"`
	// Number of events.
	Events int `json:"events" lim:"1.."`
	// Sequence of the last one.
	Seq uint64 `json:"seq" lim:"1.."`
	// BLAKE2b-256 chain over all events.
	Chain string `json:"chain" lim:"@hash"`
	// BLAKE2b-256 of the state after the last event.
	Hash string `json:"hash" lim:"@hash"`
	// States between, each 512th.
	Checkpoints []ProofState `json:"checkpoints"`
	// The stored snapshot. Absent: there is none that counts.
	Snapshot *ProofSnapshot `json:"snapshot,omitempty"`
	// The effects that are stored. Effects are kept for about an hour.
	Effects []ProofEffect `json:"effects"`
	// Why it is not known which effects are stored. Absent: it is known.
	Unknown string `json:"unknown,omitempty" lim:"any"`
}

// ProofState is the state after an event.
type ProofState struct {
	// The event's number in the session, from 1.
	N int `json:"n" lim:"1.."`
	// BLAKE2b-256 of the state.
	Hash string `json:"hash" lim:"@hash"`
}

// ProofSnapshot is the state in a session's snapshot.
type ProofSnapshot struct {
	// Sequence of the event after which it was.
	Seq uint64 `json:"seq" lim:"1.."`
	// BLAKE2b-256 of the state.
	Hash string `json:"hash" lim:"@hash"`
}

// ProofEffect is a stored effect.
type ProofEffect struct {
	// Name of the effect, such as r1t2c0.
	Effect string `json:"effect" lim:"any"`
	// SHA-256 of the stored bytes.
	Hash string `json:"hash" lim:"@hash"`
}
