package host

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/fault"
)

// floorGrace is by how much acknowledgements may pass the due of a wake that is
// not settled: half of what looking back has to spare, the other half is for the
// clock of the log.
const floorGrace = 30 * time.Second

// passed is a wake that the acknowledgements of a slice pass. Whoever takes the
// lane behind them looks back to sessions with a later last event alone, and its
// name may be forgotten: nobody would settle it if this process ended now.
type passed struct {
	late
	said bool // the log has its settlement
}

// dueFrom takes note that these wakes are open: passes looks at all that are in
// memory when it finds one of them passed.
func (l *laneActor) dueFrom(wakes []session.OpenWake) {
	for i := range wakes {
		l.firstDue = min(l.firstDue, wakes[i].Due)
	}
}

// passes returns the open wakes that acknowledging all that was delivered passes,
// but for those of which it is known that they are settled. What a slice has may be
// acknowledged with what was stored before it and came later; and a session that
// is loaded after what came later was stored is in memory when its own is handed
// over. For most slices it looks at one number.
func (l *laneActor) passes() (found []passed) {
	// A clock of the log that is ahead for a moment ends no wait.
	upTo := min(l.latest, l.host.now().UnixMilli()) - floorGrace.Milliseconds()
	if l.firstDue > upTo || time.Now().Before(l.passFrom) {
		return nil
	}
	l.firstDue = math.MaxInt64
	owned := l.lane.Owned()
	for _, a := range l.sessions {
		if a.stop != nil || a.state == nil {
			continue
		}
		for _, w := range a.state.Wakes {
			if slices.Contains(a.said, w.Number) {
				continue
			}
			l.firstDue = min(l.firstDue, w.Due)
			if w.Due <= upTo && !l.isPassing(a.sid, w.Number) {
				found = append(found, passed{late: late{a.sid, w, !a.proven || !owned}})
			}
		}
	}
	for sid, wakes := range l.unsaved {
		l.dueFrom(wakes)
		for _, w := range wakes {
			if w.Due <= upTo && l.sessions[sid] == nil && !l.isPassing(sid, w.Number) {
				found = append(found, passed{late: late{sid, w, true}})
				break
			}
		}
	}
	slices.SortFunc(found, func(a, b passed) int { return a.compare(b.late) })
	return found
}

// isPassing reports whether a slice that is being stored passes a wake: until it is
// stored nothing is acknowledged.
func (l *laneActor) isPassing(sid string, wake uint32) bool {
	for _, s := range l.storing {
		for i := range s.passed {
			if p := &s.passed[i]; p.sid == sid && p.wake.Number == wake { // who stores it writes the rest of p
				return true
			}
		}
	}
	return false
}

// settlePassed settles the wakes that a slice passes, before it is acknowledged.
// It ends without when the log does not take one of them in time: a lane goes on.
func (l *laneActor) settlePassed(ctx context.Context, s *slice) {
	var settling sync.WaitGroup
	var failed atomic.Bool
	room := make(chan struct{}, wakesAtOnce)
	for i := range s.passed {
		p := &s.passed[i]
		if s.failsOf(p.sid) {
			p.said = true // it is quarantined, and stands still
			continue
		}
		room <- struct{}{}
		if failed.Load() || ctx.Err() != nil {
			break
		}
		settling.Go(func() {
			defer func() { <-room }()
			if p.said = l.settleInTime(ctx, p.late); !p.said {
				failed.Store(true)
			}
		})
	}
	settling.Wait()
}

// settleInTime tries to settle a wake until wakeWithin is over.
func (l *laneActor) settleInTime(ctx context.Context, w late) bool {
	ctx, cancel := context.WithTimeout(ctx, wakeWithin)
	defer cancel()
	for wait := retryFirst; ; wait = min(2*wait, retryMax) {
		err := l.settleOne(ctx, w)
		if err == nil {
			return true
		}
		if !pause(ctx, wait) {
			l.log.Warn("acknowledged past a wake that is not settled", "session", w.sid, "wake", w.wake.Number, "error", err)
			return false
		}
	}
}

// hasPassed takes note of which wakes are settled that a slice passed.
func (l *laneActor) hasPassed(s *slice) {
	for _, p := range s.passed {
		switch a := l.sessions[p.sid]; {
		case !p.said:
			l.passFrom = time.Now().Add(wakeAfterBad)
		case a == nil:
			delete(l.unsaved, p.sid)
		default:
			a.isSaid(p.wake.Number)
		}
	}
}

// knows reports whether a wake is known to be settled.
func (l *laneActor) knows(ctx context.Context, w late) (is bool) {
	l.inside(ctx, func() {
		s := l.sessions[w.sid]
		is = s != nil && slices.Contains(s.said, w.wake.Number)
	})
	return is
}

// isSaid takes note that the log has the settlement of a wake.
func (s *actor) isSaid(wake uint32) {
	if !slices.Contains(s.said, wake) && !fault.On(fault.WokenForgotten) {
		s.said = append(s.said, wake)
	}
}
