package engine

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// alter replaces the snapshot of a session by one that is as good to look at,
// but of another state, and returns its bytes and the right hash.
func (s *stage) alter(sid string) (bad []byte, right, wrong codec.Hash) {
	s.t.Helper()
	s.mem.mu.Lock()
	defer s.mem.mu.Unlock()
	snap, err := session.ParseSnapshot(s.mem.snapshots[sid])
	if err != nil {
		s.t.Fatal(err)
	}
	var record session.Record
	if err := codec.Unmarshal(snap.State, &record); err != nil {
		s.t.Fatal(err)
	}
	record.Usage.InputTokens += 1000
	altered := session.State{Record: record}
	right, wrong = snap.Hash, altered.Hash()
	s.mem.snapshots[sid] = altered.Snapshot().Bytes()
	return s.mem.snapshots[sid], right, wrong
}

// slept plays a session of some runs up to a snapshot of it.
func slept(s *stage) {
	s.begin()
	for n := 1; n <= 4; n++ {
		s.deliver(s.run("s1"), s.answer("s1", fmt.Sprintf("r%dt1", n), "a"))
	}
	s.deliver(s.run("s2"))
}

// With VerifyPart, a snapshot whose hash matches its bytes, but whose state is not
// what the log folds to, is found at its load. Only this session is stopped. The
// snapshot's bytes are kept, the right one replaces it, and a release goes on from
// that.
func TestAnAlteredSnapshotIsFound(t *testing.T) {
	t.Parallel()
	opts := Options{SnapshotEach: 4, VerifyPart: 1}
	onStage(t, opts, func(t *testing.T, s *stage) {
		slept(s)
		s.wantNoStop("s1")
		s = s.killed(time.Second, opts)
		bad, right, wrong := s.alter("s1")
		s.lane.unowned.Store(false)
		s.epoch()
		next := s.run("s1")
		s.deliver(next)
		stop := s.stopOf("s1")
		if stop == nil {
			t.Fatal("the session goes on")
		}
		if stop.Seq != next.Seq+1 {
			t.Errorf("it is stopped at %d, want %d: behind what was folded", stop.Seq, next.Seq+1)
		}
		for _, want := range []string{"the snapshot at ", right.String(), wrong.String(), codec.RefOf(bad).String()} {
			if !strings.Contains(stop.Reason, want) {
				t.Errorf("the reason is %q, which does not tell %s", stop.Reason, want)
			}
		}
		if got := s.mem.blobs[codec.RefOf(bad)]; !bytes.Equal(got, bad) {
			t.Error("the altered snapshot is not kept")
		}
		other := s.answer("s2", "r1t1", "a")
		after := s.answer("s1", "r5t1", "a")
		s.deliver(other, after)
		s.wantAcked(next, other, after)
		s.wantStored(other)
		s.mem.checkSnapshots(t)
		s.mem.release("s1")
		s.pass(2 * recheckEvery)
		s.wantStored(after)
		s.end()
	})
}

// The same snapshot is used when none is verified.
func TestAlteredSnapshotIsUsedWithoutVerification(t *testing.T) {
	t.Parallel()
	opts := Options{SnapshotEach: 4}
	onStage(t, opts, func(t *testing.T, s *stage) {
		slept(s)
		s = s.killed(time.Second, opts)
		_, right, _ := s.alter("s1")
		s.lane.unowned.Store(false)
		s.epoch()
		next := s.run("s1")
		s.deliver(next)
		s.wantNoStop("s1")
		if got := s.actor.sessions["s1"].state.Usage.InputTokens; got != 1000 {
			t.Errorf("the state has %d tokens, want the 1000 of the altered snapshot (right is %s)", got, right)
		}
		s.mem.mu.Lock()
		clear(s.mem.snapshots)
		s.mem.mu.Unlock()
		s.end()
	})
}

// A verification that hangs delays no event, and no second one begins.
func TestVerificationRunsConcurrentlyWithTheLane(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SnapshotEach: 2, VerifyPart: 1}, func(t *testing.T, s *stage) {
		var hanging atomic.Int64
		s.mem.plan = func(c call) outcome {
			if c.op == "ReadSession" && strings.HasPrefix(c.who, "1-") && s.mem.snapshotted(c.sid) {
				hanging.Add(1)
				return hangs
			}
			return works
		}
		s.begin()
		for n := 1; n <= 3; n++ {
			for _, sid := range []string{"s1", "s2"} {
				asked, said := s.run(sid), s.answer(sid, fmt.Sprintf("r%dt1", n), "a")
				s.deliverAcked(asked, said)
			}
		}
		if n := hanging.Load(); n != 1 {
			t.Errorf("%d sessions are refolded at a time, want 1", n)
		}
	})
}

// snapshotted reports whether a session has a snapshot.
func (d *depot) snapshotted(sid string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.snapshots[sid] != nil
}
