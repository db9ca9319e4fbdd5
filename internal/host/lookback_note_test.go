package host

// Who takes a lane notes from when on it is to be looked back, before it
// acknowledges what lies behind: it may be gone before it has looked back.

import (
	"slices"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
)

// owns has a lane owned for so long that it is looked back already, then has a
// session begin to wait, and returns its event.
func (s *stage) owns() session.Event {
	s.t.Helper()
	s.era()
	s.start()
	s.deliver(s.answer("s0", "r1t1", "to nobody"))
	s.pass(lookBackAfter + 2*lookBackEvery)
	s.wantNote("of the first owner", false)
	s.mem.mu.Lock()
	clear(s.mem.calls)
	s.mem.mu.Unlock()
	first := s.run("s1")
	s.deliver(first)
	return first
}

// takenOver kills the host, and has another process take the lane.
func (s *stage) takenOver(without time.Duration) *stage {
	s.t.Helper()
	other := s.killed(without, Options{})
	other.lane.unowned.Store(false)
	other.era()
	other.settle()
	return other
}

// note returns the lane's note; false: there is none.
func (s *stage) note() (pastNote, bool) {
	s.t.Helper()
	s.mem.mu.Lock()
	defer s.mem.mu.Unlock()
	if len(s.mem.past) == 0 {
		return pastNote{}, false
	}
	note, err := parsePastNote(s.mem.past)
	if err != nil {
		s.t.Fatal(err)
	}
	return note, true
}

// wantNote checks whether the lane has a note.
func (s *stage) wantNote(when string, want bool) {
	s.t.Helper()
	if note, got := s.note(); got != want {
		s.t.Errorf("%s: there is a note: %v (%+v), want %v", when, got, note, want)
	}
}

// end ends the last host of a test.
func (s *stage) end() {
	s.t.Helper()
	if err := s.stop(); err != nil {
		s.t.Error(err)
	}
}

// An owner dies, names are forgotten, and the next owners die too before they have
// looked back, each after it acknowledged what came much later.
func TestWhatIsPassedByOwnersThatDieIsWoken(t *testing.T) {
	t.Parallel()
	for _, owners := range []int{1, 3} {
		onStage(t, Options{}, func(t *testing.T, s *stage) {
			s.owns()
			s = s.takenOver(2 * time.Hour)
			s.forget("s1")
			for range owners {
				s.pass(lookBackTo)
				later := s.answer("s2", "r1t1", "to nobody")
				s.deliver(later)
				s.wantAcked(later)
				s = s.takenOver(time.Second)
			}
			s.pass(lookBackAfter + 2*lookBackEvery)
			s.wantWoken("by the last of the owners", "s1")
			s.wantNote("looked back", false)
			s.end()
		})
	}
}

// The note is there before anything is acknowledged, and says no later time.
func TestTheNoteComesBeforeTheAcknowledgement(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		first := s.owns()
		s = s.takenOver(time.Hour)
		s.wantNote("nothing is acknowledged", false)
		noted := false
		s.actor.arrivals <- arrival{event: s.run("s2"), ack: func() { _, noted = s.note() }}
		s.settle()
		if !noted {
			t.Error("acknowledged without a note")
		}
		note, _ := s.note()
		if got, want := note.Since, first.Time-lookBackTo.Milliseconds(); got != want {
			t.Errorf("the note says %d, want %d: %v before the last event that was acknowledged", got, want, lookBackTo)
		}
		s.deliver(s.run("s3"))
		if got := s.mem.count(call{op: "PutPast"}); got != 1 {
			t.Errorf("the note was put %d times, want once in an era", got)
		}
		s.end()
	})
}

// A lane on which nothing arrives costs no write.
func TestAnIdleOwnerNotesNothing(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.owns()
		s = s.takenOver(time.Second)
		s.pass(3 * lookBackAfter)
		s.wantWoken("looked back", "s1")
		if got := s.mem.count(call{op: "PutPast"}); got != 0 {
			t.Errorf("the note was put or deleted %d times, want never", got)
		}
		s.end()
	})
}

// The bucket takes nothing for a moment: the lane waits. It takes nothing more: the
// lane goes on, and the note is put when the bucket takes it.
func TestANoteThatIsNotTakenHoldsNothingUpForLong(t *testing.T) {
	t.Parallel()
	for name, down := range map[string]time.Duration{"for a moment": noteWithin / 2, "for minutes": 5 * time.Minute} {
		for _, become := range []outcome{fails, hangs} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				onStage(t, Options{}, func(t *testing.T, s *stage) {
					first := s.owns()
					s = s.takenOver(time.Hour)
					up := time.Now().Add(down)
					s.mem.planned(func(c call) outcome {
						if c.op == "PutPast" && time.Now().Before(up) {
							return become
						}
						return works
					})
					later := s.run("s2")
					s.deliver(later)
					s.wantUnacked(later)
					s.wantNote("the bucket takes nothing", false)
					s.pass(noteWithin + time.Second)
					s.wantAcked(later)
					next := s.run("s3")
					s.deliver(next)
					s.wantAcked(next)
					s.pass(down + lookBackEvery)
					if note, found := s.note(); !found || note.Since != first.Time-lookBackTo.Milliseconds() {
						t.Errorf("the bucket takes it: got %+v %v", note, found)
					}
					s.end()
				})
			})
		}
	}
}

