package engine

// The guard: owners of a lane end one after the other while they work on an event,
// or are ended from outside. What kills is stopped, and nothing else.

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
)

// succeed has another owner take the lane from s, which ended uncleanly when left
// had been delivered (0: it handed the lane over), and delivers events to it.
func (s *stage) succeed(left uint64, plan func(call) outcome, events ...session.Event) *stage {
	s.t.Helper()
	next := newStage(s.t, &memory{depot: s.mem.depot, plan: plan}, Options{})
	next.lane.left = left
	next.begin()
	next.deliver(events...)
	return next
}

// kill ends the process: nothing that it does is stored any more.
func (s *stage) kill() {
	s.t.Helper()
	s.mem.mu.Lock()
	s.mem.dead = true
	s.mem.mu.Unlock()
	s.end()
}

// guardNote returns the guard's note; the zero value if there is none.
func (s *stage) guardNote() (note guardNote) {
	s.t.Helper()
	s.mem.mu.Lock()
	defer s.mem.mu.Unlock()
	if len(s.mem.guard) > 0 {
		if err := json.Unmarshal(s.mem.guard, &note); err != nil {
			s.t.Fatal(err)
		}
	}
	return note
}

// wantMark checks which event is marked, and how many processes it has killed.
func (s *stage) wantMark(e session.Event, kills int) {
	s.t.Helper()
	if note := s.guardNote(); note.Session != e.Session || note.Seq != e.Seq || note.Kills != kills {
		s.t.Errorf("the guard notes %+v, want a mark at %s %d and %d kills", note, e.Session, e.Seq, kills)
	}
}

// deadAt is a plan in which a process ends while it works on a session: whatever it
// stores for it never comes to an end.
func deadAt(sid string) func(call) outcome { return of(hangs, "Ask", sid) }

// An event that ends each process that works on it is quarantined by the seventh
// owner. The events around it, also those of its session, count as stored, and no
// other session is stopped.
func TestKillerIsStopped(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		before, killer, after := s.run("s2"), s.run("s1"), s.run("s3")
		last := after.Seq
		all := []session.Event{before, killer, after}
		o := s.succeed(0, deadAt("s1"), all...)
		if got := o.mem.count(call{op: "Guard"}) + o.mem.count(call{op: "PutGuard"}); got != 0 {
			t.Errorf("the first owner asked for the guard's note %d times, want never", got)
		}
		o.kill()
		o = o.succeed(last, deadAt("s1"), all...)
		if note := o.guardNote(); note.UpTo != last || note.Ends != 1 || note.Seq != 0 {
			t.Errorf("after one unclean end the guard notes %+v, want that and nothing marked", note)
		}
		o.kill()
		asked := o.mem.count(call{op: "Ask", sid: "s3", who: "r1t1"})
		if asked == 0 {
			t.Error("the owners before asked for nothing of s3")
		}
		o = o.succeed(last, deadAt("s1"), all...)
		o.wantMark(killer, 0)
		o.wantAcked(before)
		o.wantUnacked(killer, after)
		if got := o.mem.count(call{op: "Ask", sid: "s3", who: "r1t1"}); got != asked {
			t.Errorf("a session behind the marked one asked for %d effects, want none yet", got-asked)
		}
		for kills := 1; kills < killsMax; kills++ {
			o.kill()
			o = o.succeed(last, deadAt("s1"), killer, after)
			o.wantMark(killer, kills)
			o.wantNoStop("s1")
		}
		o.kill()
		o = o.succeed(last, deadAt("s1"), killer, after)
		o.wantAcked(killer, after)
		o.wantStored(after)
		if stop := o.stopOf("s1"); stop == nil || stop.Seq != killer.Seq || stop.Kills != killsMax || !strings.Contains(stop.Reason, "4 session-actors ended") {
			t.Errorf("quarantine: got %+v, want one at %d of %d deaths", stop, killer.Seq, killsMax)
		}
		for _, sid := range []string{"s2", "s3"} {
			o.wantNoStop(sid)
		}
		if note := o.guardNote(); note != (guardNote{}) {
			t.Errorf("the guard's note is left: %+v", note)
		}
		o.wantView("s1", "session-actors ended") // without a fold: the events may kill whoever folds them
		o.kill()
	})
}

// Processes that are killed from outside again and again, at one event each, stop
// no session: only repeated deaths at the same event do.
func TestCarefulPassSparesASessionThatDidNotKill(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		all := []session.Event{s.run("s1"), s.run("s2"), s.run("s3")}
		last := all[2].Seq
		o := s.succeed(0, deadAt("s1"), all...)
		for i, dead := range []int{0, 0, 1, 2} { // at which of them the next owners end
			o.kill()
			open := all
			if i > 0 {
				open = all[max(0, dead-1):]
			}
			o = o.succeed(last, deadAt(all[dead].Session), open...)
			if i > 0 {
				o.wantMark(all[dead], 0)
			}
		}
		o.kill()
		o = o.succeed(last, nil, all[2])
		o.wantAcked(all[2])
		for _, e := range all {
			o.wantStored(e)
			o.wantNoStop(e.Session)
		}
		if note := o.guardNote(); note != (guardNote{}) {
			t.Errorf("the guard's note is left: %+v", note)
		}
		o.kill()
	})
}

