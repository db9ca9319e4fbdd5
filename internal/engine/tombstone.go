package engine

import (
	"context"
	"errors"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/journal"
)

// tombstoneWithin is how long storing a tombstone may take.
const tombstoneWithin = 5 * time.Second

// tombstone is the tombstone of an erased session on its way to the log. The owner stores
// one after each SessionErased, also after one that is rejected because the session is
// erased already: that is how the eraser asks for another one, when this one was not
// stored or text was published after it. It is stored only right after the event that it
// names, or deletes would lose what lies between.
type tombstone struct {
	outside
	actor   *actor
	seq     uint64 // of that event
	payload []byte
	err     error // why it is not stored
}

// owesTombstone notes whether a session's latest event asks for a tombstone, or is one.
func (s *actor) owesTombstone() {
	switch {
	case !s.state.IsErased():
	case s.state.LastType() == session.TypeSessionErased:
		s.owes = true
	case s.state.LastType() == session.TypeSessionTombstone:
		s.owes = false
	}
}

// putTombstone begins to store the tombstone of a session that owes one, once all outputs
// of its events are stored.
func (l *Lane) putTombstone(s *actor) {
	if s == nil || !s.owes || !s.settled() {
		return
	}
	body, due := s.state.Tombstone()
	if !due {
		return
	}
	payload, err := session.Envelope{At: l.now.UnixMilli(), By: l.host.instance, Type: session.TypeSessionTombstone}.With(body)
	if err != nil {
		panic("engine: a tombstone does not encode: " + err.Error())
	}
	s.owes = false
	l.do(&tombstone{outside: l.outside, actor: s, seq: body.Seq, payload: payload})
}

func (t *tombstone) String() string { return "stores the tombstone of " + t.actor.sid }

func (t *tombstone) Do(ctx context.Context, report func(Input)) {
	ctx, cancel := context.WithTimeout(ctx, tombstoneWithin)
	defer cancel()
	_, t.err = t.host.world.PublishAfter(ctx, session.DoorWake, t.actor.sid, t.payload, t.seq)
	report(t)
}

// step notes that a tombstone which was not stored is owed: the session's next event asks
// for it again.
func (t *tombstone) step(l *Lane) {
	switch {
	case t.err == nil:
		return
	case !errors.Is(t.err, journal.ErrOvertaken):
		l.log.Warn("tombstone not stored", "session", t.actor.sid, "error", t.err)
	}
	t.actor.owes = true
}
