package session

import (
	"encoding/binary"
	"iter"
	"slices"

	"github.com/refold/refold/codec"
)

// Fold returns the state after history: the session's own events in stream
// order, under install. It emits nothing, so folding twice does nothing twice.
// Rejected events are part of a history and are folded like any other.
func Fold(install *Install, sid string, history iter.Seq[Event]) *State {
	s := New(install, sid)
	s.Mute(true)
	for e := range history {
		_, _ = s.Evolve(e)
	}
	s.Mute(false)
	return s
}

// Evolve folds one event, the next one of the session in stream order, and
// returns what is to be said about it. Afterwards Open and Withdrawals tell
// what the world owes; the caller stores all three before it counts the event
// as stored. Progress tells what may be said then, and is not stored. Evolve never fails for another reason than a Rejection, and then
// only the head has changed: sequence, count, chain, clock and notice number.
// The notices are the caller's to keep. The payload is the state's: it may be
// held while the session is at work, so nobody writes to it any more.
func (s *State) Evolve(e Event) ([]Notice, error) {
	if s.live == nil {
		s.live = newLive()
	}
	s.withdrawn, s.progress = s.withdrawn[:0], nil
	s.advance(e)
	if s.Count == 1 {
		say(s, NoticeSessionOpened, SessionOpened{Install: s.Install, Rules: int(s.Rules)})
	}
	typ, bad := s.apply(e)
	s.lastType = uint8(slices.Index(lastTypes, typ) + 1)
	if bad != nil {
		say(s, NoticeEventRejected, EventRejected{Seq: e.Seq, Type: typ, Code: bad.code, Detail: bad.detail})
		return s.said(), bad.code
	}
	return s.said(), nil
}

// lastTypes are the types that LastType knows.
var lastTypes = EventTypes()

// LastType returns the type of the event that was folded last. It is empty after a
// load, and of an event of no known type.
func (s *State) LastType() string {
	if s.lastType == 0 {
		return ""
	}
	return lastTypes[s.lastType-1]
}

// said returns the notices of the event being folded, and keeps none: a run's
// whole output may be in them. A session that is idle now is at work no more.
func (s *State) said() []Notice {
	notices := s.notices
	s.notices = nil
	if s.isIdle() {
		s.hashOwed()
		if len(s.progress) == 0 { // else Progress does it
			s.rest()
		}
		s.clipItems()
	}
	return notices
}

// Mute has Evolve return no notices from here on, and make no progress, or
// return them again. They
// are numbered all the same, and nothing else differs. It is for who folds
// again, to compare: most of what a notice holds is text that is copied for it.
func (s *State) Mute(on bool) {
	switch {
	case on && s.live == nil:
		s.live = newLive()
	case !on && s.live == nil:
		return
	}
	s.mute = on
	if !on && s.isIdle() {
		s.live = nil
	}
}

// newLive returns what a state at work begins with.
func newLive() *live { return &live{toolsMoved: true} }

func (s *State) isIdle() bool { return s.Run == nil && len(s.withdrawn) == 0 }

// rest drops what an idle session can do without.
func (s *State) rest() {
	if !s.mute {
		s.live = nil
		return
	}
	*s.live = live{toolsMoved: true, mute: true, withdrawn: s.withdrawn[:0]}
}

// advance moves the head over e: all that changes even when e is rejected.
func (s *State) advance(e Event) {
	s.Seq = e.Seq
	s.Count++
	s.Clock = max(s.Clock, e.Time)
	s.Leaf = LeafOf(e)
	var link [2 * len(s.Chain)]byte
	copy(link[:], s.Chain[:])
	copy(link[len(s.Chain):], s.Leaf[:])
	s.Chain = codec.Mark(link[:])
}

// hashRoom is what is hashed without asking the heap for room: most events.
const hashRoom = 1 << 10

// LeafOf returns the BLAKE2b-256 of one event alone: of sequence and timestamp (eight
// bytes each, big-endian), the door, a zero byte, the payload. A snapshot
// names its last event by it.
func LeafOf(e Event) codec.Hash {
	var room [hashRoom]byte
	b := room[:0]
	b = binary.BigEndian.AppendUint64(b, e.Seq)
	b = binary.BigEndian.AppendUint64(b, uint64(e.Time))
	b = append(b, e.Door...)
	b = append(b, 0)
	b = append(b, e.Payload...)
	return codec.Mark(b)
}

// say adds a notice about the event being folded. Data is boxed only if
// somebody hears it.
func say[T any](s *State, typ string, data T) {
	s.NoticeN++
	if s.mute {
		return
	}
	s.notices = append(s.notices, Notice{N: uint64(s.NoticeN), Type: typ, Seq: s.Seq, At: s.Clock, Session: s.Session, Data: data})
}

