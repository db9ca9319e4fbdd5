package engine

// Logs that have lost events, or have others than were folded: which session is
// stopped for it, by whom, with what said, and that nobody else is.

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
)

// erase takes single events out of the log and leaves holes.
func (d *depot) erase(seqs ...uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = slices.DeleteFunc(d.log, func(e session.Event) bool { return slices.Contains(seqs, e.Seq) })
}

// alter changes events where they stand.
func (d *depot) alter(change func(e *session.Event)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.log {
		d.log[i].Payload = bytes.Clone(d.log[i].Payload)
		change(&d.log[i])
	}
}

// after lets another host of the same world begin where this one is killed.
func (s *stage) after(opts Options) *stage {
	s.t.Helper()
	if s.cancel != nil {
		s.cancel()
		if err := <-s.ended; err != nil {
			s.t.Errorf("run: %v", err)
		}
		s.cancel = nil
	}
	other := newStage(s.t, s.mem, opts)
	other.begin()
	return other
}

// wantStopped checks that a session is quarantined from an event on, with a
// reason that has all parts and that its notice tells too.
func (s *stage) wantStopped(e session.Event, parts ...string) {
	s.t.Helper()
	stop := s.stopOf(e.Session)
	if stop == nil || stop.Seq != e.Seq {
		s.t.Errorf("quarantine of %s: got %+v, want one from %d on", e.Session, stop, e.Seq)
		return
	}
	for _, part := range parts {
		if !strings.Contains(stop.Reason, part) {
			s.t.Errorf("quarantine of %s: got %q, want one with %q", e.Session, stop.Reason, part)
		}
	}
	all := s.mem.notices[e.Session]
	if last := string(all[len(all)-1].data); !strings.Contains(last, session.NoticeSessionQuarantined) || !strings.Contains(last, parts[0]) {
		s.t.Errorf("the last notice of %s is %s, want the quarantine with its reason", e.Session, last)
	}
}

// tell lets s1 and s2 have two runs each, of four events, which one host folds
// that is killed then. The snapshot of s1 is of its first snapshotted events, if
// it has one. It returns the events of s1.
func tell(s *stage, snapshotted int) (events []session.Event) {
	s.t.Helper()
	s.begin()
	var kept []byte
	for i := range 4 {
		for _, sid := range []string{"s1", "s2", "s3"} {
			var e session.Event
			if i%2 == 0 {
				e = s.run(sid)
			} else {
				e = s.answer(sid, fmt.Sprintf("r%dt1", i/2+1), fmt.Sprintf("answer %d", i))
			}
			s.deliverAcked(e)
			if sid == "s1" {
				events = append(events, e)
			}
		}
		s.pass(time.Second)
		if i+1 == snapshotted {
			kept = s.mem.snapshots["s1"]
		}
	}
	s.mem.mu.Lock()
	defer s.mem.mu.Unlock()
	if s.mem.snapshots["s1"] = kept; kept == nil {
		delete(s.mem.snapshots, "s1")
	}
	return events
}

// damage is something that becomes of a log, and what is said of it.
type damage struct {
	name        string
	snapshotted int // events of s1 that are in its snapshot
	doubt       bool
	spoil       func(s *stage, of []session.Event)
	parts       []string // of the reason; none: nobody is stopped
}

func eraseOf(i int) func(*stage, []session.Event) {
	return func(s *stage, of []session.Event) { s.mem.erase(of[i].Seq) }
}

// elsewhere makes a hole that is none of s1's, and lets change have its way.
func elsewhere(change func(s *stage, of []session.Event)) func(*stage, []session.Event) {
	return func(s *stage, of []session.Event) {
		s.mem.erase(s.mem.history("s3", 1<<40)[1].Seq)
		if change != nil {
			change(s, of)
		}
	}
}

func alterOf(i int, from, to string) func(*stage, []session.Event) {
	return func(s *stage, of []session.Event) {
		s.mem.alter(func(e *session.Event) {
			if e.Seq == of[i].Seq {
				e.Payload = bytes.Replace(e.Payload, []byte(from), []byte(to), 1)
			}
		})
	}
}

func swapOf(i, j int) func(*stage, []session.Event) {
	return func(s *stage, of []session.Event) {
		s.mem.alter(func(e *session.Event) {
			switch e.Seq {
			case of[i].Seq:
				e.Door, e.Payload = of[j].Door, of[j].Payload
			case of[j].Seq:
				e.Door, e.Payload = of[i].Door, of[i].Payload
			}
		})
	}
}

