package host

// What a lane acknowledges does not pass a wake that is overdue: who takes the
// lane then does not look back so far, and its name may be forgotten.

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
)

// settledAtAck delivers an event, and returns what of the log's wakes was settled
// when it was acknowledged; false: it is not.
func (s *stage) settledAtAck(e session.Event) func() (sids []string, acked bool) {
	var at []string
	acked := make(chan struct{})
	s.actor.arrivals <- arrival{event: e, ack: func() {
		for _, w := range s.woken() {
			at = append(at, w.Session)
		}
		close(acked)
	}}
	return func() ([]string, bool) {
		select {
		case <-acked:
			return at, true
		default:
			return nil, false
		}
	}
}

// wantSettledAtAck checks that an event is acknowledged, and which sessions were
// woken when it was.
func (s *stage) wantSettledAtAck(when string, at func() ([]string, bool), want ...string) {
	s.t.Helper()
	if got, acked := at(); !acked || !slices.Equal(got, want) {
		s.t.Errorf("%s: acknowledged: %v, woken then are %v, want %v", when, acked, got, want)
	}
}

// Nothing works for hours, and what came meanwhile is delivered at once.
func TestAWakeIsSettledBeforeItIsPassed(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		first := s.run("s1")
		s.era()
		s.deliver(first)
		s.pass(2 * time.Hour)
		at := s.settledAtAck(s.run("s2"))
		s.start()
		s.wantSettledAtAck("after two hours", at, "s1")
		s.wantAcked(first)
		s.pass(tenMinutes - wakesEvery)
		events := s.wantWoken("by its owner, once", "s1")
		s.deliver(events...)
		s.pass(time.Hour)
		s.wantWoken("when it is folded", "s1", "s2")
	})
}

// What is in memory since an earlier era is looked at in the log first.
func TestAnUnprovenWakeIsSettledBeforeItIsPassed(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.era()
		s.start()
		s.deliver(s.run("s1"), s.run("s2"))
		s.lane.unowned.Store(true)
		s.pass(tenMinutes - time.Minute)
		s.say(session.DoorWake, "s1", session.TypeWakeSettled, map[string]any{"effect": "w1"})
		s.pass(time.Hour)
		s.wantWoken("while another owns the lane", "s1")
		s.era()
		at := s.settledAtAck(s.run("s3"))
		s.settle()
		s.wantSettledAtAck("the lane is taken", at, "s1", "s2")
	})
}

// Who left memory is in no snapshot: its owner knows its wakes.
func TestAWakeOfWhoLeftIsSettledBeforeItIsPassed(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SessionsMax: 4}, func(t *testing.T, s *stage) {
		s.mem.plan = on(fails, func(c call) bool { return c.op == "PutSnapshot" })
		s.era()
		s.start()
		s.deliver(s.run("s1"))
		for n := range 20 {
			s.deliver(s.run(fmt.Sprintf("e%d", n)))
		}
		if s.inMemory("s1") {
			t.Fatal("the session is in memory")
		}
		s.lane.unowned.Store(true)
		s.pass(time.Hour)
		at := s.settledAtAck(s.run("s3"))
		s.settle()
		if got, acked := at(); !acked || !slices.Contains(got, "s1") {
			t.Errorf("acknowledged: %v, woken then are %v, want s1 among them", acked, got)
		}
	})
}

// A quarantined session stands still, and holds nothing up.
func TestAStoppedSessionHoldsNothingUp(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.mem.effects["s1 w1"] = []byte{0x80}
		s.era()
		s.deliver(s.run("s1"))
		s.pass(2 * time.Hour)
		at := s.settledAtAck(s.run("s2"))
		s.start()
		s.wantSettledAtAck("beside a quarantine", at)
		if s.stopOf("s1") == nil {
			t.Error("s1 is not quarantined")
		}
	})
}

// The log does not take the settlement for a moment: the lane waits. It takes it
// no more: the lane goes on.
func TestAWakeThatCantBeSettledIsPassed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		down      time.Duration
		want, end []string
	}{"for a moment": {wakeWithin / 2, []string{"s1"}, []string{"s1"}}, "for an hour": {time.Hour, nil, []string{"s1", "s2"}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStage(t, Options{}, func(t *testing.T, s *stage) {
				var up time.Time
				s.mem.plan = func(c call) outcome {
					if c.op == "Publish" && time.Now().Before(up) {
						return fails
					}
					return works
				}
				s.era()
				first := s.run("s1")
				s.deliver(first)
				s.pass(2 * time.Hour)
				second := s.run("s2")
				at := s.settledAtAck(second)
				up = time.Now().Add(c.down)
				s.start()
				s.pass(c.down/2 - time.Nanosecond)
				if c.down < wakeWithin {
					s.wantUnacked(first, second)
				}
				s.pass(wakeWithin)
				s.wantSettledAtAck("in the end", at, c.want...)
				s.pass(c.down + wakeAfterBad)
				s.wantWoken("when the log takes it", c.end...)
			})
		})
	}
}

// A timer bridge, or the owner beside the lane, has the time that it takes.
func TestAWakeIsNotHurried(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.era()
		s.start()
		s.deliver(s.run("s1"))
		s.lane.unowned.Store(true)
		s.pass(tenMinutes + floorGrace - time.Millisecond)
		at := s.settledAtAck(s.run("s2"))
		s.settle()
		s.wantSettledAtAck("within the grace", at)
		s.pass(time.Millisecond)
		at = s.settledAtAck(s.run("s3"))
		s.settle()
		s.wantSettledAtAck("after it", at, "s1")
	})
}

// One event that the log took by a wrong clock wakes nobody before the time.
func TestAnEventFromTomorrowPassesNothing(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.era()
		s.start()
		s.deliver(s.run("s1"))
		ahead := s.run("s2")
		ahead.Time += (24 * time.Hour).Milliseconds()
		at := s.settledAtAck(ahead)
		s.settle()
		s.wantSettledAtAck("a day ahead", at)
	})
}
