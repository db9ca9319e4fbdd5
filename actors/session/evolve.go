package session

import (
	"encoding/binary"
	"iter"
	"slices"

	"github.com/refold/refold/codec"
)

// Fold returns the state after history: the session's own events in stream order,
// under install. It emits nothing, so folding twice does nothing twice. Rejected
// events are part of a history and are folded like any other.
func Fold(install *Install, sid string, history iter.Seq[Event]) *State {
	s := New(install, sid)
	s.SetQuiet(true)
	for e := range history {
		_, _ = s.Evolve(e)
	}
	s.SetQuiet(false)
	return s
}

// Evolve folds one event, the session's next in stream order, and returns its
// notices. Afterwards Open returns the open effects, and Withdrawals those that
// ended without a settlement. The caller must store all three before the event
// counts as stored. Progress returns what may be published in addition, and is not
// stored. The only error is a Rejection. Then only the head has changed: sequence,
// count, chain, clock and notice number. The caller owns the notices. The state may
// keep the payload while the session is active, so it must not be written to any
// more.
func (s *State) Evolve(e Event) ([]Notice, error) {
	if s.scratch == nil {
		s.scratch = newScratch()
	}
	s.withdrawn, s.progress = s.withdrawn[:0], nil
	s.advance(e)
	if s.Count == 1 {
		notify(s, NoticeSessionOpened, SessionOpened{Install: s.Install, Rules: int(s.Rules)})
	}
	typ, bad := s.apply(e)
	s.lastType = 0
	if i, known := typeIndexes[typ]; known {
		s.lastType = uint8(i + 1)
	}
	if bad != nil {
		notify(s, NoticeEventRejected, EventRejected{Seq: e.Seq, Type: typ, Code: bad.code, Detail: bad.detail})
		return s.takeNotices(), bad.code
	}
	return s.takeNotices(), nil
}

// LastType returns the type of the event that was folded last. It is empty
// after a load and for an event of unknown type.
func (s *State) LastType() string {
	if s.lastType == 0 {
		return ""
	}
	return eventTypes[s.lastType-1].name
}

// takeNotices returns the notices of the event being folded and keeps none, since
// they may hold a run's whole output. An idle session releases its scratch.
func (s *State) takeNotices() []Notice {
	notices := s.notices
	s.notices = nil
	if s.isIdle() {
		if len(s.progress) == 0 { // else Progress does
			s.releaseScratch()
		}
		s.clipItems()
	}
	return notices
}

// SetQuiet turns notices and progress off or on. While they are off, Evolve numbers
// notices but does not build them; nothing else differs. Replays use it to save
// time: building a notice copies text.
func (s *State) SetQuiet(on bool) {
	switch {
	case on && s.scratch == nil:
		s.scratch = newScratch()
	case !on && s.scratch == nil:
		return
	}
	s.quiet = on
	if !on && s.isIdle() {
		s.scratch = nil
	}
}

// newScratch returns the scratch data with which an active state begins.
func newScratch() *scratch { return &scratch{toolsMoved: true} }

func (s *State) isIdle() bool { return s.Run == nil && len(s.withdrawn) == 0 }

// releaseScratch drops what an idle session does not need.
func (s *State) releaseScratch() {
	if !s.quiet {
		s.scratch = nil
		return
	}
	*s.scratch = scratch{toolsMoved: true, quiet: true, withdrawn: s.withdrawn[:0]}
}

// advance moves the head over e: the changes that are made even when e is rejected.
func (s *State) advance(e Event) {
	s.Seq = e.Seq
	s.Count++
	s.Clock = max(s.Clock, e.Time)
	s.Leaf = LeafOf(e)
	var link [2 * len(s.Chain)]byte
	copy(link[:], s.Chain[:])
	copy(link[len(s.Chain):], s.Leaf[:])
	s.Chain = codec.Digest(link[:])
}

// hashRoom is the size up to which an event is hashed without a heap allocation.
// Most events are smaller.
const hashRoom = 1 << 10

// LeafOf returns the BLAKE2b-256 of one event alone: of its sequence and
// timestamp (eight bytes each, big-endian), the door, a zero byte and the
// payload. A snapshot names its last event by this hash.
func LeafOf(e Event) codec.Hash {
	var room [hashRoom]byte
	b := room[:0]
	b = binary.BigEndian.AppendUint64(b, e.Seq)
	b = binary.BigEndian.AppendUint64(b, uint64(e.Time))
	b = append(b, e.Door...)
	b = append(b, 0)
	b = append(b, e.Payload...)
	return codec.Digest(b)
}

// notify adds a notice about the event being folded, unless the state is quiet.
func notify[T any](s *State, typ string, data T) {
	s.NoticeN++
	if s.quiet {
		return
	}
	s.notices = append(s.notices, Notice{N: uint64(s.NoticeN), Type: typ, Seq: s.Seq, At: s.Clock, Session: s.Session, Data: data})
}

// apply decodes e and folds its body. It returns the event's type if it could be
// read, and the refusal if there is one.
func (s *State) apply(e Event) (string, *refusal) {
	env, bad := open(e)
	if bad != nil {
		return env.Type, bad
	}
	if env.ID != "" && s.seen(env.ID) {
		return env.Type, refuse(RejectDuplicateEvent, "the session took an event with this id before")
	}
	if bad := s.applyType(eventTypeOf(env.Type), e.Door, env); bad != nil {
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

func (s *State) applyType(of *eventType, door Door, env Envelope) *refusal {
	switch {
	case s.Closed && !of.afterClose:
		return sessionClosedRefusal()
	case !of.settles:
		return of.fold(s, door, env.Data)
	}
	b, bad := decodeSettlement(of, env)
	if bad != nil {
		return bad
	}
	return s.settle(b)
}

func sessionClosedRefusal() *refusal {
	return refuse(RejectSessionClosed, "the session was closed: open another one")
}

func (s *State) seen(id string) bool { return slices.Contains(s.IDs, id) }

func (s *State) remember(id string) {
	if len(s.IDs) == IDsMax {
		copy(s.IDs, s.IDs[1:])
		s.IDs = s.IDs[:IDsMax-1]
	}
	s.IDs = append(s.IDs, id)
}
