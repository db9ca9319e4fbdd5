package engine

// What is stored when: an event is acknowledged, and a state snapshotted, only
// when every output is stored; outputs of a session are stored in order.

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// on returns a plan that lets the calls fail that when is true of.
func on(become outcome, when func(call) bool) func(call) outcome {
	return func(c call) outcome {
		if when(c) {
			return become
		}
		return works
	}
}

func TestSnapshotsAtTheEndAreOfStoredStates(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		// What s1 asks for is never stored; it is folded, and not stored, when the
		// lane is given up.
		s.mem.plan = of(hangs, "Ask", "s1")
		events := append([]session.Event{s.run("s1")}, s.wrong("s1", 2*lastSnapshotEvents)...)
		s.begin(append(events, s.run("s2"))...)
		s.wantUnacked(events...)
		s.end()
	})
}

func TestQuarantineSnapshotsOnlyStoredStates(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SnapshotEach: 1}, func(t *testing.T, s *stage) {
		first, second := s.wrong("s1", 1)[0], s.run("s1")
		s.mem.effects["s1 r1t1"] = []byte{0x80}
		s.beginAcked(first, second)
		if stop := s.stopOf("s1"); stop == nil || stop.Seq != second.Seq {
			t.Errorf("quarantine: got %+v, want one from %d", stop, second.Seq)
		}
		delete(s.mem.effects, "s1 r1t1") // what the snapshot must not say
		s.mem.checkSnapshots(t)
	})
}

func TestNoSnapshotOfAHalfFoldedState(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SnapshotEach: 1}, func(t *testing.T, s *stage) {
		first, second := s.run("s1"), s.answer("s1", "r1t1", "x")
		s.host.evolve = func(state *session.State, e session.Event) ([]session.Notice, error) {
			if e.Seq == second.Seq {
				state.Seq, state.Count = e.Seq, state.Count+1
				panic("a fault")
			}
			return state.Evolve(e)
		}
		s.beginAcked(first, second)
		s.wantStored(first)
		if stop := s.stopOf("s1"); stop == nil || stop.Seq != second.Seq {
			t.Errorf("quarantine: got %+v, want one from %d", stop, second.Seq)
		}
		if snap, found := s.mem.snapshots["s1"]; found {
			parsed, err := session.ParseSnapshot(snap)
			if err != nil || parsed.Seq >= second.Seq {
				t.Errorf("a snapshot at %d (%v), half folded", parsed.Seq, err)
			}
		}
	})
}

func TestUnstorableEffectStopsOneSession(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.host.evolve = func(state *session.State, e session.Event) ([]session.Notice, error) {
			notices, err := state.Evolve(e)
			if e.Session == "s1" {
				state.Run.Config.Params = codec.Raw{0xc1} // no msgpack: Open panics
			}
			return notices, err
		}
		s.epoch()
		first, second := s.run("s1"), s.run("s2")
		s.deliver(first, second)
		s.start()
		s.wantAcked(first, second)
		s.wantStored(second)
		if s.stopOf("s1") == nil {
			t.Error("s1 is not quarantined")
		}
	})
}

func TestAnEffectThatIsTooLargeStopsOneSession(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		small, next := s.run("s1"), s.wrong("s1", 1)[0]
		large := s.say(session.DoorIn, "s2", session.TypeRunRequested, map[string]any{
			"input": map[string]any{"text": "hi"}, "config": map[string]any{"provider": "openai", "model": "m", "system": strings.Repeat("x", 4000)},
		})
		s.mem.asks = 4000
		s.beginAcked(small, large, next)
		s.wantStored(next)
		if stop := s.stopOf("s2"); stop == nil || stop.Seq != large.Seq || !strings.Contains(stop.Reason, "4000") {
			t.Errorf("quarantine: got %+v, want one at %d that tells the limit", stop, large.Seq)
		}
		if s.stopOf("s1") != nil {
			t.Error("the other session is quarantined, too")
		}
	})
}

// The next owner of a lane that was handed over finds snapshots.
func TestADrainLeavesSnapshots(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		long := append([]session.Event{s.run("long")}, s.wrong("long", lastSnapshotEvents)...)
		s.begin(append(long, s.run("short"))...)
		if err := s.lane.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.end()
		if len(s.mem.snapshots) != 1 || s.mem.snapshots["long"] == nil {
			t.Errorf("%d snapshots, want that of the long session", len(s.mem.snapshots))
		}
	})
}

