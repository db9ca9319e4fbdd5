package engine

// A session whose load or outputs fail alone is quarantined, its lane goes on, and
// the success of what failed releases it. What fails for everybody stops nobody.

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/natsio"
)

var errOdd = errors.New("nobody knows why")

func TestIsolation(t *testing.T) {
	t.Parallel()
	full := fmt.Errorf("store: %w", natsio.ErrStreamFull)
	type round struct {
		cause, others error
	}
	alone, all, unknown := round{errOdd, nil}, round{errOdd, errFlaky}, round{errOdd, errNoOthers}
	for name, c := range map[string]struct {
		rounds []round
		want   int // the number of the round that isolates; 0: none
	}{
		"alone":                         {[]round{alone, alone, alone, alone}, roundsMax},
		"too short":                     {[]round{alone, alone, alone}, 0},
		"others fail too":               {[]round{all, all, all, all, all, all}, 0},
		"others failed in between":      {[]round{alone, alone, alone, all, alone, alone, alone}, 0},
		"and alone again":               {[]round{alone, all, alone, alone, alone, alone}, 6},
		"nobody to compare with":        {[]round{unknown, unknown, unknown, unknown, unknown}, 0},
		"nobody in between":             {[]round{alone, alone, unknown, alone, alone}, 5},
		"full":                          {[]round{{full, nil}, {full, nil}, {full, nil}, {full, nil}, {full, nil}}, 0},
		"full, and nobody compares":     {[]round{{full, errNoOthers}, {full, errNoOthers}, {full, errNoOthers}, {full, errNoOthers}}, 0},
		"full in between resets":        {[]round{alone, alone, alone, {full, nil}, alone}, 0},
		"no room is full":               {[]round{{natsio.ErrNoRoom, nil}, {natsio.ErrNoRoom, nil}, {natsio.ErrNoRoom, nil}, {natsio.ErrNoRoom, nil}}, 0},
		"a timeout of one session only": {[]round{{natsio.ErrClosed, nil}, alone, alone, alone}, roundsMax},
	} {
		var i isolation
		got, at := 0, time.Unix(0, 0)
		for n, r := range c.rounds {
			if at = at.Add(roundFor); i.failed(r.cause, r.others, at) && got == 0 {
				got = n + 1
			}
		}
		if got != c.want {
			t.Errorf("%s: isolated in round %d, want %d", name, got, c.want)
		}
	}
}

// Another session must have stored something since the failure began.
func TestSuccesses(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	var all, batch successes
	batch.note(kindNotice, "s2")
	batch.note(kindNotice, "s1")
	all.add(&batch, at(10))
	for _, c := range []struct {
		kind  outputKind
		sid   string
		since int
		want  bool
	}{
		{kindNotice, "s1", 10, true}, {kindNotice, "s2", 10, true}, {kindNotice, "s3", 10, true},
		{kindNotice, "s1", 11, false}, {kindEffect, "s1", 10, false}, {kindWake, "s1", 10, false}, {kindBlob, "s1", 10, true},
	} {
		if got := all.since(c.kind, c.sid, at(c.since)); got != c.want {
			t.Errorf("kind %d for %s since %d: got %v", c.kind, c.sid, c.since, got)
		}
	}
	var alone successes
	alone.note(kindNotice, "s1")
	all = successes{}
	all.add(&alone, at(10))
	if all.since(kindNotice, "s1", at(1)) {
		t.Error("the successes of a session count for itself")
	}
}

// oddly returns a plan in which some calls of one session fail.
func oddly(sid string, ops ...string) func(call) outcome {
	return func(c call) outcome {
		for _, op := range ops {
			if c.sid == sid && (c.op == op || op == "Wake" && c.op == "Ask" && strings.HasPrefix(c.who, "w")) {
				return fails
			}
		}
		return works
	}
}

// hanging is a plan whose failing calls hang instead.
func hanging(plan func(call) outcome) func(call) outcome {
	return func(c call) outcome {
		if plan(c) == fails {
			return hangs
		}
		return works
	}
}

