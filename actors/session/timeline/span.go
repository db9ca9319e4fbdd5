package timeline

import (
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// Kind is the kind of a span.
type Kind uint8

// The kinds of spans.
const (
	KindRun Kind = iota
	KindQueue
	KindPause
	KindTurn
	KindStep
	KindAttempt
	KindCompaction
	KindRetry
	KindGroup
	KindCall
	KindApproval
)

var kindNames = [...]string{"run", "queue", "pause", "turn", "step", "attempt", "compaction", "retry_wait", "group", "call", "approval"}

// String returns the kind's name, such as retry_wait.
func (k Kind) String() string { return kindNames[k] }

// MarshalText returns the kind's name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(kindNames[k]), nil }

// Span is one ended part of a run. Fields of other kinds are zero.
type Span struct {
	Kind   Kind   `json:"kind"`
	Place  string `json:"place"`            // see the package doc
	Parent string `json:"parent,omitempty"` // place; empty: the run itself
	Run    uint32 `json:"run"`
	Begin  int64  `json:"begin"` // Unix ms
	End    int64  `json:"end"`   // Unix ms
	Seq    uint64 `json:"seq"`   // of the event that ended it
	Failed bool   `json:"failed,omitempty"`
	Code   string `json:"code,omitempty"` // why it failed, was refused or cancelled

	// Origin is the run at the top of the tree, nil if that is the span's own run.
	Origin *session.Origin `json:"origin,omitempty"`

	Profile  string   `json:"profile,omitempty"`  // run
	Provider string   `json:"provider,omitempty"` // run, attempt, compaction
	Model    string   `json:"model,omitempty"`    // run, attempt, compaction
	Install  string   `json:"install,omitempty"`  // run: hash of the install record
	RunSeq   uint64   `json:"run_seq,omitempty"`  // run: sequence of the event with its input
	Caller   string   `json:"caller,omitempty"`   // run: traceparent of its request
	Of       *Of      `json:"of,omitempty"`       // run of a child
	Outcome  *Outcome `json:"outcome,omitempty"`  // run, attempt, compaction

	Turn  *Turn  `json:"turn,omitempty"`  // turn
	Hook  string `json:"hook,omitempty"`  // step
	From  string `json:"from,omitempty"`  // step: origin of the choice that applies
	Call  *Call  `json:"call,omitempty"`  // call, approval
	Calls int    `json:"calls,omitempty"` // group: number of calls
	Plan  string `json:"plan,omitempty"`  // group: hash of the batch's plan

	Attempt  int    `json:"attempt,omitempty"`  // attempt, retry wait: from 1
	Decision string `json:"decision,omitempty"` // approval: approve, deny, expired, closed
	Budget   bool   `json:"budget,omitempty"`   // pause: a budget began it
}

// Of is the call of another session that a run carries out.
type Of struct {
	Session string `json:"session"`
	Call    string `json:"call"`
}

// Outcome is how a run or an attempt ended.
type Outcome struct {
	Lifecycle    session.Lifecycle  `json:"lifecycle,omitempty"` // of a run
	Turns        uint32             `json:"turns,omitempty"`     // of a run
	Cost         int64              `json:"cost,omitempty"`      // of a run, micro-units
	FinishReason string             `json:"finish_reason,omitempty"`
	Usage        session.UsageTotal `json:"usage"`
}

// Turn is what a turn offered, and which of its calls were refused.
type Turn struct {
	Toolset string    `json:"toolset,omitempty"` // fingerprint
	Base    string    `json:"base,omitempty"`    // profile, catalog, run, step
	Rule    string    `json:"rule,omitempty"`    // the step rule that applies: run:2, profile:0
	Tools   int       `json:"tools"`
	Refused []Refused `json:"refused,omitempty"`
}

// Refused is a call of a turn that was not run.
type Refused struct {
	Call string `json:"call"` // r1t2c0
	Tool string `json:"tool"`
	Code string `json:"code"`
	At   int64  `json:"at"` // Unix ms
}

// Call is a call of a tool.
type Call struct {
	ToolID    string             `json:"tool_id"`
	ToolName  string             `json:"tool_name"`
	Status    session.CallStatus `json:"status,omitempty"`
	Kind      string             `json:"kind,omitempty"` // host_loop, reply, sleep, session; empty: a bridge carries it out
	RetrySafe bool               `json:"retry_safe,omitempty"`
	Edited    bool               `json:"edited,omitempty"` // a person changed its arguments
}

// TraceID returns the trace id of a run, or of a turn, by its place, under a prefix
// of subjects. It is a hash, the same in every process.
func TraceID(prefix, sid, place string) (id [16]byte) {
	fill(id[:], sum("refold/trace/1", prefix, sid, place))
	return id
}

// SpanID returns the id of the span at a place of a session.
func SpanID(prefix, sid, place string) (id [8]byte) {
	fill(id[:], sum("refold/span/1", prefix, sid, place))
	return id
}

// fill makes an id of a hash. Zero is not a valid id.
func fill(id []byte, sum codec.Hash) {
	copy(id, sum[:])
	if !slices.ContainsFunc(id, func(b byte) bool { return b != 0 }) {
		id[len(id)-1] = 1
	}
}

// sum hashes texts, with a zero byte between them.
func sum(domain, prefix, sid, place string) codec.Hash {
	var room [128]byte
	b := append(append(room[:0], domain...), 0)
	b = append(append(b, prefix...), 0)
	b = append(append(b, sid...), 0)
	return codec.Sum(append(b, place...))
}

// TurnPlace returns the place of the turn that a place, or an effect's name,
// belongs to; ok is false if it belongs to none.
func TurnPlace(place string) (turn string, ok bool) {
	end := strings.IndexByte(place, 't') + 1
	if end == 0 {
		return "", false
	}
	for end < len(place) && place[end] >= '0' && place[end] <= '9' {
		end++
	}
	return place[:end], true
}

// TurnBefore returns the place of the turn before; ok is false for a run's first
// turn.
func TurnBefore(turn string) (before string, ok bool) {
	at := strings.IndexByte(turn, 't') + 1
	n, err := strconv.ParseUint(turn[at:], 10, 32)
	if err != nil || n < 2 {
		return "", false
	}
	return turn[:at] + strconv.FormatUint(n-1, 10), true
}

// RunPlace returns the place of a run.
func RunPlace(run uint32) string { return "r" + strconv.FormatUint(uint64(run), 10) }

// key identifies a place; comparing keys needs no strings.
type key struct {
	kind      Kind
	run, turn uint32
	n         uint32 // attempt from 1, compaction from 1, group, call
}

// placeRoom exceeds the longest place.
const placeRoom = 48

// place returns the key's place; seq is the event that began it.
func (k key) place(seq uint64) string {
	var room [placeRoom]byte
	b := strconv.AppendUint(append(room[:0], 'r'), uint64(k.run), 10)
	switch k.kind {
	case KindRun:
		return string(b)
	case KindQueue:
		return string(append(b, 'q'))
	case KindPause:
		return string(strconv.AppendUint(append(b, 'p'), seq, 10))
	}
	b = strconv.AppendUint(append(b, 't'), uint64(k.turn), 10)
	switch k.kind {
	case KindStep:
		b = append(b, 's')
	case KindAttempt:
		b = strconv.AppendUint(append(b, 'a'), uint64(k.n), 10)
	case KindCompaction:
		b = strconv.AppendUint(append(b, 'k'), uint64(k.n), 10)
	case KindRetry:
		b = strconv.AppendUint(append(b, 'w'), uint64(k.n), 10)
	case KindGroup:
		b = strconv.AppendUint(append(b, 'g'), uint64(k.n), 10)
	case KindCall, KindApproval:
		b = strconv.AppendUint(append(b, 'c'), uint64(k.n), 10)
		if k.kind == KindApproval {
			b = append(b, 'p')
		}
	}
	return string(b)
}

// effect returns the name of the effect of an attempt or a call.
func (k key) effect() string {
	if k.kind == KindAttempt && k.n == 1 {
		return key{kind: KindTurn, run: k.run, turn: k.turn}.place(0)
	}
	return k.place(0)
}

// parent returns the key of the parent span; a call's parent is group.
func (k key) parent(group uint32) key {
	switch k.kind {
	case KindQueue, KindPause, KindTurn:
		return key{kind: KindRun, run: k.run}
	case KindCall:
		return key{kind: KindGroup, run: k.run, turn: k.turn, n: group}
	}
	return key{kind: KindTurn, run: k.run, turn: k.turn}
}

// PlaceOf returns the place of the span of an effect, by the effect's name: r1t2
// has the span r1t2a1, all others that of their name.
func PlaceOf(effect string) string {
	turn := strings.LastIndexByte(effect, 't')
	if turn < 0 || strings.ContainsAny(effect[turn:], "acks") {
		return effect
	}
	return effect + "a1"
}

// EffectOf returns the name of the effect at a place. It is the inverse of PlaceOf.
func EffectOf(place string) string {
	at := strings.LastIndexByte(place, 'a')
	if at < 0 || place[at:] != "a1" {
		return place
	}
	return place[:at]
}
