package engine

// A session that is not in memory: its snapshot, and what it has behind that.

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
)

// slept is a host with one session asleep, which has one event behind its
// snapshot.
func (s *stage) slept() (again *stage, next session.Event) {
	s.t.Helper()
	s.beginAcked(s.set("s1", registry("b", "a")), s.run("s1"))
	again = s.again(Options{})
	clear(s.mem.calls)
	return again, again.answer("s1", "r1t1", "x")
}

// The last event of a sleeping session wakes it. The number of its events tells the
// load how many to read. If that number is unknown, or events are missing, the load
// reads the log up to the delivered event.
func TestASessionIsLoadedByTheNumberOfItsEvents(t *testing.T) {
	t.Parallel()
	lags := func(at int) func(*stage, []session.Event) {
		return func(s *stage, events []session.Event) { s.mem.lagging = events[at].Seq }
	}
	for _, c := range []struct {
		name   string
		events int // behind the snapshot, but for the last one
		spoil  func(s *stage, events []session.Event)
		asked  int  // how many ReadNext is asked for; -1: it is not
		scan   bool // all up to the last one is read
	}{
		{name: "one", events: 1, asked: 1},
		{name: "some", events: 5, asked: 5},
		{name: "it has got more", events: 3, asked: 5, spoil: func(s *stage, _ []session.Event) { s.wrong("s1", 2) }},
		{name: "the log has lost some", events: 3, asked: -1, scan: true, spoil: func(s *stage, _ []session.Event) {
			s.mem.lost = 1000
			s.wrong("s2", 1)
		}},
		{name: "no number", events: 3, asked: -1, scan: true, spoil: func(s *stage, _ []session.Event) {
			s.mem.plan = on(fails, func(c call) bool { return c.op == "CountEvents" })
		}},
		{name: "a replica has none", events: 3, asked: 3, scan: true, spoil: lags(0)},
		{name: "a replica lacks one", events: 3, asked: 3, scan: true, spoil: lags(2)},
		{name: "a replica lacks the last one", events: 3, asked: 3, spoil: lags(3)},
	} {
		onStage(t, Options{SnapshotEach: 1}, func(t *testing.T, s *stage) {
			again, next := s.slept()
			events := append([]session.Event{next}, again.wrong("s1", c.events)...)
			again.wrong("s2", 2)
			last := events[c.events]
			if c.spoil != nil {
				c.spoil(again, events)
			}
			again.beginAcked(last)
			if got, want := again.actor.sessions["s1"].state.Count, uint64(3+c.events); got != want {
				t.Errorf("%s: %d events are folded, want %d", c.name, got, want)
			}
			asked, scan := "-1", false
			for made := range again.mem.calls {
				switch made.op {
				case "ReadNext":
					asked = made.who
				case "ReadSession":
					scan = scan || made.sid == "s1" && made.who != fmt.Sprintf("1-%d", last.Seq) && strings.HasSuffix(made.who, fmt.Sprintf("-%d", last.Seq))
				}
			}
			if asked != strconv.Itoa(c.asked) || scan != c.scan {
				t.Errorf("%s: %s events were asked for, and the log was read up to the last one: %v; want %d, %v", c.name, asked, scan, c.asked, c.scan)
			}
			again.mem.plan = nil
			clear(again.mem.snapshots)
			again.end()
		})
	}
}

// A session with a damaged snapshot is folded from its first event.
func TestADamagedSnapshotIsIgnored(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SnapshotEach: 1}, func(t *testing.T, s *stage) {
		again, next := s.slept()
		data := again.mem.snapshots["s1"]
		data[len(data)/2] ^= 1
		again.beginAcked(next)
		if got := again.reads("s1", 1, next.Seq); got != 1 {
			t.Errorf("the session's log was read %d times, want once", got)
		}
		clear(s.mem.snapshots) // it is of no log
		again.end()
	})
}

// Where the quarantined sessions could not be listed, no session is loaded before
// it is known whether it is one of them.
func TestNoSessionIsLoadedBeforeItsQuarantineIsRead(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		stopped, other := s.run("s1"), s.run("s2")
		s.putStop("s1", Stop{Seq: stopped.Seq, Reason: "a test"})
		s.mem.plan = on(fails, func(c call) bool { return c.op == "Quarantined" || c.op == "GetQuarantine" })
		s.begin(stopped, other)
		s.wantUnacked(stopped, other)
		s.mem.planned(nil)
		s.pass(retryMax)
		s.wantAcked(stopped, other)
		s.wantStored(other)
		if asked := s.mem.asked("s1"); len(asked) != 0 {
			t.Errorf("the stopped session asks for %v", asked)
		}
	})
}