func TestOutputsAreStoredInOrderAndOnce(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		// Each call's first two tries fail, one before and one after it was
		// stored.
		s.mem.plan = func(c call) outcome {
			s.mem.mu.Lock()
			defer s.mem.mu.Unlock()
			switch n := s.mem.calls[c]; {
			case c.op != "Ask" && c.op != "Notify" && c.op != "Withdraw":
				return works
			case n == 1:
				return fails
			case n == 2:
				return failsLate
			}
			return works
		}
		s.mem.onProgress = func(sid string, seq uint64) {
			missing := slices.DeleteFunc(s.mem.missing(sid, seq), func(name string) bool { return strings.HasPrefix(name, "w") })
			if len(missing) > 0 { // nothing but an acknowledgement waits for a wake
				s.t.Errorf("%s says how event %d went on before it is stored: %v", sid, seq, missing)
			}
		}
		refused := map[string]any{"effect": "r1t1", "calls": []any{map[string]any{"tool_name": "nosuch"}}}
		events := []session.Event{
			s.run("s1"), s.say(session.DoorLLM, "s1", session.TypeToolCallsObserved, refused), s.answer("s1", "r1t2", "a"),
			s.run("s1"), s.answer("s1", "r2t1", "b"),
		}
		s.begin(events...)
		s.wantUnacked(events...)
		s.pass(time.Minute)
		s.wantAcked(events...)
		s.wantStored(events[4])
		if got := s.mem.said("s1"); !slices.IsSorted(got) {
			t.Errorf("notices were stored in the order %v", got)
		}
		if want := []string{"s1 TurnSettled r1t1", "s1 CallSettled r1t1c0"}; !slices.Equal(s.mem.progress, want) {
			t.Errorf("progress: got %v, want %v", s.mem.progress, want)
		}
		// Stored, told so late, stored again: three tries of each and no more.
		for c, n := range s.mem.calls {
			if c.op == "Notify" && n > 3 || c.op == "Ask" && n > 5 { // effects of one event are asked together
				t.Errorf("%s %s was tried %d times", c.op, c.who, n)
			}
		}
	})
}

func TestNothingIsAskedPastItsStart(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.mem.plan = of(fails, "Ask", "s1")
		e := s.run("s1")
		s.begin(e)
		s.pass(2 * time.Hour)
		s.mem.planned(nil)
		s.pass(time.Minute)
		s.wantAcked(e)
		if got, want := strings.Join(s.mem.asked("s1"), " "), "w1"; got != want {
			t.Errorf("asked after two hours: got %q, want %q", got, want)
		}
	})
}

func TestLargeAnswerStopsNoSession(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		text := strings.Repeat("<\u2028", session.TextBytesMax/4) // twice that in JSON
		events := []session.Event{s.run("s1"), s.answer("s1", "r1t1", text)}
		s.beginAcked(events...)
		s.wantStored(events[1])
		s.wantNoStop("s1")
	})
}

func TestHangingSnapshotBlocksNothing(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SnapshotEach: 1}, func(t *testing.T, s *stage) {
		s.mem.plan = on(hangs, func(c call) bool { return c.op == "PutSnapshot" })
		s.epoch()
		first, second := s.run("s1"), s.run("s2")
		s.deliver(first)
		s.start()
		s.deliver(second)
		s.pass(time.Minute)
		s.wantAcked(first, second)
	})
}

func TestAnInstallRecordWaitsForItsDescriptors(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.mem.plan = on(fails, func(c call) bool { return c.op == "PutBlob" })
		install := s.mem.append(session.DoorInstall, "", []byte(`{"v":1,"rules":1,"tools":[{"tool_id":"a.b","tool_name":"b","description":"d",
			"args_schema":{"type":"object"},"executor":{"kind":"effect","target":"host"},"availability":[{"kind":"always"}]}]}`))
		if _, err := session.ParseInstall(install.Payload); err != nil {
			t.Fatal(err)
		}
		s.begin(install)
		s.wantUnacked(install)
		s.mem.planned(nil)
		s.pass(time.Minute)
		s.wantAcked(install)
		if len(s.mem.blobs) == 0 {
			t.Error("no descriptor is stored")
		}
	})
}

