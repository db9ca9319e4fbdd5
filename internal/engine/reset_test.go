package engine

// What a new epoch, another owner and a log that lost its end mean for what is
// in memory.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
)

func TestANewEpochFoldsNothingTwice(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		first, second := s.run("s1"), s.answer("s1", "r1t1", "a")
		s.begin(first)
		s.epoch()
		s.deliverAcked(first, second)
		s.wantStored(second)
		if got := s.actor.sessions["s1"].state.Count; got != 2 {
			t.Errorf("%d events are folded, want 2", got)
		}
	})
}

func TestEventsOfAnotherOwnerAreFoldedWithoutOutputs(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		first := s.run("s1")
		s.begin(first)
		// Another owner did the next one; the lane's floor is behind it.
		s.answer("s1", "r1t1", "a")
		third := s.run("s1")
		s.mem.forgetCalls()
		s.epoch()
		s.deliverAcked(third)
		s.wantState(third)
		if n := s.mem.calls[call{op: "Notify", sid: "s1", who: "3"}]; n != 0 {
			t.Errorf("the other owner's notice was said %d times again", n)
		}
	})
}

// A host has a session in memory from before another host stopped it. It must not
// go on with the session when it owns the lane again.
func TestAQuarantineByAnotherOwnerHolds(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		first := s.run("s1")
		s.begin(first)
		second, third := s.answer("s1", "r1t1", "a"), s.run("s1")
		s.mem.stops["s1"] = []byte(`{"seq":3,"reason":"a test"}`)
		s.epoch()
		s.deliverAcked(third)
		numbers := s.mem.said("s1")
		if !slices.Equal(numbers, []uint64{1, 2}) {
			t.Errorf("notices: got %v, want those of the first event only; stopped at %d", numbers, second.Seq)
		}
	})
}

// The quarantine names the first event that is not done. Earlier events are folded
// and stored as usual, later ones are not.
func TestAQuarantineHoldsFromItsEventOn(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		first, second, third := s.run("s1"), s.answer("s1", "r1t1", "a"), s.run("s1")
		s.putStop("s1", Stop{Seq: third.Seq, Reason: "a test"})
		s.beginAcked(first, second, third)
		s.wantStored(second)
		if got, want := strings.Join(s.mem.asked("s1"), " "), "r1t1 w1"; got != want {
			t.Errorf("asked: got %q, want %q", got, want)
		}
	})
}

func TestAnEarlierQuarantineStands(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		first, second := s.wrong("s1", 1)[0], s.run("s1")
		s.mem.effects["s1 r1t1"] = []byte{0x80}
		// Another owner stops the session while this one is at it.
		s.mem.plan = func(c call) outcome {
			if c.op == "Ask" {
				s.mem.mu.Lock()
				s.mem.stops["s1"] = []byte(`{"seq":2,"reason":"a test"}`)
				s.mem.mu.Unlock()
			}
			return works
		}
		s.beginAcked(first, second)
		if stop := s.stopOf("s1"); stop.Seq != 2 {
			t.Errorf("quarantine: got one from %d, want the earlier one from 2", stop.Seq)
		}
	})
}

func TestAQuarantineOutlivesTheHost(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.mem.effects["s1 r1t1"] = []byte{0x80}
		first := s.run("s1")
		s.begin(first)
		s.end()
		other := newStage(t, s.mem, Options{})
		second := other.run("s1")
		other.beginAcked(second)
		other.end()
		if numbers := s.mem.said("s1"); !slices.Equal(numbers, []uint64{0}) {
			t.Errorf("notices: got %v, want one without a number", numbers)
		}
	})
}

// A read that ends with an error in its middle is repeated from its beginning.
func TestReleaseSkipsNothingAfterAReadThatFails(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.mem.effects["s1 r1t1"] = []byte{0x80}
		events := []session.Event{s.run("s1"), s.answer("s1", "r1t1", "a"), s.run("s1")}
		s.beginAcked(events...)
		s.pass(time.Minute)
		delete(s.mem.effects, "s1 r1t1") // the operator has removed the cause
		failed := false
		s.mem.planned(func(c call) outcome {
			if c.op == "ReadSession" && !failed && strings.HasPrefix(c.who, fmt.Sprintf("%d-", events[0].Seq)) {
				failed = true
				return failsLate // its events are read first
			}
			return works
		})
		s.mem.release("s1")
		s.pass(time.Minute)
		if !failed {
			t.Error("no read failed")
		}
		s.wantStored(events[2])
	})
}

// After a release a session goes on from the first event that is not done, although
// the lane no longer delivers it.
func TestReleaseResumesAtTheStop(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"same owner": false, "another owner": true} {
		onStageOf(t, name, Options{}, func(t *testing.T, s *stage) {
			s.mem.effects["s1 r1t1"] = []byte{0x80}
			events := []session.Event{s.run("s1"), s.answer("s1", "r1t1", "a"), s.run("s1")}
			s.beginAcked(events...)
			if restart {
				s.end()
				s = newStage(t, s.mem, Options{})
				s.begin()
			}
			s.pass(time.Minute)
			delete(s.mem.effects, "s1 r1t1") // the operator has removed the cause
			s.mem.release("s1")
			s.pass(time.Minute)
			s.wantStored(events[2])
			last := s.answer("s1", "r2t1", "b")
			s.deliverAcked(last)
			s.wantStored(last)
			s.end()
		})
	}
}

