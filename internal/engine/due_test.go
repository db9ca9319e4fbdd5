package engine

// Wakes: a session's owner schedules them before it acknowledges, whoever pulls what
// is due settles them, and they outlive hosts and the names of effects.

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

const (
	week       = 7 * 24 * time.Hour
	tenMinutes = session.DeadlineDefaultMS * time.Millisecond // how long an effect is open by default
	sweepFirst = 10 * time.Second                             // after a start: by then a host has settled what is due
)

// fire has the host settle the wakes that are due, as it does with those that it
// pulls.
func (s *stage) fire() {
	s.mem.mu.Lock()
	due := maps.Clone(s.mem.timers)
	s.mem.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(due)) {
		sid, wake, _ := strings.Cut(name, " ")
		if now := time.Now(); due[name].at <= now.UnixMilli() && s.host.SettleDue(s.t.Context(), sid, wake, due[name].payload, now) == 0 {
			s.mem.unschedule(name)
		}
	}
}

// woken returns the settlements of wakes that the log has.
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

// wantWoken checks whose wakes were settled, in order of their names, and returns
// the events.
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

// approval brings a session to where a call waits for a person, for a week, and
// its first wake is settled. It returns the latest event.
func (s *stage) approval(sid string) session.Event {
	s.t.Helper()
	tool := toolOfX("danger", "effect", map[string]any{"approval": "always"})
	s.deliver(s.say(session.DoorCtl, sid, session.TypeToolRegistrySet, map[string]any{"tools": []any{tool}}))
	s.deliver(s.say(session.DoorCtl, sid, session.TypeRunRequested, map[string]any{
		"input": map[string]any{"text": "hi"}, "config": map[string]any{
			"provider": "openai", "model": "m", "deadlines_ms": map[string]any{"approval": week.Milliseconds()},
		},
	}))
	s.deliver(s.say(session.DoorLLM, sid, session.TypeToolCallsObserved, map[string]any{
		"effect": "r1t1", "calls": []any{map[string]any{"tool_name": "danger", "arguments": "{}"}},
	}))
	s.pass(tenMinutes)
	last := s.wantWoken("after the turn's deadline", sid)[0]
	s.deliver(last)
	return last
}

// approve decides over the call that waits.
func (s *stage) approve(sid string, last uint64) session.Event {
	s.t.Helper()
	batch := s.mem.judge(sid, last).state.View().Batch
	if batch == nil || batch.Calls[0].Status != session.CallAwaiting {
		s.t.Fatalf("%s waits for no approval: %+v", sid, batch)
	}
	return s.say(session.DoorApprove, sid, session.TypeApprovalDecided, map[string]any{
		"call": "r1t1c0", "args_hash": batch.Calls[0].ArgsHash, "decision": "approve",
	})
}

// forget takes the effects of a session out of the world, as their age does.
func (s *stage) forget(sid string) {
	s.mem.mu.Lock()
	defer s.mem.mu.Unlock()
	for name := range s.mem.effects {
		if _, scheduled := s.mem.timers[name]; !scheduled && strings.HasPrefix(name, sid+" ") {
			s.mem.forgotten[name] = s.mem.effects[name]
			delete(s.mem.effects, name)
		}
	}
}

// killed ends the host at once and returns another one, after a time without
// any. Nothing is drained.
func (s *stage) killed(without time.Duration, opts Options) *stage {
	s.t.Helper()
	s.mem.mu.Lock()
	s.mem.dead = true
	s.mem.mu.Unlock()
	s.end()
	<-time.After(without)
	s.mem.mu.Lock()
	s.mem.dead = false
	s.mem.mu.Unlock()
	other := newStage(s.t, s.mem, opts)
	other.lane.unowned.Store(true) // nothing arrives, so nobody owns the lane
	other.start()
	return other
}

func (s *stage) inMemory(sid string) bool {
	s.settle()
	return s.actor.sessions[sid] != nil
}