// An owner that was cut off and lives counts as no death.
func TestOwnerThatLivesKilledNobody(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		e := s.run("s1")
		o := s.succeed(0, deadAt("s1"), e)
		for range 6 {
			o.kill()
			next := newStage(t, &memory{depot: s.mem.depot, plan: deadAt("s1")}, Options{})
			next.host.lives = func(instance string) bool { return instance == o.host.instance }
			next.lane.left = e.Seq
			next.begin()
			next.deliver(e)
			o = next
		}
		if note := o.guardNote(); note.Ends != 1 || note.Kills != 0 {
			t.Errorf("the guard notes %+v, want the first end alone, of which it is not known who it was", note)
		}
		o.kill()
	})
}

// One unclean end costs a lane two writes, however many events are pending, and
// these are processed as usual.
func TestOneUncleanEndIsCheap(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		var all []session.Event
		for i := range 100 {
			all = append(all, s.run("s"+string(rune('a'+i%26))))
		}
		last := all[len(all)-1]
		o := s.succeed(last.Seq, nil, append(all, s.run("more"))...)
		o.wantAcked(all...)
		o.wantStored(last)
		if got := o.mem.count(call{op: "PutGuard"}); got != 2 {
			t.Errorf("%d writes, want the note and its end", got)
		}
		if note := o.guardNote(); note != (guardNote{}) {
			t.Errorf("the guard's note is left: %+v", note)
		}
		// Another epoch of the same owner: what was left is done.
		o.epoch()
		more := o.run("s1")
		o.deliverAcked(more)
		if got := o.mem.count(call{op: "PutGuard"}); got != 2 {
			t.Errorf("%d writes after another epoch, want no more", got)
		}
		o.kill()
	})
}

// A bucket that takes no note delays a lane for a while, but not for good.
func TestGuardWithoutItsBucket(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		e := s.run("s1")
		o := s.succeed(e.Seq, on(fails, func(c call) bool { return strings.Contains(c.op, "Guard") }), e)
		o.pass(3 * noteWithin)
		o.wantAcked(e)
		o.kill()
	})
}

// In a careful pass only one lane of a process works at a time.
func TestCarefulPassIsOneAtATime(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		e := s.run("s1")
		s.mem.guard, s.mem.guardRev = []byte(`{"up_to":2,"ends":1,"by":"another"}`), 1
		o := newStage(t, &memory{depot: s.mem.depot}, Options{})
		o.lane.left = e.Seq
		o.host.alone <- struct{}{} // another lane works
		o.begin()
		o.deliver(e)
		o.pass(time.Minute)
		o.wantUnacked(e)
		if got := o.mem.count(call{op: "PutGuard"}); got != 0 {
			t.Errorf("%d marks while another lane works on an event alone, want none", got)
		}
		<-o.host.alone
		o.settle()
		o.wantAcked(e)
		if got := o.mem.awaited; !slices.Equal(got, []string{"s1 w1"}) {
			t.Errorf("the careful pass says of %q that it waits for them, want the wake", got)
		}
		o.deliver(o.run("s2"))
		o.settle()
		if got := o.mem.awaited; len(got) != 1 {
			t.Errorf("wakes that nobody waits for are stored as %q", got)
		}
		o.kill()
	})
}

// A released session that killed processes is quarantined again while it is tried:
// if it kills once more, the next process finds it stopped.
func TestReleasedKillerIsTriedBehindItsQuarantine(t *testing.T) {
	t.Parallel()
	for name, kills := range map[string]bool{"it kills again": true, "it goes on": false} {
		onStageOf(t, name, Options{}, func(t *testing.T, s *stage) {
			e := s.run("s1")
			s.putStop("s1", Stop{Seq: e.Seq, Reason: "2 session-actors ended", Kills: 2})
			o := s.succeed(0, nil, e, s.run("s2"))
			if kills {
				o.mem.planned(deadAt("s1"))
			}
			o.mem.release("s1")
			o.pass(3 * recheckEvery)
			stop := o.stopOf("s1")
			switch {
			case kills && (stop == nil || stop.Kills != 3):
				t.Errorf("while it is tried: got %+v, want a quarantine of 3 kills", stop)
			case !kills && stop != nil:
				t.Errorf("it goes on, and is quarantined: %+v", stop)
			case !kills:
				o.wantStored(e)
			}
			o.kill()
			o = o.succeed(0, nil, s.run("s1"))
			o.pass(3 * recheckEvery)
			if stop := o.stopOf("s1"); (stop != nil) != kills {
				t.Errorf("in the next process: got %+v, want it stopped if it killed", stop)
			}
			o.kill()
		})
	}
}
