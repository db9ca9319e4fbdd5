package host

// Wakes of sessions in memory that no timer bridge settles: the owner does,
// once, when it is sure that nobody has.

import (
	"slices"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
)

// woken returns the events that hosts have said.
func (s *stage) woken() (events []session.Event) {
	s.mem.mu.Lock()
	defer s.mem.mu.Unlock()
	for _, e := range s.mem.log {
		if e.Door == session.DoorWake {
			events = append(events, e)
		}
	}
	return events
}

// wantWoken checks which sessions were woken, in order, and returns the events.
func (s *stage) wantWoken(when string, sids ...string) []session.Event {
	s.t.Helper()
	events, got := s.woken(), []string(nil)
	for _, e := range events {
		got = append(got, e.Session)
	}
	slices.Sort(got)
	if !slices.Equal(got, sids) {
		s.t.Errorf("%s: woken are %v, want %v", when, got, sids)
	}
	return events
}

// deliverRest delivers what the log has behind an event.
func (s *stage) deliverRest(after uint64) (last uint64) {
	s.mem.mu.Lock()
	all := slices.Clone(s.mem.log)
	s.mem.mu.Unlock()
	for _, e := range all {
		if e.Seq > after {
			s.deliver(e)
		}
		last = e.Seq
	}
	return last
}

// tenMinutes is how long an effect is open by default.
const tenMinutes = session.DeadlineDefaultMS * time.Millisecond

func TestAnOverdueWakeIsSettledOnce(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		first := s.run("s1")
		s.era()
		s.deliver(first)
		s.start()
		s.pass(tenMinutes + wakeGrace - wakesEvery)
		s.wantWoken("within the grace")
		s.pass(2 * wakesEvery)
		s.wantWoken("after it", "s1")
		s.pass(time.Hour)
		s.era()
		s.pass(time.Hour)
		events := s.wantWoken("two hours and an era later", "s1")
		s.deliver(events...)
		s.wantAcked(events...)
		if state := s.actor.sessions["s1"].state; state.Run != nil || len(state.Wakes) > 0 {
			t.Errorf("a run is active, or one of %d wakes is open: want the run failed", len(state.Wakes))
		}
	})
}

// In another era nothing is believed, the settlement included.
func TestASettlementThatIsLostIsSaidAgain(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.era()
		s.deliver(s.run("s1"))
		s.start()
		s.pass(tenMinutes + time.Minute)
		events := s.wantWoken("overdue", "s1")
		s.mem.lose(events[0].Seq)
		s.pass(time.Minute)
		s.wantWoken("lost")
		s.era()
		s.pass(time.Minute)
		s.wantWoken("in another era", "s1")
	})
}

// A former owner knows nothing of what is settled.
func TestOnlyTheOwnerSettlesWakes(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.era()
		s.deliver(s.run("s1"))
		s.start()
		s.lane.unowned.Store(true)
		s.pass(tenMinutes + time.Minute)
		s.wantWoken("while the lane is not ours")
		s.lane.unowned.Store(false)
		s.pass(2 * wakesEvery)
		s.wantWoken("when it is", "s1")
	})
}

// What is in memory since an earlier era may be behind: the log is asked.
func TestAnUnprovenWakeIsLookedAtFirst(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.era()
		s.deliver(s.run("s1"), s.run("s2"))
		s.start()
		s.era()
		s.pass(tenMinutes - time.Minute)
		s.say(session.DoorWake, "s1", session.TypeWakeSettled, map[string]any{"effect": "w1"})
		s.pass(time.Hour)
		s.wantWoken("s1 was woken by another owner", "s1", "s2")
	})
}

// A lane that is behind may have the settlement still to come.
func TestALaneThatIsBehindWaits(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		first := s.run("s1")
		s.era()
		s.actor.arrivals <- arrival{event: first, ack: func() {}, behind: true}
		s.start()
		s.pass(tenMinutes + time.Minute)
		s.wantWoken("behind")
		settled := s.say(session.DoorWake, "s1", session.TypeWakeSettled, map[string]any{"effect": "w1"})
		other := s.run("s2")
		s.pass(time.Hour)
		s.deliver(settled, other)
		s.pass(time.Minute)
		s.wantWoken("not behind any more", "s1", "s2")
	})
}

func TestAWakeThatIsNotSettledIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, become := range map[string]outcome{"fails": fails, "hangs": hangs} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStage(t, Options{}, func(t *testing.T, s *stage) {
				down := true
				s.mem.plan = func(c call) outcome {
					s.mem.mu.Lock()
					defer s.mem.mu.Unlock()
					if down && c.op == "Publish" {
						return become
					}
					return works
				}
				s.era()
				s.deliver(s.run("s1"))
				s.start()
				s.pass(tenMinutes + time.Hour)
				s.mem.mu.Lock()
				tries := s.mem.calls[call{op: "Publish", sid: "s1", who: "wake"}]
				s.mem.mu.Unlock()
				last, next := s.run("s2"), s.run("s3")
				s.deliver(last)
				s.pass(wakeWithin + retryMax) // the lane goes on
				s.wantAcked(last)
				s.deliver(next)
				s.wantAcked(next)
				s.mem.mu.Lock()
				down = false
				s.mem.mu.Unlock()
				if most := int(time.Hour / wakeAfterBad); tries < 2 || tries > most {
					t.Errorf("%d tries in an hour, want at most %d", tries, most)
				}
				s.pass(time.Minute)
				s.wantWoken("at last", "s1")
			})
		})
	}
}

// Many wakes at once are settled a few at a time, and none twice.
func TestManyWakesAtOnce(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		const sessions = 5 * wakesAtOnce
		s.era()
		s.start()
		for i := range sessions {
			s.deliver(s.run("s" + string(rune('a'+i%26)) + string(rune('a'+i/26))))
		}
		s.pass(tenMinutes + wakeGrace + time.Minute)
		woken := map[string]int{}
		for _, e := range s.woken() {
			woken[e.Session]++
		}
		for sid, n := range woken {
			if n != 1 {
				t.Errorf("%s was woken %d times", sid, n)
			}
		}
		if len(woken) != sessions {
			t.Errorf("%d sessions are woken, want %d", len(woken), sessions)
		}
	})
}