func TestAnApprovalDaysLater(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SessionsMax: 8}, func(t *testing.T, s *stage) {
		s.begin()
		last := s.approval("s1")
		for n := range 20 {
			s.deliver(s.run(fmt.Sprintf("e%d", n)))
		}
		if s.inMemory("s1") {
			t.Error("the session that waits for a person is in memory")
		}
		s = s.killed(3*24*time.Hour, Options{SessionsMax: 8})
		s.forget("s1")
		s.pass(sweepFirst + time.Second)
		if got := s.mem.asked("s1"); !slices.Equal(got, []string{"w2"}) {
			t.Errorf("asked again: got %v, want the wake alone", got)
		}
		if s.inMemory("s1") {
			t.Error("swept, the session is in memory")
		}
		decided := s.approve("s1", last.Seq)
		s.lane.unowned.Store(false)
		s.epoch()
		s.deliverAcked(decided)
		if got := s.mem.asked("s1"); !slices.Contains(got, "r1t1c0") {
			t.Errorf("approved: asked are %v, want the call", got)
		}
		s.end()
	})
}

func TestUndecidedApprovalExpires(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.begin()
		last := s.approval("s1")
		s = s.killed(week, Options{})
		s.pass(sweepFirst + time.Second)
		if late := s.wantWoken("after a week", "s1", "s1"); late[1].Seq <= last.Seq {
			t.Errorf("the wake is at %d, want it behind %d", late[1].Seq, last.Seq)
		}
		s.lane.unowned.Store(false)
		s.epoch()
		s.deliverRest(last.Seq)
		if got := s.mem.asked("s1"); !slices.Contains(got, "r1t2") {
			t.Errorf("asked are %v, want that the model is told", got)
		}
		s.end()
	})
}

// A due wake is settled by any host. One that fired early is scheduled again, and
// one that can't be settled is delivered again.
func TestDueWakesAreSettled(t *testing.T) {
	t.Parallel()
	const due = 1_000_000
	payload := func(change func(*session.Wake)) []byte {
		w := session.Wake{At: 1, Class: session.ClassWake, Due: due, Effect: "w1", Session: "s1", StartBy: due, V: session.Version}
		change(&w)
		data, err := codec.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	sound := payload(func(*session.Wake) {})
	for name, c := range map[string]struct {
		payload []byte
		fired   int64
		become  outcome
		again   time.Duration
		settled int
		timers  int
	}{
		"due":                    {sound, due, works, 0, 1, 0},
		"due, not stored":        {sound, due, fails, dueTrouble, 0, 0},
		"due, answer lost":       {sound, due, failsLate, dueTrouble, 1, 0},
		"early":                  {sound, due - 1, works, 0, 0, 1},
		"early, not scheduled":   {sound, due - 1, fails, dueTrouble, 0, 0},
		"of another session":     {payload(func(w *session.Wake) { w.Session = "s2" }), due, works, 0, 0, 0},
		"of another wake":        {payload(func(w *session.Wake) { w.Effect = "w2" }), due, works, 0, 0, 0},
		"no wake":                {payload(func(w *session.Wake) { w.Class = session.ClassLLM }), due, works, 0, 0, 0},
		"no map":                 {[]byte("x"), due, works, 0, 0, 0},
		"of a newer version":     {payload(func(w *session.Wake) { w.V++ }), due, works, dueNewer, 0, 0},
		"a map with another key": {[]byte("\x81\xa1z\x01"), due, works, dueNewer, 0, 0},
	} {
		onStageOf(t, name, Options{}, func(t *testing.T, s *stage) {
			s.mem.planned(on(c.become, func(call) bool { return true }))
			if got := s.host.SettleDue(t.Context(), "s1", "w1", c.payload, time.UnixMilli(c.fired)); got != c.again {
				t.Errorf("to be delivered again after %v, want %v", got, c.again)
			}
			if n := len(s.woken()); n != c.settled {
				t.Errorf("settled %d times, want %d", n, c.settled)
			}
			if n := len(s.mem.timers); n != c.timers {
				t.Errorf("%d schedules, want %d", n, c.timers)
			}
		})
	}
}

// A session in memory since an earlier epoch is older than another owner's
// snapshot.
func TestAnUnprovenSessionIsEvictedWithoutASnapshot(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SessionsMax: 4}, func(t *testing.T, s *stage) {
		s.begin(s.wrong("s1", lastSnapshotEvents)...)
		s.epoch()
		for n := range 8 {
			s.deliver(s.wrong(fmt.Sprintf("e%d", n), lastSnapshotEvents)...)
		}
		if s.inMemory("s1") {
			t.Fatal("s1 is in memory")
		}
		if s.mem.snapshotted("s1") || !s.mem.snapshotted("e0") {
			t.Errorf("snapshots: s1 %t, e0 %t; want that of e0", s.mem.snapshotted("s1"), s.mem.snapshotted("e0"))
		}
	})
}
