package web

import "github.com/refold/refold/actors/session"

// FleetShown is what runs now.
type FleetShown struct {
	// The bridges that are heard.
	Bridges []BridgeShown `json:"bridges"`
	// The session-actors that are heard.
	SessionActors []ActorShown `json:"session_actors"`
	// Number of the log's lanes. Absent: no session-actor is heard.
	Lanes int `json:"lanes,omitempty" lim:"1.."`
	// Targets that bridges serve, or that have a queue.
	Targets []TargetShown `json:"targets"`
	// Why the queues are not known. Absent: they are.
	Unknown string `json:"unknown,omitempty" lim:"any"`
	// The latest install records, the newest first.
	Installs []InstallShown `json:"installs"`
}

// BridgeShown is a bridge.
type BridgeShown struct {
	// The process: another one after each start.
	Instance string `json:"instance" lim:"any"`
	// Its name.
	Name string `json:"name,omitempty" lim:"any"`
	// Its release.
	Version string `json:"version,omitempty" lim:"any"`
	// What it serves: class/target.
	Targets []string `json:"targets" lim:"item=any"`
	// Unix milliseconds: its last heartbeat. Absent: it only answers.
	Heard int64 `json:"heard,omitempty"`
	// How far its machine's clock is wrong, in milliseconds.
	AheadMS int64 `json:"clock_ahead_ms,omitempty"`
	// Its targets that do not work.
	Troubles []session.Trouble `json:"troubles,omitempty"`
}

// ActorShown is a session-actor.
type ActorShown struct {
	// The process: another one after each start.
	Instance string `json:"instance" lim:"any"`
	// The lanes that it runs.
	Lanes []int `json:"lanes" lim:"item=0.."`
	// Unix milliseconds: its last heartbeat.
	Heard int64 `json:"heard"`
	// It takes no more lanes, and hands its own over.
	Leaving bool `json:"leaving,omitempty"`
	// It has just started.
	Joining bool `json:"joining,omitempty"`
	// How far its machine's clock is wrong, in milliseconds.
	AheadMS int64 `json:"clock_ahead_ms,omitempty"`
	// What is wrong, for people.
	NotReady []string `json:"not_ready,omitempty" lim:"item=any"`
}

// TargetShown is a target.
type TargetShown struct {
	// class/target
	Target string `json:"target" lim:"any"`
	// Number of bridges that serve it.
	Bridges int `json:"bridges" lim:"0.."`
	// What bridges lack for it.
	Lacks []string `json:"lacks,omitempty" lim:"item=any"`
	// Effects that no bridge has got.
	Untaken uint64 `json:"untaken"`
	// Those, and the ones that a bridge has and has not settled.
	Waiting uint64 `json:"waiting"`
}

// InstallShown is an install record.
type InstallShown struct {
	// Sequence in the log.
	Seq uint64 `json:"seq" lim:"1.."`
	// Unix milliseconds.
	Time int64 `json:"time"`
	// Its hash. Absent: it is faulty.
	Hash string `json:"hash,omitempty" lim:"any"`
	// Version of the rules.
	Rules int `json:"rules,omitempty" lim:"1.."`
	// Number of its tools.
	Tools int `json:"tools,omitempty" lim:"0.."`
	// New sessions pin it.
	Pinned bool `json:"pinned,omitempty"`
	// Of the record that new sessions pin: tools whose target no bridge serves.
	Unserved []string `json:"unserved,omitempty" lim:"item=any"`
	// Why no session pins it.
	Fault string `json:"fault,omitempty" lim:"any"`
}

// SystemShown is how the log is stored.
type SystemShown struct {
	// What must fail before an acknowledged event is lost: unknown, interval, replicated,
	// always.
	Durability string `json:"durability" lim:"any"`
	// Sequence of the newest event.
	Last uint64 `json:"last"`
	// Number of sequences below it without an event.
	Missing uint64 `json:"missing,omitempty"`
	// The newest version of the rules that this server knows.
	Rules int `json:"rules" lim:"1.."`
	// The streams.
	Streams []StreamShown `json:"streams"`
	// Sessions that are stopped.
	Quarantines []QuarantineShown `json:"quarantines"`
}

// StreamShown is a stream.
type StreamShown struct {
	// Its name.
	Name string `json:"name" lim:"any"`
	// The server has no such stream.
	IsMissing bool `json:"missing,omitempty"`
	// Number of its messages.
	Messages uint64 `json:"messages"`
	// Size in bytes.
	Bytes uint64 `json:"bytes"`
	// Limit of the size in bytes. Absent: none.
	BytesMax int64 `json:"bytes_max,omitempty" lim:"1.."`
	// How long messages are kept, in seconds. Absent: for ever.
	MaxAge int64 `json:"max_age_s,omitempty" lim:"1.."`
	// Number of copies.
	Replicas int `json:"replicas" lim:"0.."`
	// The server that leads it.
	Leader string `json:"leader,omitempty" lim:"any"`
}

// QuarantineShown is a session that is stopped.
type QuarantineShown struct {
	// The session.
	Session string `json:"session" lim:"any"`
	// Sequence of its first event that is not processed.
	Seq uint64 `json:"seq" lim:"1.."`
	// Why it is stopped.
	Reason string `json:"reason" lim:"any"`
}

// Verified is a session that was folded again, and compared with what is stored.
type Verified struct {
	// The session.
	Session string `json:"session" lim:"any"`
	// Number of its events.
	Events uint64 `json:"events"`
	// Those of them that had no effect.
	Rejected int `json:"rejected,omitempty" lim:"0.."`
	// Hash of its state.
	Hash string `json:"hash" lim:"any"`
	// Hash chain over its events.
	Chain string `json:"chain" lim:"any"`
	// Effects that are stored with the same bytes.
	Same uint64 `json:"effects_same"`
	// Effects that are not stored any more.
	Gone uint64 `json:"effects_gone"`
	// Sequence of the snapshot that was compared.
	SnapshotAt uint64 `json:"snapshot_at,omitempty" lim:"1.."`
	// What differs, for people. Absent: nothing.
	Differences []string `json:"differences,omitempty" lim:"item=any"`
}

// VerifyStep is a step of the verification of all sessions: one that differs, or, as the
// last one, the sum.
type VerifyStep struct {
	// A session that differs, or progress. Absent in the sum.
	Session *Verified `json:"session,omitempty"`
	// It is the sum.
	Done bool `json:"done,omitempty"`
	// Sessions so far.
	Sessions int `json:"sessions" lim:"0.."`
	// Events so far.
	Events uint64 `json:"events"`
	// Sessions that differ, so far.
	Differ int `json:"differ" lim:"0.."`
	// Sequences of the log without an event.
	Missing uint64 `json:"missing,omitempty"`
}
