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
	// The lanes, in their order.
	LaneStates []LaneShown `json:"lane_states"`
	// Targets that bridges serve, or that have a queue.
	Targets []TargetShown `json:"targets"`
	// Why lanes and queues are not known. Absent: they are.
	Unknown string `json:"unknown,omitempty" lim:"any"`
	// The latest install records, the newest first.
	Installs []InstallShown `json:"installs"`
}

// LaneShown is a lane of the log: session-actors fold its events in order.
type LaneShown struct {
	// Its number.
	Lane int `json:"lane" lim:"0.."`
	// Instance of the session-actor that owns it. Absent: none says so.
	Owner string `json:"owner,omitempty" lim:"any"`
	// The server says that a session-actor owns it.
	Pinned bool `json:"pinned,omitempty"`
	// Events that no session-actor has got.
	Pending uint64 `json:"pending"`
	// Events that a session-actor has got, and whose outputs are not all stored.
	Unacknowledged uint64 `json:"unacknowledged"`
	// Unix milliseconds: when the oldest of both was stored. Absent: there is none.
	Oldest int64 `json:"oldest,omitempty"`
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
	// The newest version of the rules that it knows. Absent: it does not say.
	Rules int `json:"rules,omitempty" lim:"1.."`
	// What it has done. Absent: it did not answer.
	Work *BridgeWork `json:"work,omitempty"`
	// Its targets that do not work.
	Troubles []session.Trouble `json:"troubles,omitempty"`
}

// BridgeWork counts the effects of a bridge, since its start.
type BridgeWork struct {
	// Now in a slot of one of its targets.
	InFlight int64 `json:"in_flight" lim:"0.."`
	// Slots of its targets.
	Slots int `json:"slots" lim:"0.."`
	// Those that it settled as succeeded.
	Done uint64 `json:"done"`
	// Those that it settled as anything else.
	Failed uint64 `json:"failed"`
	// Those that it took over from bridges that were gone.
	TakenOver uint64 `json:"taken_over"`
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
	// The newest version of the rules that it knows.
	Rules int `json:"rules" lim:"1.."`
	// What it has done. Absent: it did not answer.
	Work *ActorWork `json:"work,omitempty"`
	// What is wrong, for people.
	NotReady []string `json:"not_ready,omitempty" lim:"item=any"`
}

// ActorWork is what a session-actor says of itself.
type ActorWork struct {
	// Its release.
	Version string `json:"version" lim:"any"`
	// The lanes that it owns.
	Owned []int `json:"owned" lim:"item=0.."`
	// Times that it became the owner of a lane, since its start.
	Takeovers uint64 `json:"takeovers"`
	// Events that it folded and whose outputs it stored, since its start.
	Events uint64 `json:"events"`
	// Sessions in memory.
	Sessions int64 `json:"sessions" lim:"0.."`
	// Memory that these take, in bytes.
	SessionsBytes int64 `json:"sessions_bytes" lim:"0.."`
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
	// Version of the rules that new sessions follow. Absent: no install record is pinned.
	Pinned int `json:"pinned_rules,omitempty" lim:"1.."`
	// Version of the NATS server.
	NATS string `json:"nats" lim:"any"`
	// The timers of sessions.
	Timers TimersShown `json:"timers"`
	// The streams.
	Streams []StreamShown `json:"streams"`
	// Sessions that are stopped.
	Quarantines []QuarantineShown `json:"quarantines"`
}

// TimersShown counts the timers of sessions: deadlines, times of retries, and schedules.
type TimersShown struct {
	// Those that are set, and not due or not settled.
	Set uint64 `json:"set"`
	// Of these, those that are due: session-actors settle them at once.
	Due uint64 `json:"due"`
	// Why it is not known which are due. Absent: it is.
	Unknown string `json:"unknown,omitempty" lim:"any"`
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
