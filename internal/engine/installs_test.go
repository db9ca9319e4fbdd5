package engine

// Which install record a session pins: the newest before its first event that
// is none of a fault, else the oldest.

import (
	"errors"
	"fmt"
	"testing"

	"github.com/refold/refold/actors/session"
)

// record returns an install record that is told from others by its model.
func record(model string) []byte {
	return fmt.Appendf(nil, `{"v":1,"rules":1,"tools":[],"config":{"provider":"p","model":%q}}`, model)
}

const (
	faulty  = `{"v":1,"rules":1,"tools":[],"no_such_field":1}`
	unknown = `{"v":1,"rules":2,"tools":[]}`
)

// install publishes a record.
func (s *stage) install(payload []byte) session.Event {
	return s.mem.append(session.DoorInstall, "", payload)
}

// wantModel checks which record a session pinned.
func (s *stage) wantModel(sid, want string) {
	s.t.Helper()
	a := s.actor.sessions[sid]
	if a == nil || a.state == nil {
		s.t.Errorf("%s is not in memory, want it under the record of %q", sid, want)
		return
	}
	if got := a.state.InstallRecord().Record.Config; got == nil || got.Model != want {
		s.t.Errorf("%s pinned a record with %+v, want that of %q", sid, got, want)
	}
}

func TestASessionPinsTheNewestRecordBeforeIt(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.mem.lose(1)
		early := s.run("early") // before all records: it pins the oldest
		bad := s.install([]byte(faulty))
		a := s.install(record("a"))
		one := s.run("one")
		b, bad2, later := s.install(record("b")), s.install([]byte(faulty)), s.install([]byte(unknown))
		// Records in between change nothing for a session that has begun.
		more := s.run("one")
		c := s.install(record("c"))
		two := s.run("two")
		s.beginAcked(early, bad, a, one, b, bad2, later, more, c, two)
		s.wantModel("early", "a")
		s.wantModel("one", "a")
		s.wantModel("two", "c")
		if same := s.actor.sessions["early"].state.InstallRecord() == s.actor.sessions["one"].state.InstallRecord(); !same {
			t.Error("two sessions under one record hold two copies of it")
		}
	})
}

func TestASessionUnderUnknownRulesIsGivenBack(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		old := s.run("old")
		later := s.install([]byte(unknown))
		old2 := s.wrong("old", 1)[0]
		fresh := s.run("fresh")
		s.beginAcked(old, later, old2)
		s.deliver(fresh)
		s.wantUnacked(fresh)
		var rules *session.UnknownRulesError
		if err := s.stop(); !errors.As(err, &rules) {
			t.Errorf("run: got %v, want an error that tells the rules", err)
		}
	})
}

func TestWithoutARecordASessionWaits(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.mem.log[0].Payload = []byte(faulty)
		first := s.run("s1")
		s.begin(first)
		s.pass(retryMax)
		s.wantUnacked(first)
		s.install(record("a"))
		s.pass(2 * retryMax)
		s.wantAcked(first)
		s.wantModel("s1", "a")
	})
}
