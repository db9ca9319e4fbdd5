package host

// Sessions that wait and are not in memory: a snapshot is there for each, and a
// sweep settles and asks what is due, whoever died when.

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
)

const week = 7 * 24 * time.Hour

// approval brings a session to where a call waits for a person, for a week, and
// its first wake is settled. It returns the latest event.
func (s *stage) approval(sid string) session.Event {
	s.t.Helper()
	tool := simTool("danger", "effect", map[string]any{"approval": "always"})
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
	last := s.say(session.DoorWake, sid, session.TypeWakeSettled, map[string]any{"effect": "w1"})
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
		if strings.HasPrefix(name, sid+" ") {
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
	if err := s.stop(); err != nil {
		s.t.Errorf("run: %v", err)
	}
	<-time.After(without)
	s.mem.mu.Lock()
	s.mem.dead = false
	s.mem.mu.Unlock()
	other := newStage(s.t, s.mem, opts)
	other.lane.unowned.Store(true) // nothing arrives, so nobody owns the lane
	other.lane.floor, _ = s.lane.Floor(s.t.Context())
	other.start()
	return other
}

func (s *stage) inMemory(sid string) bool {
	found := false
	s.actor.inside(s.t.Context(), func() { found = s.actor.sessions[sid] != nil })
	return found
}

func TestAnApprovalDaysLater(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SessionsMax: 8}, func(t *testing.T, s *stage) {
		s.era()
		s.start()
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
		s.era()
		s.deliver(decided)
		s.wantAcked(decided)
		if got := s.mem.asked("s1"); !slices.Contains(got, "r1t1c0") {
			t.Errorf("approved: asked are %v, want the call", got)
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAnApprovalNobodyDecides(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.era()
		s.start()
		last := s.approval("s1")
		s = s.killed(week, Options{})
		s.pass(sweepFirst + time.Second)
		if late := s.wantWoken("after a week", "s1", "s1"); late[1].Seq <= last.Seq {
			t.Errorf("the wake is at %d, want it behind %d", late[1].Seq, last.Seq)
		}
		s.lane.unowned.Store(false)
		s.era()
		s.deliverRest(last.Seq)
		if got := s.mem.asked("s1"); !slices.Contains(got, "r1t2") {
			t.Errorf("asked are %v, want that the model is told", got)
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}

// A session that waits long is in a snapshot before the event that made it wait
// is acknowledged: a kill right after finds it.
func TestALongWaitIsSnapshottedBeforeItsAck(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		var early []uint64 // acknowledged when the snapshot was stored
		check := s.mem.onSnapshot
		s.mem.onSnapshot = func(sid string, seq uint64) {
			check(sid, seq)
			if s.lane.has(seq) {
				early = append(early, seq)
			}
		}
		s.era()
		s.start()
		last := s.approval("s1")
		s.wantAcked(last)
		if len(early) > 0 {
			t.Errorf("events %v were acknowledged before their snapshots", early)
		}
		w := s.mem.waiting
		if len(w) != 1 || w[0].Session != "s1" || w[0].Due < time.Now().Add(week-time.Hour).UnixMilli() {
			t.Errorf("waiting: got %v, want s1, for about a week", w)
		}
		puts := s.mem.puts
		s.deliver(s.wrong("s1", 5)...)
		if s.mem.puts != puts {
			t.Errorf("%d snapshots for one wait", s.mem.puts-puts+1)
		}
	})
}

// Where the snapshot can't be stored the lane goes on, and it is tried again.
func TestALongWaitIsSnapshottedLater(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		down := true
		s.mem.plan = func(c call) outcome {
			s.mem.mu.Lock()
			defer s.mem.mu.Unlock()
			if down && c.op == "PutSnapshot" {
				return fails
			}
			return works
		}
		s.era()
		s.start()
		s.wantAcked(s.approval("s1"))
		s.pass(time.Hour)
		s.mem.mu.Lock()
		down = false
		s.mem.mu.Unlock()
		s.pass(snapshotPause + time.Second)
		if len(s.mem.waiting) != 1 {
			t.Errorf("waiting: got %v, want s1", s.mem.waiting)
		}
	})
}