// A lane that takes no events while the session fails, at the beginning of an epoch, has
// no other session to compare with. Nor has one that no other session uses.
func TestALoneSessionNeverStopsALane(t *testing.T) {
	t.Parallel()
	for name, op := range map[string]string{
		"its effects can't be stored": "Ask", "its notices can't be stored": "Notify", "its wakes can't be scheduled": "Wake",
	} {
		onStageOf(t, name, Options{}, func(t *testing.T, s *stage) {
			s.mem.planned(oddly("s1", op))
			odd := s.run("s1")
			s.begin(odd)
			s.epoch()
			other := s.run("s2")
			s.deliver(other)
			s.pass(7 * roundFor)
			s.wantAcked(odd, other)
			s.wantStored(other)
			if stop := s.stopOf("s1"); stop == nil || stop.Seq != odd.Seq || !stop.Retried {
				t.Errorf("quarantine: got %+v, want one at %d", stop, odd.Seq)
			}
			s.mem.planned(nil)
			s.pass(retriedEvery + 3*recheckEvery)
			s.wantNoStop("s1")
			s.wantStored(odd)
		})
	}
}

// What hangs for one session only ends a round, too, and others don't wait for it.
func TestASessionThatHangsNeverStopsALane(t *testing.T) {
	t.Parallel()
	for name, op := range map[string]string{
		"its snapshot": "GetSnapshot", "its effects": "Ask", "its notices": "Notify", "its wakes": "Wake",
	} {
		onStageOf(t, name, Options{}, func(t *testing.T, s *stage) {
			s.begin()
			s.deliver(s.run("s1"))
			s.pass(time.Second)
			s.actor.leave("s1")
			s.mem.planned(hanging(oddly("s1", op)))
			odd := s.run("s1")
			var others []session.Event
			for i := range 40 {
				others = append(others, s.run(fmt.Sprintf("o%d", i)))
			}
			s.deliver(append(others, odd)...)
			s.pass(5 * stalledAfter)
			s.wantAcked(append(others, odd)...)
			if stop := s.stopOf("s1"); stop == nil || stop.Seq != odd.Seq || !stop.Retried {
				t.Errorf("quarantine: got %+v, want one at %d", stop, odd.Seq)
			}
			for _, e := range others {
				s.wantNoStop(e.Session)
			}
			s.mem.planned(nil)
			s.pass(2*retriedEvery + 3*recheckEvery)
			s.wantNoStop("s1")
			s.wantStored(odd)
		})
	}
}

// The quarantine of a session can't be stored, while other keys of the bucket can: its
// owner stops the session without it, and stores it when that is possible.
func TestAQuarantineThatCantBeStoredStopsNoLane(t *testing.T) {
	t.Parallel()
	for name, become := range map[string]func(func(call) outcome) func(call) outcome{
		"refused": func(plan func(call) outcome) func(call) outcome { return plan }, "hangs": hanging,
	} {
		onStageOf(t, name, Options{}, func(t *testing.T, s *stage) {
			s.mem.planned(become(oddly("s1", "PutQuarantine", "Ask")))
			odd, other := s.run("s1"), s.run("s2")
			s.begin(odd, other)
			s.pass(5 * stalledAfter)
			s.wantAcked(odd, other)
			later := s.run("s1")
			s.deliver(later)
			s.pass(2 * retriedEvery)
			s.wantAcked(later)
			if asked := s.mem.asked("s1"); len(asked) > 0 {
				t.Errorf("the stopped session asks for %v", asked)
			}
			s.mem.planned(oddly("s1", "Ask"))
			s.pass(2 * recheckEvery)
			if stop := s.stopOf("s1"); stop == nil || stop.Seq != odd.Seq {
				t.Errorf("quarantine: got %+v, want one at %d", stop, odd.Seq)
			}
			s.mem.planned(nil)
			s.pass(retriedEvery + 3*recheckEvery)
			s.wantNoStop("s1")
			if asked := s.mem.asked("s1"); len(asked) == 0 {
				t.Error("the released session asks for nothing")
			}
		})
	}
}

// Nor does a session stop without its quarantine because no key can be stored.
func TestABucketThatTakesNothingStopsNobody(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.mem.planned(func(c call) outcome {
			if c.op == "PutQuarantine" {
				return fails
			}
			return oddly("s1", "Ask")(c)
		})
		odd, other := s.run("s1"), s.run("s2")
		s.begin(odd, other)
		s.pass(3 * time.Minute)
		s.wantUnacked(odd)
		s.mem.planned(nil)
		s.pass(retriedEvery + recheckEvery)
		s.wantAcked(odd, other)
		s.wantStored(odd)
	})
}

