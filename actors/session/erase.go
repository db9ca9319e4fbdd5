package session

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/codec"
)

// SessionHeld holds the session, or releases it. A held session can't be erased; nothing
// else differs.
//
//wire:example {"held": true, "reason": "case 4711"}
type SessionHeld struct {
	// Whether the session is held from now on.
	Held bool `msgpack:"held"`
	// For people: why. It stays in the log.
	Reason string `msgpack:"reason,omitempty" lim:"..DetailBytesMax"`
}

// SessionErased erases the session for good, also one that is closed: its runs are
// cancelled, open effects are withdrawn, and nothing is left of the state but its head. The
// log's messages are deleted later, by the eraser.
//
//wire:example {"reason": "the customer asked for it"}
type SessionErased struct {
	// For people. It is deleted with the session's other messages.
	Reason string `msgpack:"reason,omitempty" lim:"..DetailBytesMax"`
}

// SessionTombstone is the head of an erased session before this event. Session-actors
// publish it, so that the messages before it can be deleted: of a session whose first event
// it is, it sets the head.
//
//wire:example {"chain": "9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f", "clock": 1767225600000, "count": 41, "install": "3b3b3b3b3b3b3b3b3b3b3b3b3b3b3b3b3b3b3b3b3b3b3b3b3b3b3b3b3b3b3b3b", "leaf": "c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4", "notice_n": 60, "rules": 1, "seq": 97}
type SessionTombstone struct {
	// Chain over all events.
	Chain string `msgpack:"chain" lim:"@hash"`
	// Clock, Unix milliseconds.
	Clock int64 `msgpack:"clock" lim:"0..NumberMax"`
	// Number of events.
	Count uint64 `msgpack:"count" lim:"1..NumberMax"`
	// Hash of the pinned install record.
	Install string `msgpack:"install" lim:"@hash"`
	// Hash of the latest event, as in a snapshot.
	Leaf string `msgpack:"leaf" lim:"@hash"`
	// Number of notices.
	NoticeN uint64 `msgpack:"notice_n" lim:"0..NoticesMax"`
	// Version of the rules that the session followed.
	Rules int `msgpack:"rules" lim:"1..RulesVersion"`
	// Sequence of the latest event.
	Seq uint64 `msgpack:"seq" lim:"1..NumberMax"`
}

// Erasure says whether a session may be erased, or was.
type Erasure uint8

const (
	erasureAllowed Erasure = iota
	erasureHeld            // SessionErased is rejected
	erasureDone            // nothing is left but the head
)

// IsErased reports whether nothing is left of the session but its head.
func (s *State) IsErased() bool { return s.Erasure == erasureDone }

// IsHeld reports whether the session can't be erased.
func (s *State) IsHeld() bool { return s.Erasure == erasureHeld }

// Tombstone returns the tombstone of an erased session as of its latest event, and false
// if the session is not erased or that event is a tombstone.
func (s *State) Tombstone() (SessionTombstone, bool) {
	return s.tombstone(), s.IsErased() && s.LastType() != TypeSessionTombstone
}

func (s *State) tombstone() SessionTombstone {
	return SessionTombstone{
		Chain: s.Chain.String(), Clock: s.Clock, Count: s.Count, Install: s.Install.String(), Leaf: s.Leaf.String(),
		NoticeN: uint64(s.NoticeN), Rules: int(s.Rules), Seq: s.Seq,
	}
}

func (s *State) sessionHeld(b *SessionHeld) *refusal {
	s.Erasure = erasureAllowed
	if b.Held {
		s.Erasure = erasureHeld
	}
	return nil
}

// sessionErased ends every run as a close does, and forgets all but the head.
func (s *State) sessionErased(*SessionErased) *refusal {
	if s.Erasure == erasureHeld {
		return refuse(RejectSessionHeld, "the session is held: its last SessionHeld says why")
	}
	s.close(sentence.Say(sentence.SessionErased))
	for i := range s.Wakes {
		s.withdraw(Place{kind: kindWake, n: s.Wakes[i].Number})
	}
	s.forget()
	return nil
}

// forget drops all but the head.
func (s *State) forget() {
	s.Record = s.headAlone()
	s.registry, s.turnRegistry = s.install.Registry, s.install.Registry
	s.rules, s.text, s.ended, s.progress = runRules{}, nil, nil, nil
}

func (s *State) headAlone() Record {
	return Record{
		Shown: Shown{Clock: s.Clock, Count: s.Count, Seq: s.Seq, Session: s.Session},
		Chain: s.Chain, Install: s.Install, Leaf: s.Leaf, NoticeN: s.NoticeN, Rules: s.Rules,
		Closed: true, Erasure: erasureDone,
	}
}

// erasureInvariant checks that of an erased session nothing is left but the head.
func (s *State) erasureInvariant() error {
	switch left := s.headAlone(); {
	case s.Erasure > erasureDone:
		return fmt.Errorf("its erasure is %d", s.Erasure)
	case s.IsErased() && !bytes.Equal(encode(&left), s.Bytes()):
		return errors.New("it is erased, and its state is not empty")
	}
	return nil
}

// beforeTombstone keeps the head that e, if it is a tombstone, is compared with. A session
// without events takes the head of a tombstone: all before it was deleted.
func (s *State) beforeTombstone(e Event) {
	if !s.IsErased() {
		b, ok := tombstoneOf(e)
		if !ok {
			return
		}
		s.Clock, s.Count, s.NoticeN, s.Rules, s.Seq = b.Clock, b.Count, uint32(b.NoticeN), uint8(b.Rules), b.Seq
		s.Chain, s.Install, s.Leaf = hashOf(b.Chain), hashOf(b.Install), hashOf(b.Leaf)
		s.forget()
	}
	head := s.tombstone()
	s.head = &head
}

// tombstoneOf returns the body of a tombstone that can be a session's first event.
func tombstoneOf(e Event) (b SessionTombstone, ok bool) {
	env, bad := open(e)
	if bad != nil || env.Type != TypeSessionTombstone || decodeBody(env.Data, &b) != nil {
		return SessionTombstone{}, false
	}
	return b, b.Seq < e.Seq
}

// hashOf returns a hash whose form was checked.
func hashOf(text string) codec.Hash {
	h, _ := codec.ParseHash(text)
	return h
}

// sessionTombstone changes nothing: the messages before it may be deleted.
func (s *State) sessionTombstone(b *SessionTombstone) *refusal {
	switch {
	case s.head == nil:
		return refuse(RejectIllegalTransition, "the session is not erased")
	case *b != *s.head:
		return refuse(RejectStale, "the head before this event is another")
	}
	return nil
}

// typeOfErased returns a type for the notice of a rejected event: text that was published
// after the erasure is not repeated.
func typeOfErased(typ string) string {
	if eventTypeOf(typ) == nil {
		return ""
	}
	return typ
}

func erasedRefusal() *refusal {
	return refuse(RejectSessionErased, "the session was erased: open another one, under another name")
}
