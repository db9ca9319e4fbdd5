package engine

// Schedules: whoever pulls the wake of one computes its next time, and the session fires
// once, on fake time.

import (
	"slices"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// scheduled sets a schedule whose first time is given, and delivers the event.
func (s *stage) scheduled(sid, name, cron, zone string, first time.Time, more map[string]any) {
	s.t.Helper()
	data := map[string]any{
		"name": name, "cron": cron, "zone": zone, "at": time.Now().UnixMilli(), "next": first.UnixMilli(), "input": map[string]any{"text": "look"},
		"config": map[string]any{"provider": "openai", "model": "m"},
	}
	for key, value := range more {
		data[key] = value
	}
	s.deliver(s.say(session.DoorCtl, sid, session.TypeScheduleSet, data))
}

// fired returns the firings that the log has.
func (s *stage) fired() (all []session.ScheduleFired) {
	s.t.Helper()
	for _, e := range s.woken() {
		env, err := session.ReadEnvelope(e.Payload)
		if err != nil {
			s.t.Fatal(err)
		}
		var b session.ScheduleFired
		if env.Type == session.TypeScheduleFired {
			if err := codec.Decode(env.Data, &b); err != nil {
				s.t.Fatal(err)
			}
			all = append(all, b)
		}
	}
	return all
}

// A firing is computed from the wake, and by the clock of the host: after a down time the
// last time that was missed fires.
func TestScheduleFired(t *testing.T) {
	t.Parallel()
	at := func(text string) time.Time {
		got, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for name, c := range map[string]struct{ cron, zone, at, now, wantAt, wantNext string }{
		"on time":                    {"0 9 * * 1-5", "Europe/Berlin", "2026-03-27T08:00:00Z", "2026-03-27T08:00:31Z", "2026-03-27T08:00:00Z", "2026-03-30T07:00:00Z"},
		"in the gap of summer time":  {"30 2 * * *", "Europe/Berlin", "2026-03-28T01:30:00Z", "2026-03-28T01:30:31Z", "2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z"},
		"in the overlap":             {"30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T00:30:31Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		"Mondays in Santiago":        {"0 9 * * 1", "America/Santiago", "2026-03-30T12:00:00Z", "2026-03-30T12:00:31Z", "2026-03-30T12:00:00Z", "2026-04-06T13:00:00Z"},
		"three hours late":           {"0 * * * *", "", "2026-03-27T08:00:00Z", "2026-03-27T11:20:00Z", "2026-03-27T11:00:00Z", "2026-03-27T12:00:00Z"},
		"late, its minute not begun": {"0 * * * *", "", "2026-03-27T08:00:00Z", "2026-03-27T11:00:29Z", "2026-03-27T10:00:00Z", "2026-03-27T11:00:00Z"},
		"a clock that is behind":     {"0 * * * *", "", "2026-03-27T08:00:00Z", "2026-03-27T07:00:00Z", "2026-03-27T08:00:00Z", "2026-03-27T09:00:00Z"},
		"no time of the expression":  {"* * * * *", "", "2026-03-27T08:00:15Z", "2026-03-27T08:00:50Z", "2026-03-27T08:00:15Z", "2026-03-27T08:02:00Z"},
		"an unknown zone":            {"0 * * * *", "Mars/Base", "2026-03-27T08:00:00Z", "2026-03-27T08:00:31Z", "2026-03-27T08:00:00Z", ""},
	} {
		nominal := at(c.at).UnixMilli()
		got, err := scheduleFired(&session.Wake{Due: nominal + 30_000, Effect: "w1", Schedule: &session.WakeSchedule{At: nominal, Cron: c.cron, Name: "n", Rev: 7, Zone: c.zone}}, at(c.now))
		want := session.ScheduleFired{At: at(c.wantAt).UnixMilli(), Effect: "w1", Name: "n", Rev: 7}
		if c.wantNext != "" {
			want.Next = at(c.wantNext).UnixMilli()
		}
		if got != want || (err == nil) != (c.wantNext != "") {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, want)
		}
	}
}

// A schedule fires while its session is out of memory, once although its wake is settled
// twice, and after the host was down it fires once for all that it missed.
func TestScheduleOverADownTime(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SessionsMax: 8}, func(t *testing.T, s *stage) {
		s.begin()
		begun := time.Now()
		first := begun.Truncate(time.Hour).Add(time.Hour)
		s.scheduled("s1", "hourly", "0 * * * *", "", first, map[string]any{"when_busy": "queue"})
		s.pass(first.Add(time.Minute).Sub(begun))
		one := s.woken()
		if got := s.fired(); len(got) != 1 || got[0].At != first.UnixMilli() || got[0].Next != first.Add(time.Hour).UnixMilli() {
			t.Fatalf("fired %+v, want once at %v", got, first.UnixMilli())
		}
		s.deliver(one[0])
		s.deliver(s.settled(session.DoorWake, "s1", one[0])) // as another host said it
		if got := s.mem.asked("s1"); !slices.Contains(got, "r1t1") || slices.Contains(got, "r2t1") {
			t.Errorf("asked are %v, want one run's turn", got)
		}
		last := s.mem.log[len(s.mem.log)-1].Seq
		s = s.killed(3*time.Hour, Options{SessionsMax: 8})
		s.pass(sweepFirst + time.Second)
		got := s.fired()
		if want := first.Add(3 * time.Hour).UnixMilli(); len(got) < 3 || got[2].At != want {
			t.Fatalf("after three hours fired %+v, want the last at %d", got, want)
		}
		s.lane.unowned.Store(false)
		s.epoch()
		s.deliverRest(last)
		if v := s.mem.judge("s1", s.mem.log[len(s.mem.log)-1].Seq).state.View(); v.Run == nil || v.Run.Number != 2 || v.Run.Scheduled == nil || len(v.Queue) > 0 {
			t.Errorf("the view has run %+v and %d queued, want run 2, which the schedule requested", v.Run, len(v.Queue))
		}
		s.end()
	})
}

// settled appends an event once more.
func (s *stage) settled(door session.Door, sid string, e session.Event) session.Event {
	s.t.Helper()
	env, err := session.ReadEnvelope(e.Payload)
	if err != nil {
		s.t.Fatal(err)
	}
	var b session.ScheduleFired
	if err := codec.Decode(env.Data, &b); err != nil {
		s.t.Fatal(err)
	}
	return s.say(door, sid, env.Type, map[string]any{"effect": b.Effect, "name": b.Name, "rev": b.Rev, "at": b.At, "next": b.Next + 60_000})
}