// A session that another owner quarantines again while it is resumed stays stopped.
func TestReleaseHeedsANewQuarantine(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.mem.effects["s1 r1t1"] = []byte{0x80}
		first := s.run("s1")
		s.beginAcked(first)
		s.pass(time.Minute)
		delete(s.mem.effects, "s1 r1t1")
		again := fmt.Appendf(nil, `{"seq":%d,"reason":"a test"}`, first.Seq)
		s.mem.planned(func(c call) outcome {
			if c.op == "ReadSession" {
				s.mem.mu.Lock()
				s.mem.stops["s1"] = again
				s.mem.mu.Unlock()
			}
			return works
		})
		s.mem.mu.Lock()
		delete(s.mem.stops, "s1")
		s.mem.mu.Unlock()
		s.pass(time.Minute)
		if got := s.mem.asked("s1"); len(got) > 0 {
			t.Errorf("it asked %q", got)
		}
		if stop := s.stopOf("s1"); stop == nil || stop.Reason != "a test" {
			t.Errorf("quarantine: got %+v, want the new one", stop)
		}
	})
}

// A release outlives the owner that would have noticed it: the next one stores what
// nobody has stored, although the lane no longer delivers these events.
func TestReleaseOutlivesItsOwner(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.mem.effects["s1 r1t1"] = []byte{0x80}
		first := s.run("s1")
		s.beginAcked(first)
		delete(s.mem.effects, "s1 r1t1") // the operator has removed the cause
		s.mem.release("s1")
		second := s.answer("s1", "r1t1", "a")
		s.deliverAcked(second) // the owner has not noticed the release
		s.end()
		other := newStage(t, s.mem, Options{})
		other.begin()
		other.pass(time.Minute)
		other.wantStored(second)
		other.wantNoStop("s1")
		other.end()
	})
}

// TestOwnerLooksBeforeItPassesAnEvent: a host that does not own the lane resumes a
// released session. An event that the owner gets after that is not acknowledged under the
// quarantine that the owner has read before.
func TestOwnerLooksBeforeItPassesAnEvent(t *testing.T) {
	t.Parallel()
	for _, released := range []bool{false, true} { // the other host is done, or has not begun
		onStage(t, Options{}, func(t *testing.T, s *stage) {
			s.host.recheck = time.Hour
			s.mem.effects["s1 r1t1"] = []byte{0x80}
			first := s.run("s1")
			s.beginAcked(first)
			s.deliverAcked(s.wrong("s1", 1)...) // the owner has read the quarantine
			delete(s.mem.effects, "s1 r1t1")
			s.mem.release("s1")
			if !released {
				other := newStage(t, s.mem, Options{})
				other.begin()
				other.pass(time.Minute)
				other.wantNoStop("s1")
				other.end()
			}
			second := s.answer("s1", "r1t1", "a")
			s.deliverAcked(second)
			s.wantStored(second)
			s.wantNoStop("s1")
		})
	}
}

// A session that is released before all events in front of its stop were delivered
// goes on with their delivery.
func TestReleaseBeforeTheStopIsDelivered(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		other := s.wrong("s2", 9)
		first, second, third := s.run("s1"), s.answer("s1", "r1t1", "a"), s.run("s1")
		s.putStop("s1", Stop{Seq: third.Seq, Reason: "a test"})
		s.begin()
		for i, e := range other {
			s.deliver(e)
			s.pass(recheckEvery)
			if i == len(other)/2 {
				s.mem.release("s1")
			}
		}
		s.deliver(first, second, third)
		s.pass(time.Minute)
		s.wantAcked(first, second, third)
		s.wantStored(third)
	})
}

// A lane that is never idle notices a release, too.
func TestBusyLaneNoticesARelease(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.mem.effects["s1 r1t1"] = []byte{0x80}
		first := s.run("s1")
		s.begin(first)
		delete(s.mem.effects, "s1 r1t1")
		s.mem.release("s1")
		for range 3 {
			s.deliver(s.wrong("s2", 1)...)
			s.pass(recheckEvery)
		}
		s.wantStored(first)
	})
}

