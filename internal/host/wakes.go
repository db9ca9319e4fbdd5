package host

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/fault"
)

// Limits of looking after the wakes of sessions in memory. Timer bridges settle
// wakes; the owner does it when none did.
const (
	wakesEvery   = time.Second      // how often a lane looks
	wakeGrace    = 2 * time.Second  // how late a timer bridge may be
	wakesAtOnce  = 64               // wakes that a lane settles between two looks
	wakeWithin   = 10 * time.Second // how long storing one settlement may take
	wakeAfterBad = 30 * time.Second // how long a lane settles none after it could not
)

// late is an overdue wake that is to be settled.
type late struct {
	sid  string
	wake session.OpenWake
	copy bool // what is in memory is not proven: look first
}

// compare puts the wake first that is due first.
func (w late) compare(b late) int {
	return cmp.Or(cmp.Compare(w.wake.Due, b.wake.Due), cmp.Compare(w.sid, b.sid), cmp.Compare(w.wake.Number, b.wake.Number))
}

// lookAtWakes finds the overdue wakes of the sessions in memory, if this process
// owns the lane, and passes each on once in an era. What there is no room for
// is found the next time.
func (l *laneActor) lookAtWakes(now int64) {
	if !l.lane.Owned() {
		return // what is in memory is a past that another owner has left
	}
	if l.behind {
		now = min(now, l.reached) // a settlement may be among what is to come
	}
	var found []late
	for _, s := range l.sessions {
		if s.stop != nil || s.state == nil {
			continue
		}
		if len(s.woken) > session.WakesMax {
			s.woken = slices.DeleteFunc(s.woken, func(number uint32) bool { return !s.isOpen(number) })
		}
		if len(s.said) > session.WakesMax {
			s.said = slices.DeleteFunc(s.said, func(number uint32) bool { return !s.isOpen(number) })
		}
		for _, w := range s.state.Wakes {
			if isOverdue(w.Due, now) && !slices.Contains(s.woken, w.Number) {
				found = append(found, late{s.sid, w, !s.proven})
			}
		}
	}
	found = append(found, l.lateUnsaved(now)...)
	// In an order of their own, not a map's: what happens is then the same when
	// it happens again.
	slices.SortFunc(found, late.compare)
	for _, w := range found {
		select {
		case l.late <- w:
			s := l.sessions[w.sid]
			if s == nil {
				delete(l.unsaved, w.sid) // its events load it; if none comes, it is kept again
			} else if !fault.On(fault.WokenForgotten) {
				s.woken = append(s.woken, w.wake.Number)
			}
		default:
			return
		}
	}
}

// isOverdue reports whether a wake should have been settled by now, Unix ms.
func isOverdue(due, now int64) bool {
	if fault.On(fault.OverdueEarly) {
		due -= 10000
	}
	return due+wakeGrace.Milliseconds() <= now
}

// wakesOf returns the effects that these wakes of a session are.
func wakesOf(sid string, wakes []session.OpenWake) []session.Effect {
	// A state with nothing but wakes asks for nothing but them.
	s := session.State{Record: session.Record{Session: sid, Wakes: wakes}}
	return s.Open()
}

// settleLate settles the overdue wakes that were found, until ctx ends.
func (l *laneActor) settleLate(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case w := <-l.late:
			if l.knows(ctx, w) {
				continue // before an acknowledgement that would have passed it
			}
			err := l.settleOne(ctx, w)
			if ctx.Err() != nil {
				continue
			}
			if err == nil {
				l.inside(ctx, func() {
					if s := l.sessions[w.sid]; s != nil && slices.Contains(s.woken, w.wake.Number) { // in this era
						s.isSaid(w.wake.Number)
					}
				})
				continue
			}
			l.log.Warn("overdue wake not settled", "session", w.sid, "wake", w.wake.Number, "error", err)
			l.inside(ctx, func() { // it is found again
				if s := l.sessions[w.sid]; s != nil {
					s.woken = slices.DeleteFunc(s.woken, func(number uint32) bool { return number == w.wake.Number })
				} else {
					l.unsaved[w.sid] = []session.OpenWake{w.wake}
					l.dueFrom(l.unsaved[w.sid])
				}
			})
			pause(ctx, wakeAfterBad)
		}
	}
}

func (l *laneActor) settleOne(ctx context.Context, w late) error {
	if w.copy {
		return l.lookAtCopy(ctx, w.sid)
	}
	return l.wake(ctx, w.sid, w.wake)
}

// wake says that a wake's due has come.
func (l *laneActor) wake(ctx context.Context, sid string, w session.OpenWake) error {
	name := wakesOf(sid, []session.OpenWake{w})[0].Name
	ctx, cancel := context.WithTimeout(ctx, wakeWithin)
	defer cancel()
	l.log.Info("overdue wake settled by the owner", "session", sid, "effect", name, "late_ms", time.Now().UnixMilli()-w.Due)
	// Without an id: what is said twice is taken once, by its name.
	_, err := l.host.world.Publish(ctx, session.DoorWake, sid, wakeSettled(name, l.host.instance), "")
	return err
}

// wakeSettled returns the event that settles a wake.
func wakeSettled(name, by string) []byte {
	data, err := codec.Marshal(session.WakeSettled{Effect: name})
	if err == nil {
		data, err = codec.Marshal(session.Envelope{
			V: session.Version, Type: session.TypeWakeSettled, At: time.Now().UnixMilli(), By: by, Data: data,
		})
	}
	if err != nil {
		panic("host: a settlement does not encode: " + err.Error())
	}
	return data
}

// inside runs f between two batches of the lane, and returns when it has; false:
// it never will, since ctx has ended.
func (l *laneActor) inside(ctx context.Context, f func()) bool {
	done := make(chan struct{})
	select {
	case l.calls <- func() { defer close(done); f() }:
		<-done
		return true
	case <-ctx.Done():
		return false
	}
}

// pause waits; false: ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
