package sim

// Failures of one session alone, and of whole streams.

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// Streams, and the work of a session that fails.
const (
	failsLoad      = "log" // and its snapshot can't be read
	failsEffects   = "effects"
	failsNotices   = "notices"
	failsWakes     = "timers"
	failsFull      = "full" // its notices don't fit
	failsSnapshots = "snapshots"
)

// failuresFor is how long after its end a failure may quarantine a session.
const failuresFor = 30 * time.Second

var errOdd = errors.New("this can't be done, for no reason that anybody knows")

// failures are what fails for a while.
type failures struct {
	odd    map[string]string    // what fails, by session
	healed map[string]time.Time // when a session's failure ended
	down   map[string]bool      // streams
}

// fails returns why work of a session on a stream fails, nil if it does not.
func (f *failures) fails(sid, stream string) error {
	switch odd := f.odd[sid]; {
	case f.down[stream], odd == stream:
		return errOdd
	case odd == failsFull && stream == failsNotices:
		return natsio.ErrStreamFull
	}
	return nil
}

// mayStop reports whether a failure may quarantine a session.
func (f *failures) mayStop(sid string) bool {
	odd, now := f.odd[sid]
	ended, healed := f.healed[sid]
	return now && odd != failsFull || healed && time.Since(ended) < failuresFor
}

// remembersFailures records that a process is back that was cut off at a time: it may
// stop a session for a failure that ended since.
func (f *failures) remembersFailures(cutAt time.Time) {
	for sid, ended := range f.healed {
		if ended.After(cutAt) {
			f.healed[sid] = time.Now()
		}
	}
}

// sessionFails has the work of one session fail, and all sessions go on for a while.
func (s *sim) sessionFails() {
	sids := sortedKeys(s.judge.sessions)
	if len(sids) == 0 || len(s.odd) > 1 {
		return
	}
	sid := sids[s.draw(len(sids))]
	what := []string{failsFull, failsLoad, failsEffects, failsNotices, failsWakes, failsLoad}[s.draw(6)]
	s.did("a session fails")
	s.say("%s fails: %s", sid, what)
	delete(s.healed, sid)
	if before := s.odd[sid]; before != "" && before != failsFull {
		s.healed[sid] = time.Now() // what failed until now may still stop it
	}
	s.odd[sid] = what
	s.goesOn(15)
	if s.draw(2) == 1 {
		s.heal()
		s.goesOn(8)
	}
}

// streamFails has a whole stream fail for a while: that stops no session.
func (s *sim) streamFails() {
	stream := []string{failsLoad, failsEffects, failsNotices, failsWakes, failsSnapshots}[s.draw(5)]
	s.did("a stream fails")
	s.say("the stream of %s fails", stream)
	s.down[stream] = true
	s.goesOn(15)
	delete(s.down, stream)
	s.say("the stream of %s works again", stream)
}

// goesOn has people act and processes work for a while.
func (s *sim) goesOn(rounds int) {
	for range rounds {
		s.people()
		s.work()
		s.passes(5 * time.Second)
	}
}

// heal ends the failures of sessions.
func (s *sim) heal() {
	for _, sid := range sortedKeys(s.odd) {
		if s.odd[sid] != failsFull {
			s.healed[sid] = time.Now()
		}
		delete(s.odd, sid)
	}
	s.say("no session fails any more")
}

// lanesGoOn checks that the lanes go on although sessions fail, and ends the failures.
func (s *sim) lanesGoOn() {
	if len(s.odd) == 0 {
		return
	}
	for _, sid := range sortedKeys(s.odd) {
		if s.odd[sid] == failsFull {
			delete(s.odd, sid) // it rightly waits
		}
	}
	s.resume()
	others := map[int]bool{} // lanes with sessions that don't fail
	for n := range sessionCount {
		if sid := "s" + strconv.Itoa(n); s.odd[sid] == "" {
			others[subjects.LaneOf(subjects.Partition(sid), laneCount)] = true
		}
	}
	stopped := func() bool {
		return slices.ContainsFunc(s.lanes[:], func(l *laneEnd) bool {
			info := l.consumer.Info()
			return others[l.number] && (info.Pending > 0 || info.AckPending > 0)
		})
	}
	for round := range 90 {
		if round%30 == 0 { // sessions that store something, with which those that fail are compared
			for n := range sessionCount {
				if sid := "s" + strconv.Itoa(n); s.odd[sid] == "" {
					s.publish(session.DoorIn, sid, session.TypeRunRequested, `{"input":{"text":"go on"}}`)
				}
			}
		}
		if s.work(); round > 60 && !stopped() {
			break
		}
		s.passes(5 * time.Second)
	}
	if stopped() {
		s.breaks("a session that fails stops its lane: %v", s.odd)
	}
	s.heal()
}

// waitsForStopped reports whether a session waits for a child that is stopped since the
// log has lost an event of it, or that itself waits for such a child. Its run goes on when
// an operator releases the child.
func (r *referee) waitsForStopped(state *session.State) bool {
	return slices.ContainsFunc(state.View().Children, func(c session.ViewChild) bool {
		child := r.sessions[c.Session]
		return c.State == "open" && child != nil && (child.lost && r.j.stops[c.Session] != nil || r.waitsForStopped(child.state))
	})
}
