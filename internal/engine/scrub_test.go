package engine

// Rounds: what a load does not see, since it begins at a snapshot, is seen
// within a day, whether anything happens to the session or not.

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// alter replaces the snapshot of a session by one that is as good to look at,
// but of another state, and returns the hashes of both states.
func (s *stage) alter(sid string) (right, wrong codec.Hash) {
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
	return right, wrong
}

// slept plays a session of some runs up to a snapshot of it.
func slept(s *stage) {
	s.begin()
	for n := 1; n <= 4; n++ {
		s.deliver(s.run("s1"), s.answer("s1", fmt.Sprintf("r%dt1", n), "a"))
	}
	s.deliver(s.run("s2"))
}

// rewrite alters the text of a session's first event in the log: no event is
// lost, and none has another sequence.
func (s *stage) rewrite(sid string) {
	s.t.Helper()
	s.mem.mu.Lock()
	defer s.mem.mu.Unlock()
	for i, e := range s.mem.log {
		if e.Session == sid {
			altered := bytes.Replace(e.Payload, []byte(`"hi"`), []byte(`"ho"`), 1)
			if bytes.Equal(altered, e.Payload) {
				s.t.Fatalf("nothing to alter in %s", e.Payload)
			}
			s.mem.log[i].Payload = altered
			return
		}
	}
	s.t.Fatalf("no event of %s", sid)
}

// The altered event is before the snapshot, and the session is idle. Only this
// session is stopped; an unaltered one goes on.
func TestScrubFindsAnAlteredEvent(t *testing.T) {
	t.Parallel()
	opts := Options{SnapshotEach: 2}
	onStage(t, opts, func(t *testing.T, s *stage) {
		slept(s)
		s.deliver(s.answer("s2", "r1t1", "a"))
		s = s.killed(time.Second, opts)
		s.lane.unowned.Store(false)
		s.epoch()
		s.deliver(s.run("s3"))
		s.rewrite("s1")
		s.pass(dailyFirst - time.Minute)
		s.wantNoStop("s1")
		s.pass(time.Hour)
		stop := s.stopOf("s1")
		if stop == nil || !strings.Contains(stop.Reason, "one is not what it was") {
			t.Fatalf("quarantine: got %+v, want one of an event that is not what it was", stop)
		}
		s.wantNoStop("s2")
		next := s.run("s2")
		s.deliverAcked(next)
		s.wantStored(next)
		// The next round comes a day later, and finds what was altered since.
		s.rewrite("s2")
		s.pass(dailyEvery / 2)
		s.wantNoStop("s2")
		s.pass(dailyEvery)
		if stop := s.stopOf("s2"); stop == nil {
			t.Error("the second round did not find it")
		}
		s.mem.release("s1") // they go on from the altered events, and have snapshots of these
		s.mem.release("s2")
		s.pass(2 * recheckEvery)
		s.wantNoStop("s1")
		s.end()
	})
}

// A snapshot whose hash matches its bytes, but whose state is not what the log
// folds to, is found, and only its session is stopped: after the events that are
// folded. A release folds it from the log's beginning, and stores the right
// snapshot at once.
func TestScrubFindsAnAlteredSnapshot(t *testing.T) {
	t.Parallel()
	for name, loaded := range map[string]bool{"of a session in memory": true, "of a session that is not loaded": false} {
		onStageOf(t, name, Options{SnapshotEach: 4}, func(t *testing.T, s *stage) {
			slept(s)
			s = s.killed(time.Second, Options{SnapshotEach: 4})
			right, wrong := s.alter("s1")
			s.lane.unowned.Store(false)
			s.epoch()
			s.deliver(s.run("s2"))
			var next session.Event
			if loaded {
				next = s.run("s1")
				s.deliver(next)
			}
			s.wantNoStop("s1")
			s.pass(2 * dailyFirst)
			stop := s.stopOf("s1")
			if stop == nil || !strings.Contains(stop.Reason, right.String()) || !strings.Contains(stop.Reason, wrong.String()) {
				t.Fatalf("quarantine: got %+v, want one with the states %s and %s", stop, right, wrong)
			}
			if loaded && stop.Seq != next.Seq+1 {
				t.Errorf("it is stopped at %d, want %d: behind what was folded", stop.Seq, next.Seq+1)
			}
			s.wantNoStop("s2")
			after := s.run("s1")
			s.deliver(after)
			s.wantAcked(after)
			s.mem.release("s1")
			s.pass(2 * recheckEvery)
			s.wantState(after)
			s.mem.checkSnapshots(t)
			s.pass(dailyEvery)
			s.wantNoStop("s1")
			s.end()
		})
	}
}

// A session whose snapshot is wrong is stopped only after the pending work on it.
func TestFoundSessionWaitsForItsLoad(t *testing.T) {
	t.Parallel()
	h := newHost(newMemory(t), slog.New(slog.DiscardHandler), Options{Lanes: 1})
	l := h.NewLane(0, func() bool { return true })
	stops := func(w Work) bool { return w.String() == "quarantines s1" }
	l.occupy("s1")
	l.Step(&found{"s1", &damageError{"wrong", 4}}, time.Now())
	if r := l.Ready(false); slices.ContainsFunc(r.Work, stops) {
		t.Errorf("got %v: it is stopped while work on it is pending", r.Work)
	}
	l.free("s1")
	l.Step(Tick{}, time.Now())
	if r := l.Ready(false); !slices.ContainsFunc(r.Work, stops) {
		t.Errorf("got %v, want s1 quarantined", r.Work)
	}
}

// NoScrub turns scrubs off, and a host does not scrub another host's lane.
func TestNoScrubWhenTurnedOffOrUnowned(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ off, unowned bool }{"turned off": {off: true}, "another's lane": {unowned: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := Options{SnapshotEach: 2, NoScrub: c.off}
			onStage(t, opts, func(t *testing.T, s *stage) {
				slept(s)
				s = s.killed(time.Second, opts)
				s.lane.unowned.Store(c.unowned)
				if !c.unowned {
					s.epoch()
				}
				s.pass(2 * dailyEvery)
				if n := s.mem.calls[call{op: "ListSnapshots"}]; n > 0 {
					t.Errorf("snapshots were listed %d times", n)
				}
				s.end()
			})
		})
	}
}

// A comparison that hangs delays no event, and ends.
func TestScrubRunsConcurrentlyWithTheLane(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SnapshotEach: 2}, func(t *testing.T, s *stage) {
		var hanging atomic.Int64
		s.begin()
		s.mem.planned(func(c call) outcome {
			if c.op == "ReadSession" && strings.HasPrefix(c.who, "1-") && s.mem.snapshotted(c.sid) {
				hanging.Add(1)
				return hangs
			}
			return works
		})
		for n := 1; n <= 3; n++ {
			for _, sid := range []string{"s1", "s2"} {
				s.deliverAcked(s.run(sid), s.answer(sid, fmt.Sprintf("r%dt1", n), "a"))
			}
			s.pass(dailyFirst / 2)
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

// The owner of lane 0 sweeps what failed uploads have left, once a day.
func TestUploadsAreSwept(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s = s.killed(time.Second, Options{})
		s.lane.unowned.Store(false)
		s.epoch()
		wants := func(after time.Duration, want int) {
			t.Helper()
			s.pass(after)
			if got := s.mem.count(call{op: "SweepBlobs"}); got != want {
				t.Errorf("swept %d times, want %d", got, want)
			}
		}
		wants(dailyFirst-time.Minute, 0)
		wants(2*time.Minute, 1)
		wants(dailyEvery/2, 1)
		wants(dailyEvery, 2)
		s.end()
	})
}
