package e2e_test

// Deadlines. A model's bridge takes a turn and never answers; the run ends by
// the turn's deadline all the same, whichever process is killed between the
// wake's schedule and its due time, and even if the schedule is lost. The wake
// is settled once or more, never early, and the log folds again to the same
// bytes.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/subjects"
)

// TestDeadlineRights: a session-actor with the rights of its role keeps the
// deadlines of its sessions, without a bridge.
func TestDeadlineRights(t *testing.T) {
	t.Parallel()
	s := listenTimed(t, startGuarded(t).start(nil))
	sid, _ := s.ask(time.Second)
	s.wantEnd(sid, 1, session.Failed, "deadline_exceeded")
	until(t, time.Minute, "nothing is kept of it", func() bool { return len(s.schedules("*")) == 0 })
}

// timed is a system without a bridge. The test plays the model's: it takes
// turns, and is never heard again.
type timed struct {
	*system
	stored chan *nats.Msg // schedules, as they are stored
	asks   int
}

func startTimed(t *testing.T, server string) *timed {
	t.Helper()
	return listenTimed(t, startSystemOn(t, server, []string{"--nats", server}, nil))
}

// listenTimed begins to hear of schedules.
func listenTimed(t *testing.T, of *system) *timed {
	t.Helper()
	s := &timed{system: of, stored: make(chan *nats.Msg, 64)}
	s.at("warm-up", s.say(session.DoorCtl, "warm-up", session.TypeFactsSet, object{"facts": object{}}))
	_, err := s.nc.Subscribe("refold.timer.*.w1.*", func(m *nats.Msg) { s.stored <- m })
	if err == nil {
		err = s.nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ask asks for a run whose turns have a deadline, takes the first, and waits
// until the wake that ends it is scheduled. It returns the session and its
// wake.
func (s *timed) ask(deadline time.Duration) (sid string, wake session.Wake) {
	s.t.Helper()
	s.asks++
	sid = fmt.Sprint("late", s.asks)
	claim, err := s.names.Claim(subjects.ClaimName{EffectName: subjects.EffectName{Class: session.ClassLLM, Target: "silent", Session: sid, Effect: "r1t1"}, N: 1})
	if err != nil {
		s.t.Fatal(err)
	}
	publish(s.t, s.nc, claim, []byte(`{"by":"01J0000000000000000000GONE"}`))
	s.run(session.DoorCtl, sid, "hello?", object{
		"provider": "silent", "model": "m", "deadlines_ms": object{"turn": deadline.Milliseconds()},
	})
	until(s.t, endWithin, "the wake of "+sid+" is scheduled", func() bool {
		for len(s.stored) > 0 {
			if m := <-s.stored; strings.HasPrefix(m.Subject, "refold.timer."+sid+".w1.") {
				err = codec.Unmarshal(m.Data, &wake)
				return true
			}
		}
		return false
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return sid, wake
}

// check waits for the end of the run, and holds the log against the wake.
func (s *timed) check(sid string, wake session.Wake) {
	s.t.Helper()
	s.wantEnd(sid, 1, session.Failed, "deadline_exceeded")
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	stream, err := s.js.Stream(ctx, s.names.LogStream())
	if err != nil {
		s.t.Fatal(err)
	}
	subject, err := s.names.Stored(session.DoorWake, sid)
	if err != nil {
		s.t.Fatal(err)
	}
	first, err := stream.GetMsg(ctx, 1, jetstream.WithGetMsgSubject(subject))
	if err != nil {
		s.t.Fatalf("the wake's settlement: %v", err)
	}
	late := first.Time.Sub(time.UnixMilli(wake.Due))
	if late < 0 {
		s.t.Errorf("the wake was settled %v early", -late)
	}
	s.t.Logf("%s: its wake was settled %v after its due", sid, late)
	until(s.t, time.Minute, "nothing is kept of it", func() bool { return len(s.schedules("*")) == 0 })
	verifyAll(s.t, s.url)
}

func TestDeadlineKilled(t *testing.T) {
	t.Parallel()
	for _, victim := range []string{"session-actor", "nats"} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			srv := startNATSProcess(t)
			s := startTimed(t, srv.url)
			kill, start := s.actor.kill, s.actor.start
			if victim == "nats" {
				kill, start = srv.kill, srv.start
			}
			// The victim is dead by the due: else it is tried again, for longer.
			var sid string
			var wake session.Wake
			for deadline, early := 5*time.Second, false; !early; deadline *= 2 {
				sid, wake = s.ask(deadline)
				kill()
				if early = time.Now().Before(time.UnixMilli(wake.Due)); !early {
					start()
				}
			}
			if victim == "session-actor" {
				until(t, endWithin, "the wake is due, and nobody there", func() bool { return slices.Contains(s.schedules(sid), "refold.due."+sid+".w1") })
			}
			start()
			s.check(sid, wake)
		})
	}
}

// TestDeadlineRestored: the stream of schedules is lost. A session-actor that
// starts creates it again, and `refold timers restore` schedules the open
// wakes.
func TestDeadlineRestored(t *testing.T) {
	t.Parallel()
	s := startTimed(t, startNATS(t))
	sid, wake := s.ask(5 * time.Second)
	s.actor.kill()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.js.DeleteStream(ctx, s.names.TimersStream()); err != nil {
		t.Fatal(err)
	}
	s.actor.start()
	s.at("warm-up", s.say(session.DoorCtl, "warm-up", session.TypeFactsSet, object{"facts": object{}}))
	out, stderr, status := run(t, time.Minute, nil, "refold", "--nats", s.url, "timers", "restore")
	if status != 0 || !strings.HasPrefix(out, "1 wakes scheduled") {
		t.Fatalf("restore: status %d\n%s%s", status, out, stderr)
	}
	s.check(sid, wake)
}