// A snapshot names no wake that is settled, or every sweep would look in vain.
func TestTheSnapshotOfASessionThatWaitsNoMore(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.era()
		s.start()
		s.approval("s1")
		s.deliver(s.say(session.DoorIn, "s1", session.TypeRunCancelRequested, map[string]any{}))
		if len(s.mem.waiting) != 1 {
			t.Errorf("waiting: got %v, want s1: its wake is open", s.mem.waiting)
		}
		s.deliver(s.say(session.DoorWake, "s1", session.TypeWakeSettled, map[string]any{"effect": "w2"}))
		if len(s.mem.waiting) != 0 {
			t.Errorf("waiting: got %v, want nobody", s.mem.waiting)
		}
	})
}

// What left memory with a wake is found by the sweep, although nobody else
// remembers it.
func TestAnEvictedSessionIsWoken(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SessionsMax: 4}, func(t *testing.T, s *stage) {
		s.era()
		s.start()
		for n := range 12 {
			s.deliver(s.run(fmt.Sprintf("e%d", n)))
		}
		if s.inMemory("e0") {
			t.Fatal("e0 is in memory")
		}
		s.pass(2 * time.Hour) // the second sweep comes after half an hour
		got := map[string]int{}
		for _, e := range s.woken() {
			got[e.Session]++
		}
		if len(got) != 12 || got["e0"] != 1 {
			t.Errorf("woken: got %v, want each session, and e0 once: the log has its settlement", got)
		}
	})
}

// What is in memory since an earlier era is older than another owner's snapshot.
func TestAnUnprovenSessionIsEvictedWithoutASnapshot(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SessionsMax: 4}, func(t *testing.T, s *stage) {
		s.era()
		s.deliver(s.run("s1"))
		s.start()
		s.era()
		for n := range 8 {
			s.deliver(s.run(fmt.Sprintf("e%d", n)))
		}
		if s.inMemory("s1") {
			t.Fatal("s1 is in memory")
		}
		s.mem.mu.Lock()
		defer s.mem.mu.Unlock()
		if s.mem.snapshots["s1"] != nil || s.mem.snapshots["e0"] == nil {
			t.Errorf("snapshots: s1 %t, e0 %t; want that of e0", s.mem.snapshots["s1"] != nil, s.mem.snapshots["e0"] != nil)
		}
	})
}

// A snapshot may be older than what it waits for: the log decides.
func TestASweepBelievesTheLog(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.era()
		s.start()
		s.approval("s1")
		s.approval("s2")
		stopped := s.approval("q")
		s = s.killed(week, Options{})
		s.say(session.DoorWake, "s1", session.TypeWakeSettled, map[string]any{"effect": "w2"})
		if err := s.mem.PutQuarantine(t.Context(), "q", fmt.Appendf(nil, `{"seq":%d,"reason":"a test"}`, stopped.Seq+1)); err != nil {
			t.Fatal(err)
		}
		s.pass(time.Minute)
		// Each was woken once before.
		s.wantWoken("one is settled, one quarantined", "q", "s1", "s1", "s2", "s2")
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}

