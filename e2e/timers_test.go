package e2e_test

// Deadlines. A model's bridge takes a turn and never answers; the run ends by
// the turn's deadline all the same, whoever is killed between the wake's schedule
// and its due. The wake is settled once or more, never before its due, and the
// log folds again to the same bytes.

import (
	"context"
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
	s := &timed{system: startSystemOn(t, guarded, "operator", nil), stored: make(chan string, 16)}
	s.at("warm-up", s.say(session.DoorCtl, "warm-up", session.TypeFactsSet, object{"facts": object{}}))
	s.listen()
	models := startDaemon(t, "bridge", "--nats", as(t, guarded, "models", true), "--model", "openai=scripted:echo", "--no-provision", "--inbox-prefix", "_INBOX_models")
	until(t, time.Minute, "the models' bridge says that it keeps no time", func() bool { return strings.Contains(models.out.String(), "keeps_no_time") })
	s.run(session.DoorCtl, "answered", "hi", object{"provider": "openai", "model": "m"})
	s.wantEnd("answered", 1, session.Completed, "")

	refused, stderr, status := run(t, time.Minute, nil, "bridge", "--nats", as(t, guarded, "models", true), "--timers", "--no-provision", "--inbox-prefix", "_INBOX_models")
	if status != 1 || !strings.Contains(stderr, "does not allow this user") {
		t.Errorf("timers without the right: status %d\n%s%s", status, refused, stderr)
	}
	startDaemon(t, "bridge", "--nats", as(t, guarded, "timers", true), "--timers", "--no-provision", "--inbox-prefix", "_INBOX_timers")
	s.scheduled("answered") // by the run before
	s.ask("late", time.Second)
	s.wantEnd("late", 1, session.Failed, "deadline_exceeded")
}

// timed is a system with a bridge that only keeps time. The test plays the
// model's: it takes turns, and is never heard again.
type timed struct {
	*system
	timers *daemon
	stored chan string // subjects of schedules, as they are stored
}

func startTimed(t *testing.T, server string) *timed {
	t.Helper()
	s := &timed{system: startSystemOn(t, server, "", nil), stored: make(chan string, 16)}
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
// until the wake that ends it is scheduled.
func (s *timed) ask(sid string, deadline time.Duration) {
	s.t.Helper()
	claim, err := s.names.Claim(subjects.ClaimName{Session: sid, Effect: "r1t1", N: 1})
	if err != nil {
		s.t.Fatal(err)
	}
	publish(s.t, s.nc, claim, []byte(`{"by":"01J0000000000000000000GONE"}`))
	s.run(session.DoorCtl, sid, "hello?", object{
		"provider": "silent", "model": "m", "deadlines_ms": object{"turn": deadline.Milliseconds()},
	})
	s.scheduled(sid)
}

// scheduled waits until the first wake of a session is scheduled, the next that is.
func (s *timed) scheduled(sid string) {
	s.t.Helper()
	select {
	case got := <-s.stored:
		if want := "refold.timer." + sid + ".w1"; got != want {
			s.t.Fatalf("stored %s, want %s", got, want)
		}
	case <-time.After(time.Minute):
		s.t.Fatal("no wake is scheduled")
	}
}

// kept returns the subjects that REFOLD_TIMERS holds messages of.
func (s *timed) kept() (all []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
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
	wakes := s.asked(session.ClassWake, sid)
	if len(wakes) != 1 {
		s.t.Fatalf("%d wakes were asked, want 1", len(wakes))
	}
	var wake session.Wake
	if err := codec.Unmarshal(wakes[0].payload, &wake); err != nil {
		s.t.Fatal(err)
	}
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
	s.ask("late", time.Second)
	s.check("late")
}

func TestDeadlineKilled(t *testing.T) {
	t.Parallel()
	for victim, strike := range map[string]func(*timed, *natsProcess){
		"session-actor": func(s *timed, _ *natsProcess) {
			s.actor.kill()
			s.actor.start()
		},
		"timers": func(s *timed, _ *natsProcess) {
			s.timers.kill()
			until(s.t, time.Minute, "the wake is due, and nobody there", func() bool { return slices.Equal(s.kept(), []string{"refold.due.killed.w1"}) })
			s.timers.start()
		},
		"nats": func(_ *timed, srv *natsProcess) {
			srv.kill()
			srv.start()
		},
	} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			srv := startNATSProcess(t)
			s := startTimed(t, srv.url)
			s.ask("killed", 5*time.Second) // long enough to be asked in, on a busy machine
			strike(s, srv)
			s.check("killed")
		})
	}
}
