package engine

// Hard edges of time and of faults, in a world in memory: a server's clock that
// goes back, a host that was suspended for longer than names are kept, an event
// that no load survives.

import (
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
)

// at gives an event of the log another time of the server's.
func (s *stage) at(e session.Event, when time.Time) session.Event {
	s.mem.mu.Lock()
	defer s.mem.mu.Unlock()
	for i := range s.mem.log {
		if s.mem.log[i].Seq == e.Seq {
			s.mem.log[i].Time = when.UnixMilli()
			return s.mem.log[i]
		}
	}
	s.t.Fatalf("event %d is not in the log", e.Seq)
	return e
}

// calls ends a turn with a tool call.
func (s *stage) calls(sid, effect string) session.Event {
	return s.say(session.DoorLLM, sid, session.TypeToolCallsObserved, map[string]any{
		"effect": effect, "calls": []any{map[string]any{"tool_name": "open_session", "arguments": "{}"}},
	})
}

// A server whose clock goes back stamps later events with earlier times. The
// session's clock does not follow, so no deadline moves, and new effects may be
// started.
func TestEdgeServerClockGoesBack(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SnapshotEach: 1}, func(t *testing.T, s *stage) {
		s.begin()
		now := time.Now()
		first := s.run("s1")
		s.deliver(first)
		second := s.at(s.calls("s1", "r1t1"), now.Add(-time.Hour))
		s.deliver(second)
		s.wantAcked(first, second)
		s.wantStored(second)
		if got, want := s.actor.sessions["s1"].state.Clock, now.UnixMilli(); got != want {
			t.Errorf("clock: got %d, want %d, the greatest time seen", got, want)
		}
		if got, want := strings.Join(s.mem.asked("s1"), " "), "r1t1 r1t1c0 w1"; got != want {
			t.Errorf("asked: got %q, want %q", got, want)
		}
		// Another host reads the same history, and a snapshot of it.
		s.end()
		other := newStage(t, s.mem, Options{})
		other.begin()
		third := other.at(other.wrong("s1", 1)[0], now.Add(-2*time.Hour))
		other.deliverAcked(third)
		other.wantState(third)
		// The wake comes when it was due by the clock that the session has seen.
		other.pass(tenMinutes + time.Second)
		wakes := other.woken()
		if len(wakes) != 1 {
			t.Fatalf("woken %d times, want once", len(wakes))
		}
		wake := other.at(wakes[0], now.Add(-time.Hour))
		other.deliverAcked(wake)
		if v := other.actor.sessions["s1"].state; v.Clock < now.Add(tenMinutes).UnixMilli() {
			t.Errorf("after the wake the clock is %d: it stands still", v.Clock)
		}
		other.end()
	})
}

// A clock that jumps ahead and comes back delays deadlines by at most the jump: the
// session goes on, and its wakes follow the latest time that it has seen.
func TestEdgeServerClockJumpsAhead(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.begin()
		now := time.Now()
		first := s.at(s.run("s1"), now.Add(time.Hour))
		s.deliver(first)
		second := s.answer("s1", "r1t1", "a")
		third := s.run("s1")
		s.deliver(second, third)
		s.wantAcked(first, second, third)
		s.wantStored(third)
		if got, want := s.actor.sessions["s1"].state.Clock, now.Add(time.Hour).UnixMilli(); got != want {
			t.Errorf("clock: got %d, want %d", got, want)
		}
		s.pass(time.Hour + tenMinutes + time.Second)
		if got := len(s.woken()); got == 0 {
			t.Error("nobody woke the session")
		}
	})
}

// A host that was suspended for longer than names are kept finds them gone, and its
// lane redelivers events that another owner has processed. It publishes no effect
// that could still be started: only wakes, which do no harm.
func TestEdgeSuspendedPastTheNames(t *testing.T) {
	t.Parallel()
	for name, fresh := range map[string]bool{"in memory": false, "another host": true} {
		onStageOf(t, name, Options{}, func(t *testing.T, s *stage) {
			s.begin()
			first := s.run("s1")
			s.deliverAcked(first)
			// Meanwhile, elsewhere.
			rest := []session.Event{s.answer("s1", "r1t1", "a"), s.run("s1"), s.answer("s1", "r2t1", "b"), s.run("s1")}
			if fresh {
				s.end()
				s = newStage(t, s.mem, Options{})
			}
			s.mem.mu.Lock()
			clear(s.mem.effects) // max_age
			s.mem.mu.Unlock()
			if fresh {
				s.start()
			}
			<-time.After(2 * time.Hour)
			s.epoch()
			s.deliver(append([]session.Event{first}, rest...)...)
			s.pass(time.Minute)
			s.wantAcked(rest...)
			for _, name := range s.mem.asked("s1") {
				if !strings.HasPrefix(name, "w") {
					t.Errorf("%s was asked again after %v: its name was forgotten, it was settled, and it could start a second time", name, 2*time.Hour)
				}
			}
			s.wantNoStop("s1")
			// Nobody can start what is open; it is settled when the session's wake is.
			last := s.deliverRest(rest[len(rest)-1].Seq)
			s.pass(time.Minute)
			last = max(last, s.deliverRest(last))
			if v := s.mem.judge("s1", last).state.View(); v.Lifecycle != session.Failed {
				t.Errorf("the run that nobody could serve is %s, want it failed", v.Lifecycle)
			}
			if fresh {
				s.end()
			}
		})
	}
}

// An event on which the fold panics also stops its session in a load, where no
// delivery is at fault, and on each host that loads it. Other sessions are not
// affected.
func TestEdgePoisonInALoad(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		poison := s.wrong("s1", 1)[0]
		delivered, other := s.run("s1"), s.run("s2")
		s.host.evolve = func(state *session.State, e session.Event) ([]session.Notice, error) {
			if e.Seq == poison.Seq {
				panic("poison")
			}
			return state.Evolve(e)
		}
		s.begin(delivered, other) // the poison lies below the floor
		s.pass(time.Minute)
		s.wantAcked(delivered, other)
		s.wantStored(other)
		stop := s.stopOf("s1")
		if stop == nil || !strings.Contains(stop.Reason, "poison") {
			t.Fatalf("quarantine: got %+v, want one that tells the panic", stop)
		}
		if got := s.mem.asked("s1"); len(got) != 0 {
			t.Errorf("asked %v of a session that can't be folded", got)
		}
		s.wantView("s1", "poison")
		more := s.answer("s2", "r1t1", "a")
		s.deliverAcked(more)
		s.wantStored(more)
	})
}