// Whatever a sweep meets, the lane goes on, and the next sweep comes.
func TestASweepHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	for name, become := range map[string]outcome{"fails": fails, "hangs": hangs} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStage(t, Options{}, func(t *testing.T, s *stage) {
				mem, down := s.mem, false
				mem.plan = func(c call) outcome {
					mem.mu.Lock()
					defer mem.mu.Unlock()
					if down && (c.op == "GetSnapshot" && c.sid == "s1" || c.op == "EffectsKept") {
						return become
					}
					return works
				}
				s.era()
				s.start()
				s.approval("s1")
				s = s.killed(time.Hour, Options{})
				s.forget("s1")
				mem.mu.Lock()
				down = true
				mem.mu.Unlock()
				s.lane.unowned.Store(false)
				s.era()
				s.pass(time.Second)
				other := s.run("s2")
				s.deliver(other)
				s.wantAcked(other)
				s.pass(time.Hour)
				s.mem.mu.Lock()
				down = false
				s.mem.mu.Unlock()
				s.pass(time.Hour)
				if got := s.mem.asked("s1"); !slices.Equal(got, []string{"w2"}) {
					t.Errorf("asked: got %v, want the wake", got)
				}
				if err := s.stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Taking a lane is a reason to sweep it at once.
func TestTakingALaneSweepsIt(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.era()
		s.start()
		s.approval("s1")
		s = s.killed(time.Minute, Options{})
		s.pass(5 * time.Minute)
		s.forget("s1")
		s.lane.unowned.Store(false)
		s.era()
		s.pass(time.Second)
		if got := s.mem.asked("s1"); !slices.Equal(got, []string{"w2"}) {
			t.Errorf("asked: got %v, want the wake", got)
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}

// What is in memory is not swept: its owner knows better.
func TestASweepLeavesWhatIsInMemory(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.era()
		s.start()
		s.approval("s1")
		s.mem.mu.Lock()
		clear(s.mem.calls)
		s.mem.mu.Unlock()
		for range 4 * 60 {
			s.deliver(s.say(session.DoorCtl, "s1", session.TypeFactsSet, map[string]any{"facts": map[string]any{"a": "b"}}))
			s.pass(sleepAfter / 2)
		}
		s.mem.mu.Lock()
		defer s.mem.mu.Unlock()
		if lists, gets := s.mem.calls[call{op: "ListWaiting"}], s.mem.calls[call{op: "GetSnapshot", sid: "s1"}]; lists < 3 || gets > 0 {
			t.Errorf("in %d sweeps the snapshot of s1 was read %d times", lists, gets)
		}
	})
}

// What is in memory is looked at by the lane's owner. Where nobody is, since
// nothing arrives, a sweep looks at it.
func TestASweepOfALaneThatNobodyOwns(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.era()
		s.start()
		s.approval("s1")
		s.lane.unowned.Store(true)
		s.forget("s1")
		for range 4 * 60 {
			s.deliver(s.say(session.DoorCtl, "s1", session.TypeFactsSet, map[string]any{"facts": map[string]any{"a": "b"}}))
			s.pass(sleepAfter / 2)
		}
		if got := s.mem.asked("s1"); !s.inMemory("s1") || !slices.Equal(got, []string{"w2"}) {
			t.Errorf("in memory: %v; asked again: got %v, want the wake", s.inMemory("s1"), got)
		}
	})
}

// Taking a lane over and over is no reason to sweep all the time.
func TestErasDontSweepInALoop(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.start()
		for range 100 {
			s.era()
			s.pass(3 * time.Second)
		}
		s.mem.mu.Lock()
		defer s.mem.mu.Unlock()
		if n := s.mem.calls[call{op: "ListWaiting"}]; n < 1 || n > 7 {
			t.Errorf("%d sweeps in five minutes, want one a minute at most", n)
		}
	})
}

// More sessions wait than a sweep holds at a time.
func TestASweepOfManyPages(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.era()
		s.start()
		s.approval("s1")
		s = s.killed(time.Minute, Options{})
		data := s.mem.snapshots["s1"]
		for n := range 2*sweepPage + 10 {
			sid := fmt.Sprintf("x%d", n)
			if err := s.mem.PutWaiting(t.Context(), sid, 1, data, time.Now().Add(week).UnixMilli()); err != nil {
				t.Fatal(err)
			}
		}
		s.pass(sweepMost)
		asked := 0
		for n := range 2*sweepPage + 10 {
			asked += len(s.mem.asked(fmt.Sprintf("x%d", n)))
		}
		if want := 2*sweepPage + 10; asked != want {
			t.Errorf("%d wakes are asked, want %d", asked, want)
		}
		s.mem.mu.Lock()
		clear(s.mem.snapshots) // they are of no history
		s.mem.mu.Unlock()
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestWakesOfASnapshot(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.era()
		s.start()
		none := s.wrong("s0", 1)[0]
		last := s.approval("s1")
		for sid, seq := range map[string]uint64{"s0": none.Seq, "s1": last.Seq} {
			state := s.mem.judge(sid, seq).state
			data := state.Snapshot().Bytes()
			got, err := snapshotWakes(data)
			if err != nil || !slices.Equal(got, state.Wakes) {
				t.Errorf("%s: got %v (%v), want %v", sid, got, err, state.Wakes)
			}
			if sid == "s0" {
				continue
			}
			effects, want := wakesOf(sid, got), state.Open()
			if len(effects) != 1 || !slices.EqualFunc(effects, want, func(a, b session.Effect) bool {
				return a.Name == b.Name && bytes.Equal(a.Payload, b.Payload)
			}) {
				t.Errorf("%s: the wakes are %v, want %v", sid, effects, want)
			}
			for _, n := range []int{0, 1, len(data) / 2, len(data) - 1} {
				if got, err := snapshotWakes(data[:n]); err == nil {
					t.Errorf("%d bytes of %d: got %v, want an error", n, len(data), got)
				}
			}
		}
	})
}