// A view of a quarantined session shows the state up to the stop.
func TestViewOfAQuarantinedSessionEndsAtItsStop(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SnapshotEach: 1}, func(t *testing.T, s *stage) {
		first, second := s.run("s1"), s.answer("s1", "r1t1", "a")
		s.begin(first, second)
		view := func() (v session.View, err error) {
			data, err := s.host.View(t.Context(), "s1")
			if err == nil {
				err = json.Unmarshal(data, &v)
			}
			return v, err
		}
		if v, err := view(); err != nil || v.Seq != second.Seq {
			t.Errorf("view: got one at %d (%v), want %d", v.Seq, err, second.Seq)
		}
		s.mem.stops["s1"] = fmt.Appendf(nil, `{"seq":%d,"reason":"a test"}`, second.Seq)
		if v, err := view(); err != nil || v.Seq != first.Seq {
			t.Errorf("view of a session stopped at %d: got one at %d (%v), want %d", second.Seq, v.Seq, err, first.Seq)
		}
		s.mem.stops["s1"] = fmt.Appendf(nil, `{"seq":%d,"reason":"a test"}`, first.Seq)
		if v, err := view(); err != nil || v.Seq != 0 || v.Quarantined == nil || v.Quarantined.Reason != "a test" {
			t.Errorf("view of a session stopped at once: got %+v (%v), want the reason", v, err)
		}
		s.mem.stops = map[string][]byte{}
		s.host.evolve = func(*session.State, session.Event) ([]session.Notice, error) { panic("a fault") }
		s.mem.snapshots = map[string][]byte{}
		if _, err := view(); !isPanic(err) {
			t.Errorf("view with a fault in the fold: got %v", err)
		}
	})
}

// The fault that stopped a session may persist after its release.
func TestReleaseOfAStillFaultySessionStopsItAgain(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.mem.effects["s1 r1t1"] = []byte{0x80}
		first, second := s.run("s1"), s.wrong("s1", 1)[0]
		s.begin(first, second)
		s.mem.release("s1")
		s.pass(time.Minute)
		if stop := s.stopOf("s1"); stop == nil || stop.Seq != first.Seq {
			t.Errorf("quarantine: got %+v, want one from %d again", stop, first.Seq)
		}
		third := s.run("s1")
		s.deliver(third)
		s.wantAcked(first, second, third)
	})
}

// A power loss without sync loses the log's end, and other events reuse its
// sequences.
func TestALogThatLostItsEnd(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(s *stage) []session.Event{
		"another event at the folded mark": func(s *stage) []session.Event {
			return []session.Event{s.answer("s1", "r1t1", "other")}
		},
		"another session's event at the folded mark": func(s *stage) []session.Event {
			return []session.Event{s.run("s2"), s.answer("s1", "r1t1", "other")}
		},
	} {
		onStageOf(t, name, Options{}, func(t *testing.T, s *stage) {
			first, second := s.run("s1"), s.answer("s1", "r1t1", "lost")
			s.begin(first, second)
			s.mem.lose(second.Seq)
			s.pass(time.Second)
			events := play(s)
			s.epoch()
			s.deliverAcked(events...)
			last := events[len(events)-1]
			s.wantState(last)
		})
	}
}

func TestLostDeliveryBlocksNoOtherSession(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		lost := s.run("s1")
		s.epoch()
		s.deliver(lost)
		s.mem.lose(lost.Seq)
		s.start()
		s.pass(time.Minute)
		s.mem.lost = 100
		next := s.run("s2")
		s.epoch()
		s.deliver(next)
		s.pass(time.Minute)
		s.wantUnacked(lost)
		s.wantAcked(next)
		s.wantStored(next)
	})
}

func TestAReplicaThatIsBehindIsNotBelieved(t *testing.T) {
	t.Parallel()
	for lacks := range 3 { // of those before the delivered one, and that
		onStage(t, Options{}, func(t *testing.T, s *stage) {
			events := []session.Event{s.run("s1"), s.answer("s1", "r1t1", "a"), s.run("s1")}
			s.mem.lagging = events[2-lacks].Seq
			s.begin(events[2]) // the others are below the floor
			s.wantAcked(events[2])
			if got := s.actor.sessions["s1"].state.Count; got != 3 {
				t.Errorf("a replica lacks %d events before the delivered one: %d are folded, want 3", lacks, got)
			}
		})
	}
}

func TestASnapshotThatTheLogContradictsIsIgnored(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SnapshotEach: 1}, func(t *testing.T, s *stage) {
		first := s.run("s1")
		s.begin(first)
		s.end()
		s.mem.lose(first.Seq)
		s.mem.snapshots["s2"] = s.mem.snapshots["s1"] // nor is it another session's
		other := newStage(t, s.mem, Options{})
		s.mem.effects = map[string][]byte{}
		s.pass(time.Second)
		again, foreign := other.run("s1"), other.run("s2")
		other.beginAcked(again, foreign)
		other.wantStored(again)
		other.wantStored(foreign)
		s.mem.snapshots = map[string][]byte{}
		other.end()
	})
}

func TestASnapshotPastTheDeliveredEventIsUsedAsItIs(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SnapshotEach: 1}, func(t *testing.T, s *stage) {
		events := []session.Event{s.run("s1"), s.answer("s1", "r1t1", "a")}
		s.begin(events...)
		s.end()
		// Stored and snapshotted, and the owner died before its acks arrived.
		other := newStage(t, s.mem, Options{})
		s.mem.forgetCalls()
		next := other.run("s1")
		other.beginAcked(append(events, next)...)
		other.wantStored(next)
		for c, n := range s.mem.calls {
			if c.op == "Notify" && (c.who == "1" || c.who == "2" || c.who == "3") {
				t.Errorf("notice %s was said %d times again", c.who, n)
			}
		}
		other.end()
	})
}
