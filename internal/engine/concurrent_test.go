package engine

// What goes on at a time: several batches are stored, sessions are loaded while
// others are folded, and still an event is acknowledged only behind all before it,
// and a session says nothing before what it said earlier is stored.

import (
	"slices"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
)

// of returns a plan that lets the calls of one method for one session fail.
func of(become outcome, op, sid string) func(call) outcome {
	return on(become, func(c call) bool { return c.op == op && c.sid == sid })
}

// hold is an input that takes until it is closed.
type hold chan struct{}

func (h hold) step(*Lane) { <-h }

// together delivers events as one batch.
func (s *stage) together(events ...session.Event) {
	held := make(hold)
	s.actor.results.put(held)
	s.deliver(events...)
	close(held)
	s.settle()
}

func TestUnstoredBatchBlocksNoOtherSession(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.begin()
		s.mem.planned(of(fails, "Ask", "s1"))
		first := s.run("s1")
		s.deliver(first)
		other := s.run("s2")
		s.deliver(other)
		s.wantStored(other)
		s.wantUnacked(first, other) // s2's is behind s1's
		s.mem.planned(nil)
		s.pass(time.Minute)
		s.wantStored(first)
		s.wantAcked(first, other)
	})
}

// A session's outputs are stored after its earlier ones, even if these take longer
// than other sessions' outputs, and even if an event without outputs lies between.
func TestOutputsOfOneSessionAreStoredInOrder(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SnapshotEach: 1}, func(t *testing.T, s *stage) {
		s.begin()
		s.mem.planned(of(fails, "Notify", "s1"))
		first := s.run("s1")
		s.deliver(first)
		silent := s.say(session.DoorLLM, "s1", session.TypeGenerationSettled, map[string]any{
			"effect": "r1t1", "status": "ok", "text": map[string]any{"text": "a"},
		})
		s.deliver(silent)
		others := []session.Event{s.run("s2"), s.run("s3")}
		s.deliver(others...)
		next := s.run("s1")
		s.deliver(next)
		for _, e := range others {
			s.wantStored(e)
		}
		if n := s.mem.count(call{op: "Ask", sid: "s1", who: "r2t1"}); n != 0 {
			t.Errorf("r2t1 was asked %d times before what s1 said earlier was stored", n)
		}
		s.wantUnacked(first, silent, others[0], others[1], next)
		s.mem.planned(nil)
		s.pass(time.Minute)
		s.wantStored(next)
		s.wantAcked(first, silent, others[0], others[1], next)
		if got := s.mem.said("s1"); !slices.IsSorted(got) {
			t.Errorf("notices were stored in the order %v", got)
		}
	})
}

// After an output that can never be stored, no later output of the session is
// stored, even if its event is folded already. Other sessions go on concurrently.
func TestOutputsAfterAViolationAreNotStored(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.begin()
		s.mem.effects["s1 r1t1"] = []byte{0x80} // another asked for something else
		s.mem.planned(of(fails, "Ask", "s1"))   // and for a while nobody tells
		first := s.run("s1")
		s.deliver(first)
		behind := []session.Event{s.answer("s1", "r1t1", "a"), s.run("s1")}
		s.deliver(behind...)
		other := s.run("s2")
		s.deliver(other)
		s.mem.planned(nil)
		s.pass(time.Minute)
		if stop := s.stopOf("s1"); stop == nil || stop.Seq != first.Seq {
			t.Errorf("quarantine: got %+v, want one from %d", stop, first.Seq)
		}
		if n := s.mem.count(call{op: "Ask", sid: "s1", who: "r2t1"}); n != 0 {
			t.Errorf("r2t1 was asked %d times by a session that is stopped", n)
		}
		s.wantStored(other)
		s.wantAcked(first, behind[0], behind[1], other)
	})
}

func TestLoadBlocksNoOtherSession(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.run("old")
		old := s.answer("old", "r1t1", "a")
		s.begin()
		s.mem.planned(of(hangs, "GetSnapshot", "old"))
		events := []session.Event{s.run("old"), s.run("old"), s.run("new")}
		s.deliver(events...)
		s.wantCounts(map[string]uint64{"new": 1})
		s.wantStored(events[2])
		s.wantUnacked(events...)
		if a := s.actor.sessions["old"]; a != nil {
			t.Errorf("%d of old is folded before it is loaded", old.Seq)
		}
	})
}

// A session's outputs stay pending until all of them are stored, even if a later
// event without outputs is acknowledged.
func TestEventWithoutOutputsLeavesEarlierOutputsPending(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.begin()
		s.deliver(s.run("x"), s.run("s1"), s.answer("s1", "r1t1", "a"))
		failing := map[string]bool{"x": true, "s1": true}
		s.mem.planned(func(c call) outcome {
			s.mem.mu.Lock()
			defer s.mem.mu.Unlock()
			if (c.op == "Ask" || c.op == "Notify") && failing[c.sid] {
				return fails
			}
			return works
		})
		events := []session.Event{s.answer("x", "r1t1", "a"), s.answer("s1", "r1t1", "a")} // a repeat says nothing
		s.together(events...)
		s.deliver(s.run("s1"))
		s.mem.mu.Lock()
		failing["x"] = false
		s.mem.mu.Unlock()
		s.pass(time.Minute) // both of the batch before are stored
		s.wantAcked(events...)
		s.deliver(s.answer("s1", "r2t1", "b"))
		s.deliver(s.run("s1"))
		if n := s.mem.count(call{op: "Ask", sid: "s1", who: "r3t1"}); n != 0 {
			t.Errorf("r3t1 was asked %d times before r2t1 was", n)
		}
		s.mem.planned(nil)
		s.pass(time.Minute)
		if got := s.mem.said("s1"); !slices.IsSorted(got) {
			t.Errorf("notices were stored in the order %v", got)
		}
	})
}

// Events that wait for one load are folded in order after it. A new epoch begins
// after that.
func TestParkedEventsAreFoldedInOrder(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.run("old")
		s.answer("old", "r1t1", "a")
		s.begin()
		loaded := make(chan struct{})
		s.mem.planned(func(c call) outcome {
			if c.op == "GetSnapshot" && c.sid == "old" {
				<-loaded
			}
			return works
		})
		events := []session.Event{s.run("old"), s.answer("old", "r2t1", "b"), s.run("old")}
		s.deliver(events...)
		if s.actor.sessions["old"] != nil {
			t.Error("old is in memory before it is loaded")
		}
		epochs := s.mem.count(call{op: "Quarantined"}) // they are listed when an epoch begins
		s.epoch()
		s.settle()
		if n := s.mem.count(call{op: "Quarantined"}); n != epochs || epochs == 0 {
			t.Errorf("quarantined sessions were listed %d times, and before %d: an epoch has begun while events of the one before wait", n, epochs)
		}
		close(loaded)
		s.settle()
		if n := s.mem.count(call{op: "Quarantined"}); n != epochs+1 {
			t.Errorf("quarantined sessions were listed %d times, want %d: no epoch has begun", n, epochs+1)
		}
		s.wantCounts(map[string]uint64{"old": 5})
		s.wantAcked(events...)
		s.wantStoredBut("old", events...)
		if got := s.mem.said("old"); !slices.IsSorted(got) {
			t.Errorf("notices were stored in the order %v", got)
		}
	})
}
