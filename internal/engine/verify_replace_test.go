package engine

// What is tested here: a session whose snapshot is wrong is stopped when the
// right one is in its place, and not before, since it is released to that.

import (
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refold/refold/codec"
)

// onWrongSnapshot plays a session up to an altered snapshot that is found when it is
// loaded, with calls as planned.
func onWrongSnapshot(t *testing.T, plan func(call) outcome, play func(t *testing.T, s *stage, right codec.Hash)) {
	t.Helper()
	opts := Options{SnapshotEach: 4, VerifyPart: 1}
	onStage(t, opts, func(t *testing.T, s *stage) {
		slept(s)
		s = s.killed(time.Second, opts)
		defer func() {
			s.end()
		}()
		_, right, _ := s.alter("s1")
		s.lane.unowned.Store(false)
		s.mem.planned(plan)
		s.epoch()
		s.deliver(s.run("s1"))
		play(t, s, right)
	})
}

// wantReleasedRight releases the session, and looks at what it goes on from.
func (s *stage) wantReleasedRight() {
	s.t.Helper()
	s.mem.checkSnapshots(s.t)
	s.host.opts.VerifyPart = 0 // nothing but the snapshot may set it right
	s.mem.release("s1")
	after := s.answer("s1", "r5t1", "a")
	s.deliver(after)
	s.pass(2 * recheckEvery)
	s.wantStored(after)
	s.wantState(after)
}

// While the right snapshot can't be stored, because storing fails or hangs, the
// session is not stopped, and the lane goes on.
func TestASessionIsStoppedWhenItsSnapshotIsRight(t *testing.T) {
	t.Parallel()
	for name, become := range map[string]outcome{"fails": fails, "hangs": hangs} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onWrongSnapshot(t, of(become, "PutSnapshot", "s1"), func(t *testing.T, s *stage, _ codec.Hash) {
				s.pass(time.Minute)
				s.wantNoStop("s1")
				other := s.answer("s2", "r1t1", "a")
				s.deliver(other)
				s.pass(snapshotWithin) // it may be trying again
				s.wantAcked(other)
				s.mem.planned(nil)
				s.pass(time.Minute)
				if s.stopOf("s1") == nil {
					t.Fatal("it goes on, with the right snapshot in the wrong one's place")
				}
				s.wantReleasedRight()
			})
		})
	}
}

// Another host owns the lane while the right snapshot can't be stored. The lane
// comes back with the same session in memory.
func TestAWrongSessionIsStoppedWhenTheLaneComesBack(t *testing.T) {
	t.Parallel()
	onWrongSnapshot(t, of(fails, "PutSnapshot", "s1"), func(t *testing.T, s *stage, _ codec.Hash) {
		s.lane.unowned.Store(true)
		s.mem.planned(nil)
		s.pass(time.Minute)
		if s.stopOf("s1") != nil {
			t.Error("it is stopped by who does not own the lane")
		}
		s.lane.unowned.Store(false)
		s.pass(time.Minute)
		if s.stopOf("s1") == nil {
			t.Fatal("it goes on")
		}
		s.wantReleasedRight()
	})
}

// A session is stopped even if its wrong snapshot can't be kept, and the reason
// says so.
func TestASessionIsStoppedWithoutItsEvidence(t *testing.T) {
	t.Parallel()
	var replaced atomic.Bool
	onWrongSnapshot(t, func(c call) outcome {
		if c.op == "PutSnapshot" && c.sid == "s1" {
			replaced.Store(true)
		}
		if c.op == "PutBlob" && replaced.Load() { // what a load puts comes before
			return fails
		}
		return works
	}, func(t *testing.T, s *stage, right codec.Hash) {
		stop := s.stopOf("s1")
		if stop == nil {
			t.Fatal("it goes on")
		}
		for _, want := range []string{right.String(), "its bytes could not be kept", errFlaky.Error()} {
			if !strings.Contains(stop.Reason, want) {
				t.Errorf("the reason is %q, which does not tell %q", stop.Reason, want)
			}
		}
		s.wantReleasedRight()
	})
}

// A queued snapshot of a state that turns out to be wrong is not stored: it would
// replace the right one.
func TestWaitingSnapshotOfAWrongStateIsDropped(t *testing.T) {
	t.Parallel()
	h := newHost(newMemory(t), slog.New(slog.DiscardHandler), Options{Lanes: 1})
	l := h.NewLane(0, func() bool { return true })
	l.Step(&EpochStarted{}, time.Now())
	l.Ready(false)
	l.put(&snapshot{actor: &actor{sid: "s1"}}, &snapshot{actor: &actor{sid: "s2"}})
	l.Step(&mismatch{sid: "s1", cause: &snapshotError{seq: 4}}, time.Now())
	r := l.Ready(false)
	if got := len(r.Snapshots); got != 1 || r.Snapshots[0].String() != "puts the snapshot of s2" {
		t.Errorf("got %d snapshots, %v; want that of s2 alone", got, r.Snapshots)
	}
	if !slices.ContainsFunc(r.Work, func(w Work) bool { return w.String() == "replaces the snapshot of s1" }) {
		t.Errorf("got %v, want the snapshot of s1 replaced", r.Work)
	}
}
