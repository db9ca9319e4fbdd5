package e2e_test

// Schedules on real processes. The names are such that a schedule fires in the second of its
// time, and the times are given by the test, which is what a client computes otherwise.

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// promptNames returns names of schedules of a session that fire within half a second of their time.
func promptNames(sid string, n int) (names []string) {
	for i := 0; len(names) < n; i++ {
		name := fmt.Sprint("n", i)
		sum := codec.Digest([]byte(sid + "." + name))
		if binary.BigEndian.Uint64(sum[:8])%session.ScheduleSpreadMS < 500 {
			names = append(names, name)
		}
	}
	return names
}

// plan sets a schedule whose first time is given.
func (s *system) plan(sid, name, cron string, at, next time.Time, more object) {
	s.t.Helper()
	data := object{"name": name, "cron": cron, "at": at.UnixMilli(), "next": next.UnixMilli(), "input": object{"text": "look"}, "config": scripted, "when_busy": session.BusyQueue}
	for key, value := range more {
		data[key] = value
	}
	s.say(session.DoorCtl, sid, session.TypeScheduleSet, data)
}

// firings returns the firings that the log has of a session, once each.
func (s *system) firings(sid string) (all []session.ScheduleFired) {
	s.t.Helper()
	seen := map[string]bool{}
	for _, payload := range logOf(s.t, s.nc, session.DoorWake, sid) {
		env, err := session.ReadEnvelope(payload)
		if err != nil {
			s.t.Fatal(err)
		}
		var b session.ScheduleFired
		if env.Type != session.TypeScheduleFired {
			continue
		}
		if err := codec.Decode(env.Data, &b); err != nil {
			s.t.Fatal(err)
		}
		if !seen[b.Effect] {
			seen[b.Effect] = true
			all = append(all, b)
		}
	}
	return all
}

// started returns the firings of the runs that began.
func started(e *ear) (all []session.Scheduled) {
	for _, n := range e.all() {
		var placed session.RunPlaced
		if n.Type == session.NoticeRunStarted && json.Unmarshal(n.Data, &placed) == nil && placed.Scheduled != nil {
			all = append(all, *placed.Scheduled)
		}
	}
	return all
}

// TestScheduleKilled: the session-actor is killed before a schedule is due, and started
// after it. The schedule fires once, and its next time is a full minute.
func TestScheduleKilled(t *testing.T) {
	t.Parallel()
	s := startSystem(t, nil)
	s.models("rules: [{say: 'All is well.'}]\n", "scripted")
	var sid, name string
	var due time.Time
	var heard *ear
	for wait, early := 5*time.Second, false; !early; wait *= 2 { // the session-actor is dead by the due: else it is tried again, for longer
		sid = fmt.Sprint("within-", wait)
		name = promptNames(sid, 1)[0]
		heard = listen(t, s.nc, "refold.out."+sid)
		stored := make(chan *nats.Msg, 64)
		if _, err := s.nc.ChanSubscribe("refold.timer."+sid+".>", stored); err != nil {
			t.Fatal(err)
		}
		due = time.Now().Add(wait).Truncate(time.Millisecond)
		s.plan(sid, name, "* * * * *", time.Now().Add(-time.Second), due, nil)
		until(t, time.Minute, "the wake is stored", func() bool { return len(stored) > 0 })
		s.actor.kill()
		if early = time.Now().Before(due); !early {
			s.actor.start()
		}
	}
	until(t, endWithin, "the wake is due, and nobody there", func() bool { return slices.Contains(s.schedules(sid), "refold.due."+sid+".w1") })
	s.actor.start()
	v := s.view(sid, "the run", func(v session.View) bool { return v.Run == nil && v.Last != nil })
	if got := v.Schedules[0]; v.Last.Lifecycle != session.Completed || got.Last < due.UnixMilli() || got.Next < got.Last+session.ScheduleEachMS || got.Next%60_000 != 0 || got.Paused != "" {
		t.Errorf("after %+v the schedule is %+v", v.Last, got)
	}
	if got := started(heard); len(got) == 0 || got[0].Name != name || got[0].At < due.UnixMilli() {
		t.Errorf("the runs are of %+v, want of %s at %d or later", got, name, due.UnixMilli())
	}
	for _, fired := range s.firings(sid)[:1] {
		if fired.Effect != "w1" || fired.Name != name || fired.At < due.UnixMilli() {
			t.Errorf("fired %+v, want %s at %d or later", fired, name, due.UnixMilli())
		}
	}
	verifyAll(t, s.url)
}

// TestSchedulesAtOnce: two schedules of one time fire both, hours that were missed are one
// run or none, and a closed session fires nothing.
func TestSchedulesAtOnce(t *testing.T) {
	t.Parallel()
	s := startSystem(t, nil)
	s.models("rules: [{say: 'All is well.'}]\n", "scripted")
	heard := listen(t, s.nc, "refold.out.s1")
	now := time.Now()
	soon := now.Add(4 * time.Second).Truncate(time.Millisecond)
	for _, sid := range []string{"s1", "closed"} {
		for _, name := range promptNames(sid, 2) {
			s.plan(sid, name, "0 0 1 1 *", now, soon, nil)
		}
	}
	s.at("closed", s.say(session.DoorCtl, "closed", session.TypeSessionClosed, object{}))

	missed := listen(t, s.nc, "refold.out.missed")
	last, none := promptNames("missed", 2)[0], promptNames("missed", 2)[1]
	latest := now.Add(-30 * time.Minute).Truncate(time.Minute) // so that no time comes while the test runs
	first, hourly := latest.Add(-3*time.Hour), fmt.Sprintf("%d * * * *", latest.Minute())
	s.plan("missed", last, hourly, first.Add(-time.Hour), first, nil)
	s.plan("missed", none, hourly, first.Add(-time.Hour), first, object{"catch_up": session.CatchUpNone})
	s.wantEnd("missed", 1, session.Completed, "")
	until(t, time.Minute, "both say what was missed", func() bool { return missed.count(session.NoticeScheduleSkipped) == 2 })
	v := s.view("missed", "the next hour", func(v session.View) bool { return len(v.Schedules) == 2 })
	for _, sc := range v.Schedules {
		if sc.Next <= now.UnixMilli() || (sc.Next-latest.UnixMilli())%3_600_000 != 0 || sc.Last < first.Add(2*time.Hour).UnixMilli() {
			t.Errorf("after three missed hours: %+v", sc)
		}
	}
	if got := started(missed); v.Last.Number != 1 || len(got) != 1 || got[0].Name != last {
		t.Errorf("the missed hours are %d runs of %+v, want one of %s", v.Last.Number, got, last)
	}

	s.wantEnd("s1", 2, session.Completed, "")
	if got := started(heard); len(got) != 2 || got[0].At != soon.UnixMilli() || got[1].At != soon.UnixMilli() || got[0].Name == got[1].Name {
		t.Errorf("two schedules of one time began runs of %+v, want each at %d", got, soon.UnixMilli())
	}
	// The wake of the closed session was withdrawn. It fires all the same, and nothing comes of it.
	if v := s.view("closed", "the closed session", func(v session.View) bool { return v.Seq > 0 }); v.Run != nil || v.Last != nil || len(v.Schedules) > 0 {
		t.Errorf("a closed session has the schedules %+v and ran %+v", v.Schedules, v.Last)
	}
	verifyAll(t, s.url)
}
