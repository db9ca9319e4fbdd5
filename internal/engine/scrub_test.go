package engine

// Rounds: what a load does not see, since it begins at a snapshot, is seen
// within a day, whether anything happens to the session or not.

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// seldom is a part of the snapshots that chance does not choose here.
const seldom = 1e-12

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
	opts := Options{SnapshotEach: 2, VerifyPart: seldom}
	onStage(t, opts, func(t *testing.T, s *stage) {
		slept(s)
		s.deliver(s.answer("s2", "r1t1", "a"))
		s = s.killed(time.Second, opts)
		s.lane.unowned.Store(false)
		s.epoch()
		s.deliver(s.run("s3"))
		s.rewrite("s1")
		s.pass(scrubFirst - time.Minute)
		s.wantNoStop("s1")
		s.pass(time.Hour)
		stop := s.stopOf("s1")
		if stop == nil || !strings.Contains(stop.Reason, "is not what the log folds to") {
			t.Fatalf("quarantine: got %+v, want one of what the log folds to", stop)
		}
		s.wantNoStop("s2")
		next := s.run("s2")
		s.deliverAcked(next)
		s.wantStored(next)
		// The next round comes a day later, and finds what was altered since.
		s.rewrite("s2")
		s.pass(scrubEvery / 2)
		s.wantNoStop("s2")
		s.pass(scrubEvery)
		if stop := s.stopOf("s2"); stop == nil {
			t.Error("the second round did not find it")
		}
		s.end()
	})
}

// VerifyPart 0 turns scrubs off, and a host does not scrub another host's lane.
func TestNoScrubWhenTurnedOffOrUnowned(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		part    float64
		unowned bool
	}{"turned off": {part: 0}, "another's lane": {part: seldom, unowned: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := Options{SnapshotEach: 2, VerifyPart: c.part}
			onStage(t, opts, func(t *testing.T, s *stage) {
				slept(s)
				s = s.killed(time.Second, opts)
				s.lane.unowned.Store(c.unowned)
				if !c.unowned {
					s.epoch()
				}
				s.pass(2 * scrubEvery)
				if n := s.mem.calls[call{op: "ListSnapshots"}]; n > 0 {
					t.Errorf("snapshots were listed %d times", n)
				}
				s.end()
			})
		})
	}
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
		wants(scrubFirst-time.Minute, 0)
		wants(2*time.Minute, 1)
		wants(reclaimEvery/2, 1)
		wants(reclaimEvery, 2)
		s.end()
	})
}
