package e2e_test

// Deadlines. A model's bridge takes a turn and never answers; the run ends by
// the turn's deadline all the same, whoever is killed between the wake's schedule
// and its due. The wake is settled once or more, never before its due, and the
// log folds again to the same bytes.

import (
	"context"
	"encoding/json"
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

// A bridge with the rights of the role timers keeps time; one with those of
// another role does what it may, and says what it doesn't.
func TestDeadlineRights(t *testing.T) {
	t.Parallel()
	guarded := startGuarded(t)
	s := &timed{system: guarded.start(nil), stored: make(chan string, 64)}
	s.at("warm-up", s.say(session.DoorCtl, "warm-up", session.TypeFactsSet, object{"facts": object{}}))
	s.listen()
	models := startDaemon(t, "bridge", guarded.as("models", "--model", "openai=scripted:echo", "--no-provision")...)
	until(t, time.Minute, "the models' bridge says that it keeps no time", func() bool { return strings.Contains(models.out.String(), "keeps_no_time") })
	s.run(session.DoorCtl, "answered", "hi", object{"provider": "openai", "model": "m"})
	s.wantEnd("answered", 1, session.Completed, "")

	refused, stderr, status := run(t, time.Minute, nil, "bridge", guarded.as("models", "--timers", "--no-provision")...)
	if status != 1 || !strings.Contains(stderr, "does not allow this user") {
		t.Errorf("timers without the right: status %d\n%s%s", status, refused, stderr)
	}
	startDaemon(t, "bridge", guarded.daemon("timers")...)
	s.mine = append(s.mine, "answered") // its wake is scheduled now
	if !s.scheduled("answered") {
		t.Error("a wake of ten minutes is not scheduled")
	}
	sid, _ := s.ask(time.Second)
	s.wantEnd(sid, 1, session.Failed, "deadline_exceeded")
}

// timed is a system with a bridge that only keeps time. The test plays the
// model's: it takes turns, and is never heard again.
type timed struct {
	*system
	timers *daemon
	stored chan string // subjects of schedules, as they are stored
	mine   []string    // sessions whose wakes may be scheduled
}

func startTimed(t *testing.T, server string) *timed {
	t.Helper()
	s := &timed{system: startSystemOn(t, server, []string{"--nats", server}, nil), stored: make(chan string, 64)}
	s.at("warm-up", s.say(session.DoorCtl, "warm-up", session.TypeFactsSet, object{"facts": object{}}))
	s.listen()
	s.timers = startDaemon(t, "bridge", "--nats", s.url, "--timers")
	return s
}

// listen begins to hear of schedules.
func (s *timed) listen() {
	s.t.Helper()
	_, err := s.nc.Subscribe("refold.timer.*.*", func(m *nats.Msg) { s.stored <- m.Subject })
	if err == nil {
		err = s.nc.Flush()
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// ask asks for a run whose turns have a deadline, takes the first, and waits
// until the wake that ends it is scheduled. A wake that is due before anybody
// can schedule it is settled at once: on a machine that is as slow as that it
// asks again, for longer. It returns the session and its wake.
func (s *timed) ask(deadline time.Duration) (sid string, wake session.Wake) {
	s.t.Helper()
	for ; ; deadline *= 2 {
		sid = fmt.Sprint("late", len(s.mine))
		s.mine = append(s.mine, sid)
		claim, err := s.names.Claim(subjects.ClaimName{EffectName: subjects.EffectName{Class: session.ClassLLM, Target: "silent", Session: sid, Effect: "r1t1"}, N: 1})
		if err != nil {
			s.t.Fatal(err)
		}
		publish(s.t, s.nc, claim, []byte(`{"by":"01J0000000000000000000GONE"}`))
		s.run(session.DoorCtl, sid, "hello?", object{
			"provider": "silent", "model": "m", "deadlines_ms": object{"turn": deadline.Milliseconds()},
		})
		if s.scheduled(sid) {
			return sid, s.wake(sid)
		}
		s.t.Logf("%v were over before a wake was scheduled", deadline)
	}
}

// scheduled waits until the first wake of a session is scheduled; false: its run
// has ended before. Other sessions' wakes may be scheduled again meanwhile.
func (s *timed) scheduled(sid string) (is bool) {
	s.t.Helper()
	until(s.t, endWithin, "the wake of "+sid+" is scheduled", func() bool {
		for len(s.stored) > 0 {
			got := <-s.stored
			if is = got == "refold.timer."+sid+".w1"; is {
				return true
			}
			if !slices.ContainsFunc(s.mine, func(mine string) bool { return got == "refold.timer."+mine+".w1" }) {
				s.t.Fatalf("stored %s, want w1 of one of %v", got, s.mine)
			}
		}
		var v session.View
		answer, err := s.nc.Request("refold.view."+sid, nil, time.Second)
		return err == nil && json.Unmarshal(answer.Data, &v) == nil && v.Last != nil && v.Last.Code == "deadline_exceeded" && len(s.stored) == 0
	})
	return is
}

// wake returns the one wake that a session has asked for.
func (s *timed) wake(sid string) (wake session.Wake) {
	s.t.Helper()
	wakes := s.asked(session.ClassWake, sid)
	if len(wakes) != 1 {
		s.t.Fatalf("%d wakes were asked, want 1", len(wakes))
	}
	if err := codec.Unmarshal(wakes[0].payload, &wake); err != nil {
		s.t.Fatal(err)
	}
	return wake
}

// kept returns the subjects that REFOLD_TIMERS holds messages of.
func (s *timed) kept() (all []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	stream, err := s.js.Stream(ctx, s.names.TimersStream())
	if err != nil {
		return []string{err.Error()}
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return []string{err.Error()}
	}
	for subject := range info.State.Subjects {
		all = append(all, subject)
	}
	return all
}

// check waits for the end of the run, and holds the log against the wake.
func (s *timed) check(sid string) {
	s.t.Helper()
	s.wantEnd(sid, 1, session.Failed, "deadline_exceeded")
	wake := s.wake(sid)
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
	until(s.t, time.Minute, "nothing is kept of it", func() bool { return len(s.kept()) == 0 })
	verifyAll(s.t, s.url)
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	s := startTimed(t, startNATS(t))
	sid, _ := s.ask(time.Second)
	s.check(sid)
}

func TestDeadlineKilled(t *testing.T) {
	t.Parallel()
	for _, victim := range []string{"session-actor", "timers", "nats"} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			srv := startNATSProcess(t)
			s := startTimed(t, srv.url)
			kill, start := s.actor.kill, s.actor.start
			switch victim {
			case "timers":
				kill, start = s.timers.kill, s.timers.start
			case "nats":
				kill, start = srv.kill, srv.start
			}
			// Who is killed is dead by the due: else it is tried again, for longer.
			var sid string
			var wake session.Wake
			for deadline, early := 5*time.Second, false; !early; deadline *= 2 {
				sid, wake = s.ask(deadline)
				kill()
				if early = time.Now().Before(time.UnixMilli(wake.Due)); !early {
					start()
				}
			}
			if victim == "timers" {
				until(t, endWithin, "the wake is due, and nobody there", func() bool { return slices.Contains(s.kept(), "refold.due."+sid+".w1") })
			}
			start()
			s.check(sid)
		})
	}
}
