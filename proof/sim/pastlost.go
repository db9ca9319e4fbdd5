package sim

// A power loss that takes an event and its effects, and leaves a claim: the next
// effect of this name finds the claim of another one.

import (
	"slices"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/proof/jetmodel"
	"github.com/refold/refold/subjects"
)

// pastLost removes an event that opened a claimed effect, and all that was stored
// since, from the log and from the effects. The claims stay: bridges that got no
// answer send them again. The event's publisher does the same, so another effect
// gets the name. Then the run may be cancelled before a bridge starts the effect.
func (s *sim) pastLost() {
	event, found := s.claimedEvent()
	for tries := 0; !found && tries < 60; tries++ {
		s.happens(s.usual())
		event, found = s.claimedEvent()
	}
	if !found {
		return
	}
	s.did("past lost")
	s.cutBridges(true)
	s.losePast(event.Seq)
	s.passes(100 * time.Millisecond)
	if _, err := s.append(event.Door, event.Session, "", event.Payload); err != nil {
		panic(err)
	}
	s.settleDown()
	if run := s.judge.of(event.Session).state.Run; run != nil && s.draw(2) == 1 {
		s.publish(session.DoorIn, event.Session, session.TypeRunCancelRequested, `{}`)
		s.settleDown()
	}
	s.cutBridges(false)
}

// settleDown has hosts work for a while.
func (s *sim) settleDown() {
	for range 12 {
		s.work()
		s.passes(500 * time.Millisecond)
	}
}

// claimedEvent draws one of the events that opened a claimed effect, which is open.
func (s *sim) claimedEvent() (e session.Event, found bool) {
	var all []session.Event
	for _, sid := range sortedKeys(s.judge.sessions) {
		one := s.judge.sessions[sid]
		for _, effect := range one.state.Open() {
			if !effect.Claimed {
				continue
			}
			of := subjects.EffectName{Class: effect.Class, Target: effect.Target, Session: sid, Effect: effect.Name}
			subject, err := s.names.Claim(subjects.ClaimName{EffectName: of, N: 1})
			if err != nil {
				panic(err)
			}
			if _, err := s.fx.Last(subject, 0); err != nil || one.lost {
				continue
			}
			i := slices.IndexFunc(one.owed, func(d dues) bool {
				return slices.ContainsFunc(d.effects, func(e session.Effect) bool { return e.Name == effect.Name })
			})
			all = append(all, one.events[i])
		}
	}
	if len(all) == 0 {
		return e, false
	}
	return all[s.draw(len(all))], true
}

// losePast removes the events from a sequence on, and the effects from the first
// one on that they opened, except for claims.
func (s *sim) losePast(from uint64) {
	lost := s.fx.LastSeq() + 1
	for _, sid := range sortedKeys(s.judge.sessions) {
		for _, d := range s.judge.sessions[sid].owed {
			for _, effect := range d.effects {
				subject, _ := s.outputOf(&journal.Output{Session: sid, Effect: &effect})
				if m, err := s.fx.Last(subject, 0); err == nil && d.seq >= from {
					lost = min(lost, m.Seq)
				}
			}
		}
	}
	s.say("the log loses %d to %d, and the effects %d to %d except for claims", from, s.log.LastSeq(), lost, s.fx.LastSeq())
	gone := s.fx.All(">", lost, 0)
	s.fx.Lose(lost)
	for _, m := range gone {
		if _, err := s.names.ParseEffect(m.Subject); err == nil {
			continue // an effect
		}
		if _, err := s.fx.Publish(jetmodel.Put{Subject: m.Subject, Data: m.Data, Fenced: true}); err != nil {
			panic(err)
		}
	}
	s.log.Lose(from)
	s.judge.lose(from)
	s.flush()
	s.reconnect()
}
