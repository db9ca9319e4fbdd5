package host

// Sessions that wait, and whose wakes have no name any more: of a former owner,
// and of this one when snapshots can't be stored.

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
)

// A host dies with a session in memory that waits for a model, and the names of
// its effects are forgotten before anybody schedules its wake.
func TestWhatAFormerOwnerHadInMemoryIsWoken(t *testing.T) {
	t.Parallel()
	for _, without := range []time.Duration{time.Second, 3 * time.Hour} {
		onStage(t, Options{}, func(t *testing.T, s *stage) {
			s.era()
			s.start()
			s.deliver(s.run("s1"))
			s = s.killed(without, Options{})
			s.forget("s1")
			s.pass(lookBackAfter + 2*lookBackEvery)
			s.wantWoken("without a name", "s1")
			if s.inMemory("s1") {
				t.Error("looked back upon, the session is in memory")
			}
			if err := s.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// One that has ended is looked at, and nothing is stored of it.
func TestLookingBackLeavesTheRestAlone(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.era()
		s.start()
		s.deliver(s.run("s1"))
		s.deliver(s.answer("s1", "r1t1", "hello"))
		s.deliver(s.say(session.DoorWake, "s1", session.TypeWakeSettled, map[string]any{"effect": "w1"}))
		before := len(s.mem.log)
		s = s.killed(time.Second, Options{})
		s.pass(lookBackAfter + 2*lookBackEvery)
		if got := len(s.mem.log); got != before {
			t.Errorf("events: got %d, want %d as before", got, before)
		}
		if got := s.mem.calls[call{op: "GetSnapshot", sid: "s1"}]; got == 0 {
			t.Error("the session was not looked at")
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}

// The bucket takes nothing, memory is short, and names are lost: the owner knows
// the wakes of who left.
func TestWhoLeftWithoutASnapshotIsWoken(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SessionsMax: 4}, func(t *testing.T, s *stage) {
		s.mem.plan = func(c call) outcome {
			if c.op == "PutSnapshot" {
				return fails
			}
			return works
		}
		s.era()
		s.start()
		first := s.run("s1")
		s.deliver(first)
		for n := range 20 {
			s.deliver(s.run(fmt.Sprintf("e%d", n)))
		}
		if s.inMemory("s1") {
			t.Fatal("the session is in memory")
		}
		s.forget("s1")
		s.pass(tenMinutes + wakeGrace + 2*time.Second)
		if !slices.ContainsFunc(s.mem.log, func(e session.Event) bool { return e.Session == "s1" && e.Door == session.DoorWake }) {
			t.Error("its wake is not settled")
		}
	})
}