// allOf returns a plan in which some calls of all sessions fail.
func allOf(ops ...string) func(call) outcome {
	return func(c call) outcome {
		for _, op := range ops {
			if c.op == op {
				return fails
			}
		}
		return works
	}
}

func TestOneSessionNeverStopsALane(t *testing.T) {
	t.Parallel()
	for name, ops := range map[string][]string{
		"its snapshot can't be read": {"GetSnapshot"}, "its events can't be read": {"ReadSession", "ReadNext", "FirstSeqs"},
		"its effects can't be stored": {"Ask"}, "its notices can't be stored": {"Notify"}, "its wakes can't be scheduled": {"Wake"},
	} {
		onStageOf(t, name, Options{}, func(t *testing.T, s *stage) {
			s.begin()
			old := s.run("s1") // so that its later event is not its first
			s.deliver(old)
			s.pass(time.Second)
			s.actor.leave("s1")
			s.mem.planned(oddly("s1", ops...))
			odd := s.run("s1")
			s.deliver(odd)
			var others []session.Event
			for i := range 40 {
				others = append(others, s.run(fmt.Sprintf("o%d", i)))
			}
			s.deliver(others...)
			s.pass(roundFor)
			s.wantUnacked(odd)
			s.pass(6 * roundFor)
			s.wantAcked(append(others, odd)...)
			stop := s.stopOf("s1")
			if stop == nil || stop.Seq != odd.Seq || !stop.Retried || !strings.Contains(stop.Reason, errFlaky.Error()) {
				t.Fatalf("quarantine: got %+v, want one at %d with the cause", stop, odd.Seq)
			}
			s.wantView("s1", errFlaky.Error())
			later := s.run("s1")
			s.deliver(later)
			s.pass(3 * retriedEvery)
			if s.stopOf("s1") == nil {
				t.Error("the session is released although it still fails")
			}
			s.mem.planned(nil)
			s.pass(retriedEvery + 3*recheckEvery)
			s.wantNoStop("s1")
			s.wantStored(later)
		})
	}
}

func TestWhatFailsForAllStopsNobody(t *testing.T) {
	t.Parallel()
	for name, plan := range map[string]func(call) outcome{
		"no snapshot can be read": allOf("GetSnapshot"), "the log can't be read": allOf("ReadSession", "ReadNext", "FirstSeqs", "LastSeq", "EventAt"),
		"no effect can be stored": allOf("Ask"), "no notice can be stored": allOf("Notify"), "no stream answers": allOf("NewestOutputs", "Ask", "Notify"),
		"one fails, and the streams don't answer": func(c call) outcome {
			if c.op == "NewestOutputs" || c.sid == "s1" && c.op == "Notify" {
				return fails
			}
			return works
		},
	} {
		onStageOf(t, name, Options{}, func(t *testing.T, s *stage) {
			s.begin()
			s.deliver(s.run("s1"), s.run("s2"))
			s.pass(time.Second)
			s.actor.leave("s1")
			s.actor.leave("s2")
			s.mem.planned(plan)
			one, two := s.run("s1"), s.run("s2")
			s.deliver(one, two)
			s.pass(10 * time.Minute)
			s.wantNoStop("s1")
			s.wantNoStop("s2")
			s.mem.planned(nil)
			s.pass(time.Minute)
			s.wantAcked(one, two)
			s.wantStored(one)
			s.wantStored(two)
		})
	}
}

// wantView wants the view of a quarantined session to say so.
func (s *stage) wantView(sid, reason string) {
	s.t.Helper()
	data, err := s.host.View(s.t.Context(), sid)
	if err != nil {
		s.t.Errorf("view: %v", err)
		return
	}
	var v session.View
	if err := json.Unmarshal(data, &v); err != nil {
		s.t.Fatal(err)
	}
	if q := v.Quarantined; v.Session != sid || q == nil || q.Seq == 0 || !strings.Contains(q.Reason, reason) {
		s.t.Errorf("the view says %+v of %q, want a quarantine because of %q", q, v.Session, reason)
	}
}