// It was put, and the answer was lost: that is no other's note.
func TestANoteIsPutThoughTheAnswerIsLost(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.owns()
		s = s.takenOver(time.Hour)
		s.mem.planned(func(c call) outcome {
			if c.op == "PutPast" && s.mem.count(c) == 1 {
				return failsLate
			}
			return works
		})
		later := s.run("s2")
		s.deliver(later)
		s.pass(time.Second)
		s.wantAcked(later)
		s.wantNote("put once", true)
		s.pass(lookBackAfter + 2*lookBackEvery)
		s.wantNote("looked back", false)
		s.end()
	})
}

// Who is owner no more, and does not know it yet, takes no note of the next away.
func TestTheNoteOfTheNextOwnerStays(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.owns()
		s = s.takenOver(time.Hour)
		s.deliver(s.run("s2"))
		s.pass(lookBackAfter)
		mine, _ := s.note()
		next := newStage(t, s.mem, Options{})
		next.lane.floor, _ = s.lane.Floor(t.Context())
		next.start()
		next.era()
		next.deliver(next.run("s3"))
		theirs, _ := s.note()
		if theirs.Since != mine.Since || theirs.By == mine.By {
			t.Errorf("the next owner notes %+v, want its own of the same time as %+v", theirs, mine)
		}
		s.pass(2 * lookBackEvery)
		s.wantNote("the former owner has looked back", true)
		next.pass(lookBackAfter)
		s.wantNote("the next has, too", false)
		next.end()
		s.end()
	})
}

// The note can't be taken away for a while: it is, later, without another look.
func TestANoteIsTakenAwayLater(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.owns()
		s = s.takenOver(time.Hour)
		s.deliver(s.run("s2"))
		up := time.Now().Add(lookBackAfter + 5*lookBackEvery)
		s.mem.planned(func(c call) outcome {
			if c.op == "PutPast" && time.Now().Before(up) {
				return fails
			}
			return works
		})
		s.pass(time.Until(up) - time.Second)
		s.wantNote("it can't be taken away", true)
		s.pass(2 * lookBackEvery)
		s.wantNote("it can", false)
		if got := s.mem.count(call{op: "LaneHeads"}); got != 1 {
			t.Errorf("looked back %d times, want once", got)
		}
		s.end()
	})
}

// An era begins while it is looked back: the note stays until that is looked back
// upon, too.
func TestAnEraBeginsWhileItIsLookedBack(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.owns()
		s = s.takenOver(time.Hour)
		s.deliver(s.run("s2"))
		began := make(chan struct{})
		s.mem.planned(func(c call) outcome {
			if c.op == "LaneHeads" {
				select {
				case <-began:
				default:
					close(began)
					<-time.After(lookBackEvery / 2)
				}
			}
			return works
		})
		s.pass(lookBackAfter + lookBackEvery/4)
		<-began
		s.era()
		s.deliver(s.run("s3"))
		s.pass(2 * lookBackEvery)
		s.wantNote("of the new era", true)
		s.pass(lookBackAfter)
		s.wantNote("looked back again", false)
		s.end()
	})
}

// What is no note is none, and gives way to one.
func TestWhatIsNoNoteGivesWay(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		first := s.owns()
		s.mem.mu.Lock()
		s.mem.past, s.mem.pastRev = []byte("yesterday"), 7
		s.mem.mu.Unlock()
		s = s.takenOver(time.Hour)
		s.deliver(s.run("s2"))
		if note, found := s.note(); !found || note.Since != first.Time-lookBackTo.Milliseconds() {
			t.Errorf("got %+v %v", note, found)
		}
		s.pass(lookBackAfter + 2*lookBackEvery)
		s.wantNote("looked back", false)
		if !slices.ContainsFunc(s.woken(), func(e session.Event) bool { return e.Session == "s1" }) {
			t.Error("s1 is not woken")
		}
		s.end()
	})
}

// The event that the lane was acknowledged up to was erased, and those before it.
func TestLookingBackFromWhatWasErased(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		first := s.owns()
		s.deliver(s.wrong("s2", 20)...)
		s.mem.mu.Lock()
		s.mem.log = slices.DeleteFunc(s.mem.log, func(e session.Event) bool { return e.Session == "s2" })
		s.mem.mu.Unlock()
		s = s.takenOver(time.Second)
		later := s.run("s3")
		s.mem.mu.Lock()
		s.mem.log[len(s.mem.log)-1].Seq = first.Seq + 21
		s.mem.mu.Unlock()
		later.Seq = first.Seq + 21
		s.deliver(later)
		s.wantAcked(later)
		s.forget("s1")
		s.pass(lookBackAfter + 2*lookBackEvery)
		if !slices.ContainsFunc(s.woken(), func(e session.Event) bool { return e.Session == "s1" }) {
			t.Error("s1 is not woken")
		}
		s.end()
	})
}