// apply decodes e and folds its body. It returns the event's type, as far as
// it could be read, and why nothing was done.
func (s *State) apply(e Event) (string, *refusal) {
	var b settlement
	var q request
	env, read := b.scan(&e)
	asked := false
	if !read {
		var bad *refusal
		if env, asked = q.scan(&e); !asked {
			if env, bad = openCanonical(e, q.canonical); bad != nil {
				return env.Type, bad
			}
		}
		b = settlement{}
	}
	if env.ID != "" && s.seen(env.ID) {
		return env.Type, refuse(RejectDuplicateEvent, "the session took an event with this id before")
	}
	if s.Closed && !mayFollowClose(env.Type) {
		return env.Type, sessionClosedRefusal()
	}
	var bad *refusal
	switch {
	case read:
		bad = s.settle(&b)
	case asked:
		bad = s.runRequested(e.Door, &q.body, q.bytes, env.Data)
	case isSettlement(env.Type):
		if bad = b.decode(env); bad == nil {
			bad = s.settle(&b)
		}
	default:
		bad = s.applyBody(e.Door, env)
	}
	if bad != nil {
		return env.Type, bad
	}
	if next, any := s.nextDeadline(); any {
		s.needWake(next)
	}
	if env.ID != "" {
		s.remember(env.ID)
	}
	return env.Type, nil
}

// isSettlement reports whether a type settles one effect.
func isSettlement(typ string) bool {
	switch typ {
	case TypeToolCallsObserved, TypeGenerationSettled, TypeToolCallSettled, TypeStepPrepared, TypeWakeSettled,
		TypeWorkspaceSnapshotReady, TypeWorkspaceSyncUnchanged, TypeWorkspaceSyncFailed:
		return true
	}
	return false
}

// applyBody is the one switch over the body of an event that settles no effect.
func (s *State) applyBody(door Door, env Envelope) *refusal {
	switch env.Type {
	case TypeRunRequested:
		if bad := configRulesFault(env.Data); bad != nil {
			return bad
		}
		return contentBody(env.Data, func(b *RunRequested) *refusal {
			if bad := contentFault("input", &b.Input, false); bad != nil {
				return bad
			}
			return s.runRequested(door, b, b.Input.shownBytes(), env.Data)
		})
	case TypeSteerRequested:
		return contentBody(env.Data, s.steerRequested)
	case TypeRunEdited:
		return contentBody(env.Data, s.runEdited)
	case TypeRunCancelRequested:
		return body(env.Data, s.runCancelRequested)
	case TypeRunInterrupt:
		return body(env.Data, s.runInterruptRequested)
	case TypeRunPauseRequested:
		return body(env.Data, s.runPauseRequested)
	case TypeRunResumeRequested:
		return body(env.Data, func(b *RunResumeRequested) *refusal { return s.runResumeRequested(door, b) })
	case TypeRunCompleted, TypeRunFailed:
		return body(env.Data, func(b *RunEnded) *refusal { return s.runEnded(env.Type, b) })
	case TypeToolBatchSettled:
		return s.toolBatchSettled(env.Data)
	}
	return s.applyCtl(env)
}

// applyCtl is the rest of the switch: what comes through ctl or approve alone.
func (s *State) applyCtl(env Envelope) *refusal {
	switch env.Type {
	case TypeSessionConfigured:
		return s.sessionConfigured(env.Data)
	case TypeSessionClosed:
		return body(env.Data, s.sessionClosed)
	case TypeToolRegistrySet:
		return s.toolRegistrySet(env.Data)
	case TypeToolProfileSelected:
		return body(env.Data, s.toolProfileSelected)
	case TypeToolOverridesSet:
		return body(env.Data, s.toolOverridesSet)
	case TypeHostSessionUpdated:
		return body(env.Data, s.hostSessionUpdated)
	case TypeFactsSet:
		return body(env.Data, s.factsSet)
	case TypeApprovalDecided:
		return body(env.Data, s.approvalDecided)
	case TypeWorkspaceSyncRequested:
		return s.workspaceSyncRequested(env.Data)
	case TypeWorkspaceApplyRequested:
		return body(env.Data, s.workspaceApplyRequested)
	case TypeWorkspaceDetached:
		return body(env.Data, s.workspaceDetached)
	}
	return refuse(RejectUnknownType, "no event is called "+quoted(env.Type))
}

// mayFollowClose reports whether a closed session still looks at an event of a
// type: settlements, which change nothing any more, wakes, and a request that
// may be a repeat.
func mayFollowClose(typ string) bool {
	switch typ {
	case TypeRunRequested, TypeToolCallsObserved, TypeGenerationSettled, TypeToolCallSettled, TypeToolBatchSettled,
		TypeStepPrepared, TypeWakeSettled, TypeWorkspaceSnapshotReady, TypeWorkspaceSyncUnchanged, TypeWorkspaceSyncFailed:
		return true
	}
	return false
}

func sessionClosedRefusal() *refusal {
	return refuse(RejectSessionClosed, "the session was closed: open another one")
}

// seen reports whether an event with this id was taken lately.
func (s *State) seen(id string) bool {
	for _, have := range s.IDs {
		if have == id {
			return true
		}
	}
	return false
}

// remember keeps the id of an event that was taken, and forgets the oldest.
func (s *State) remember(id string) {
	if len(s.IDs) == IDsMax {
		copy(s.IDs, s.IDs[1:])
		s.IDs = s.IDs[:IDsMax-1]
	}
	s.IDs = append(s.IDs, id)
}