var damages = []damage{
	{name: "nothing", snapshotted: 4},
	{name: "another session's event", snapshotted: 4, spoil: elsewhere(nil)},
	{name: "nothing, and doubted", snapshotted: 4, doubt: true},
	{name: "nothing, doubted, no snapshot", doubt: true},

	{name: "the first event, lost", snapshotted: 4, spoil: eraseOf(0), parts: []string{"snapshot at 11: its state is ", "; expected 4 events up to there, found 3"}},
	{name: "an event before the snapshot, lost", snapshotted: 4, spoil: eraseOf(1), parts: []string{"snapshot at 11: its state is ", "; expected 4 events up to there, found 3"}},
	{name: "the snapshot's event, lost", snapshotted: 4, spoil: eraseOf(3), parts: []string{"snapshot at 11: the session has no event there; expected one with the leaf ", ", found none"}},
	{name: "the event behind the snapshot, lost", snapshotted: 2, spoil: eraseOf(2), parts: []string{"the notices about the event at 11", "number "}},
	{name: "the last event behind the snapshot, lost", snapshotted: 2, spoil: eraseOf(3), parts: []string{"its notice 5 is about an event: expected one at 11, found none there"}},
	{name: "an event without any snapshot, lost", spoil: eraseOf(1), parts: []string{"expected ", ", found "}},

	{name: "before the snapshot, altered", snapshotted: 4, spoil: elsewhere(alterOf(1, "answer 1", "answer 7")), parts: []string{"snapshot at 11: its state is ", "; expected the chain ", " of 4 events, found "}},
	{name: "before the snapshot, altered, doubted", snapshotted: 4, doubt: true, spoil: alterOf(0, "hi", "ho"), parts: []string{"snapshot at 11: its state is ", "; expected the chain ", " of 4 events, found "}},
	{name: "the snapshot's event, altered", snapshotted: 4, spoil: elsewhere(alterOf(3, "answer 3", "answer 7")), parts: []string{"snapshot at 11: its state is ", "; expected the chain ", " of 4 events, found "}},
	{name: "behind the snapshot, altered", snapshotted: 2, spoil: elsewhere(alterOf(2, "openai", "gemini")), parts: []string{"effect r2t1", "expected ", ", found "}},

	{name: "before the snapshot, in another order", snapshotted: 4, spoil: elsewhere(swapOf(1, 2)), parts: []string{"expected ", ", found "}},
	{name: "before the snapshot, in another order, doubted", snapshotted: 4, doubt: true, spoil: swapOf(1, 2), parts: []string{"expected ", ", found "}},
	{name: "behind the snapshot, in another order", snapshotted: 2, spoil: elsewhere(swapOf(2, 3)), parts: []string{"expected ", ", found "}},
}

// A session whose events have changed is stopped at its next load. Other sessions
// of the lane go on, and so does this one after a release. The log is not changed.
func TestADamagedLog(t *testing.T) {
	t.Parallel()
	for _, d := range damages {
		onStageOf(t, d.name, Options{SnapshotEach: 1}, func(t *testing.T, s *stage) {
			of := tell(s, d.snapshotted)
			if d.spoil != nil {
				d.spoil(s, of)
			}
			before := len(s.mem.log)
			other := s.after(Options{SnapshotEach: 1, Doubt: d.doubt})
			next, neighbour := other.run("s1"), other.run("s2")
			other.deliver(next, neighbour)
			other.pass(time.Minute)
			other.wantAcked(next, neighbour)
			other.wantStored(neighbour)
			other.wantNoStop("s2")
			if len(d.parts) == 0 {
				other.wantStored(next)
				other.wantNoStop("s1")
			} else {
				other.wantStopped(next, d.parts...)
			}
			if now := len(s.mem.log); now != before+2 {
				t.Errorf("the log has %d events, had %d and got 2", now, before)
			}
			delete(s.mem.snapshots, "s1") // it is of what was
			delete(s.mem.snapshots, "s3")
			other.end()
		})
	}
}

// After a release, a session goes on from what the log has, and no later host stops
// it again.
func TestReleasedDamagedSessionGoesOn(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SnapshotEach: 1}, func(t *testing.T, s *stage) {
		of := tell(s, 4)
		s.mem.erase(of[1].Seq)
		delete(s.mem.snapshots, "s3")
		other := s.after(Options{})
		next := other.run("s1")
		other.deliver(next)
		other.wantStopped(next, "expected 4 events up to there, found 3")
		s.mem.release("s1")
		other.pass(time.Minute)
		other.wantNoStop("s1")
		want := s.mem.judge("s1", next.Seq).state
		if got := other.actor.sessions["s1"].state; got.Count != 4 || got.Hash() != want.Hash() {
			t.Errorf("released, it is of %d events and %s, want 4 and %s", got.Count, got.Hash(), want.Hash())
		}
		third := other.after(Options{})
		last := third.run("s1")
		third.deliverAcked(last)
		third.wantNoStop("s1")
		third.end()
	})
}

// A session in memory is audited when an epoch begins: no other process may know
// what it was folded from.
func TestLossStopsASessionInMemory(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]int{"in the middle": 1, "the last": 3} {
		onStageOf(t, name, Options{}, func(t *testing.T, s *stage) {
			of := tell(s, 0)
			s.mem.effects, s.mem.notices = map[string][]byte{}, map[string][]notice{} // all forgotten
			s.mem.erase(of[lost].Seq)
			s.epoch()
			next, neighbour := s.run("s1"), s.run("s2")
			s.deliver(next, neighbour)
			s.pass(time.Minute)
			s.wantAcked(next, neighbour)
			s.wantStopped(next, "its state in memory", "expected ", ", found ")
			if s.stopOf("s2") != nil {
				t.Error("another session is stopped")
			}
		})
	}
}

// A delivered event is lost before it is folded.
func TestLostDeliveredEventStopsItsSession(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		lost, neighbour := s.run("s1"), s.run("s2")
		s.mem.erase(lost.Seq)
		s.begin(lost, neighbour)
		s.pass(time.Minute)
		s.wantAcked(lost, neighbour)
		s.wantStored(neighbour)
		s.wantStopped(lost, "was delivered: expected the event of the hash ", ", found none there")
	})
}
