package engine

// What is read beside a snapshot's restoring: begun before that ends, and ended
// when nobody needs it.

import (
	"fmt"
	"sync"
	"testing"

	"github.com/refold/refold/actors/session"
)

// slept is a host with one session asleep, whose snapshot knows of its events
// set and first, and one event that it has behind that.
func (s *stage) slept() (again *stage, set, first, next session.Event) {
	s.t.Helper()
	set, first = s.set("s1", registry("b", "a")), s.run("s1")
	s.epoch()
	s.deliver(set, first)
	s.start()
	s.wantAcked(set, first)
	again = s.again(Options{})
	clear(s.mem.calls)
	return again, set, first, again.answer("s1", "r1t1", "x")
}

// wakesBy starts the host, and waits until an event that its lane has is
// acknowledged.
func (s *stage) wakesBy(e session.Event) {
	s.t.Helper()
	s.epoch()
	s.deliver(e)
	s.start()
	s.wantAcked(e)
}

// ends ends the host.
func (s *stage) ends() {
	s.t.Helper()
	if err := s.stop(); err != nil {
		s.t.Errorf("run: %v", err)
	}
}

// A registry of the snapshot is looked up while it is restored. Here that takes
// until what is behind the snapshot is asked for.
func TestWhatIsBehindASnapshotIsReadWhileItIsRestored(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SnapshotEach: 1}, func(t *testing.T, s *stage) {
		again, set, first, next := s.slept()
		behind := make(chan struct{})
		asked := sync.OnceFunc(func() { close(behind) })
		again.mem.plan = func(c call) outcome {
			switch c {
			case call{op: "ReadSession", sid: "s1", who: fmt.Sprintf("%d-%d", set.Seq, set.Seq)}:
				<-behind
			case call{op: "ReadSession", sid: "s1", who: fmt.Sprintf("%d-%d", first.Seq+1, next.Seq)}:
				asked()
			}
			return works
		}
		again.wakesBy(next)
		again.wantTools("s1", "a", "b")
		if got := again.reads("s1", first.Seq+1, next.Seq); got != 1 {
			t.Errorf("what is behind the snapshot was read %d times, want once", got)
		}
		again.ends()
	})
}

// A snapshot that does not count ends what is read for it, though nobody answers.
func TestWhatIsBehindASnapshotThatDoesNotCountIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SnapshotEach: 1}, func(t *testing.T, s *stage) {
		again, _, first, next := s.slept()
		data := again.mem.snapshots["s1"]
		data[len(data)/2] ^= 1
		again.mem.plan = on(hangs, func(c call) bool {
			return c == call{op: "ReadSession", sid: "s1", who: fmt.Sprintf("%d-%d", first.Seq+1, next.Seq)}
		})
		again.wakesBy(next)
		if got := again.reads("s1", 1, next.Seq); got != 1 {
			t.Errorf("the session's log was read %d times, want once", got)
		}
		clear(s.mem.snapshots) // it is of no log
		again.ends()
	})
}
