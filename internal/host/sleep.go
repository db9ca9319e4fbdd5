package host

import (
	"slices"
	"time"

	"github.com/refold/refold/actors/session"
)

// sleepAfter is how long a session that waits for a person, or for a far day, is
// kept in memory after its last event.
const sleepAfter = time.Minute

// lookAround looks after wakes, snapshots and sessions that may sleep.
func (l *laneActor) lookAround(now time.Time) {
	defer l.snapshots.together()()
	l.lookAtWakes(now.UnixMilli())
	l.lookAtSnapshots()
	l.sleep(now)
}

// sleep forgets the sessions that have nothing open but wakes, one of them far
// ahead: whoever waits a week for an approval costs no memory. The far wake is
// in their snapshot, and the next event loads them.
func (l *laneActor) sleep(now time.Time) {
	var behind []*actor
	for sid, s := range l.sessions {
		if s.stop != nil || !s.proven || !s.settled() || now.Sub(s.usedAt) < sleepAfter || !s.maySleep(now.UnixMilli()) {
			continue
		}
		delete(l.sessions, sid)
		if s.waitsOtherwise() {
			behind = append(behind, s)
		}
	}
	l.captures(behind)
	l.recount()
	l.evict(nil) // a lane that is idle gives way when the host runs more lanes
}

// maySleep reports whether nothing but wakes is open, and one of them is far
// ahead and in the session's snapshot.
func (s *actor) maySleep(now int64) bool {
	far := false
	for i := range s.state.Wakes {
		far = far || s.state.Wakes[i].Due-now > longWaitMS
	}
	if !far || s.unsure > 0 || s.waitsLong() {
		return false
	}
	return !slices.ContainsFunc(s.state.Open(), func(e session.Effect) bool { return e.Class != session.ClassWake })
}