// A lane learns late that its owner has given up, and delivers until then.
func TestALaneThatIsGivenUpIsEmptied(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.lane.lingers = make(chan struct{})
		s.mem.log[0].Payload = []byte(`{"v":1,"rules":2,"tools":[]}`)
		first := s.run("s1")
		s.begin(first)
		for range 4 {
			s.deliver(s.wrong("s1", batchMax)...)
		}
		select {
		case err := <-s.ended:
			t.Fatalf("run returned %v before its lane", err)
		default:
		}
		close(s.lane.lingers)
		err := s.stop()
		var unknown *session.UnknownRulesError
		if !errors.As(err, &unknown) {
			t.Errorf("run: got %v, want one that tells the rules", err)
		}
		s.wantUnacked(first)
	})
}

// A lane's memory does not grow with the length of a session or the number of
// sessions.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SessionsMax: 8}, func(t *testing.T, s *stage) {
		s.begin()
		for n := 1; n <= 500; n++ {
			s.deliver(s.run("s1"), s.answer("s1", fmt.Sprintf("r%dt1", n), "a"))
		}
		if got, want := len(s.actor.sessions["s1"].emitted), len(s.actor.sessions["s1"].state.Open()); got != want {
			t.Errorf("%d names are remembered as asked, want the %d that are open", got, want)
		}
		for c, n := range s.mem.calls {
			if c.op == "Ask" && n != 1 {
				t.Errorf("%s was asked %d times", c.who, n)
			}
		}
		for n := range 40 {
			last := s.run(fmt.Sprintf("e%d", n))
			s.deliver(last)
			s.wantStored(last)
		}
		if got := len(s.actor.sessions); got > 8 {
			t.Errorf("%d sessions are in memory, want at most 8", got)
		}
		again := s.answer("s1", "r1t1", "b")
		s.deliverAcked(again)
		s.wantStored(again)
	})
}

// While a wake can't be stored, its session goes on; its events are not
// acknowledged, and no snapshot of later states is stored.
func TestOnlyAcknowledgementsWaitForWakes(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SnapshotEach: 1}, func(t *testing.T, s *stage) {
		blocked := true
		s.mem.plan = on(fails, func(c call) bool {
			s.mem.mu.Lock()
			defer s.mem.mu.Unlock()
			return blocked && c.op == "Ask" && strings.HasPrefix(c.who, "w")
		})
		events := []session.Event{s.run("s1"), s.answer("s1", "r1t1", "a"), s.run("s1"), s.answer("s1", "r2t1", "b")}
		s.begin(events...)
		s.wantUnacked(events...)
		for _, name := range []string{"s1 r1t1", "s1 r2t1"} {
			if _, asked := s.mem.effects[name]; !asked {
				t.Errorf("%s is not asked: it waits for a wake", name)
			}
		}
		if len(s.mem.snapshots) > 0 {
			t.Errorf("%d snapshots of states whose wakes are not stored", len(s.mem.snapshots))
		}
		s.mem.mu.Lock()
		blocked = false
		s.mem.mu.Unlock()
		s.pass(time.Minute)
		s.wantAcked(events...)
		s.wantStored(events[3])
		if len(s.mem.snapshots) == 0 {
			t.Error("no snapshot")
		}
	})
}

// A stored message costs more than its lines.
func TestNoticesOfAnEventAreOneMessage(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(_ *testing.T, s *stage) {
		s.begin()
		s.deliver(s.run("s1"), s.run("s1"), s.answer("s1", "r1t1", "done"))
		s.pass(time.Minute)
		stored := 0
		for c, n := range s.mem.calls {
			if c.op == "Notify" {
				stored += n
			}
		}
		if got, want := s.mem.said("s1"), []uint64{1, 2, 3, 4, 5}; !slices.Equal(got, want) || stored != 3 {
			s.t.Errorf("%d messages have the notices %v, want 3 with %v", stored, got, want)
		}
	})
}

func TestLargeNoticesOfAnEventAreSeveralMessages(t *testing.T) {
	t.Parallel()
	said := func(n uint64, size int) session.Notice {
		return session.Notice{N: n, Type: session.NoticeSessionQuarantined, Session: "s1", Data: session.SessionQuarantined{Reason: strings.Repeat("x", size)}}
	}
	half := session.NoticeBytesMax / 2
	var got []uint64
	for _, o := range appendNotices(nil, "s1", []session.Notice{said(3, 10), said(4, half-500), said(5, half-500), said(6, half), said(7, 10)}) {
		if got = append(got, o.N); len(o.Notice) > session.NoticeBytesMax {
			t.Errorf("a message has %d bytes", len(o.Notice))
		}
	}
	if want := []uint64{5, 7}; !slices.Equal(got, want) {
		t.Errorf("the last notices of the messages: got %v, want %v", got, want)
	}
}
