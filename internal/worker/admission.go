package worker

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// admission is what an effect holds of its target's and its process's slots. admit
// takes it, and leave, which is called once, gives it back. admit asks in this order:
//
//	rule      of             who goes first                      until then
//	turn      target         the session longest without a turn  it waits
//	slot      process        the greatest priority               it waits
//	breaker   provider       one for a trial                     given back
//	pause     provider       -                                   it waits 10 s at most in its slot, else given back
//	rate      model          first come                          the same
//	rate      provider       first come                          the same
//
// Turns are for targets with Ahead, slots for processes that share them, the rest for
// models. The first two are queues: an effect that ends frees a place for the next.
// The others wait for time alone, and give back what can't start soon, so that another
// bridge may start it. One queue for all of them would keep effects from other
// bridges, or need both ways to wait in it.
type admission struct{ turn, slot bool }

// admit waits until f may start, or rules that it is given back. A generation that
// is late passes: it is not started, only settled.
func (w *Worker) admit(f *execution) decision {
	s, drain := f.served, f.life.Drain
	if s.turns != nil || w.slots != nil {
		w.takeSlots(f)
	}
	f.began = w.now()
	s.Counts.begin()
	if drain.Err() != nil {
		return giveBack(stoppingDelay, "this bridge is stopping")
	}
	if f.isWithdrawn() { // while it waited, or another effect has its name
		return ack("withdrawn")
	}
	if f.settled != (settledAt{}) {
		if r := w.settledEarlier(f.life.grace, f); r.next != nextStart {
			return r
		}
	}
	if now := w.now(); s.Pace != nil && f.generation != nil && !f.late(now) {
		return w.pace(f, now)
	}
	return decision{next: nextStart}
}

// takeSlots waits for the slots that f needs, until it has them, or is withdrawn, or
// this bridge is stopping.
func (w *Worker) takeSlots(f *execution) {
	ctx, cancel := context.WithCancelCause(f.life.Drain)
	defer cancel(nil)
	if f.startUnder(cancel) {
		return
	}
	if turns := f.served.turns; turns != nil && ctx.Err() == nil {
		f.admitted.turn = turns.enter(ctx, f.name.Session, 0)
	}
	if w.slots != nil && ctx.Err() == nil {
		f.admitted.slot = w.slots.enter(ctx, f.name.Session, f.served.Priority)
	}
}

// leave gives back what f holds.
func (w *Worker) leave(f *execution) {
	if f.served.Pace != nil {
		f.served.Pace.leave(f)
	}
	if f.admitted.slot {
		w.slots.leave()
	}
	if f.admitted.turn {
		f.served.turns.leave()
	}
}

// pace waits until the provider of f may be asked, or rules that f is given back.
func (w *Worker) pace(f *execution, now time.Time) decision {
	p := f.served.Pace
	if wait := p.broken(f, now); wait > 0 {
		return giveBack(untilLate(f, now, wait), "the provider fails, others wait until it answers")
	}
	wait, taken := p.reserve(f.generation.Model, now)
	if wait == 0 {
		return decision{next: nextStart}
	}
	if wait > paceWaitMax || f.late(now.Add(wait)) {
		taken.cancel(now)
		return giveBack(untilLate(f, now, wait), "its turn under the provider's rate is later")
	}
	if !w.waitToRetry(f, wait) {
		taken.cancel(w.now())
		if f.isWithdrawn() {
			return decision{next: nextStart} // start says so
		}
		return giveBack(stoppingDelay, "this bridge is stopping")
	}
	if now = w.now(); p.pausedFor(now) > 0 { // asked for meanwhile
		return giveBack(untilLate(f, now, p.pausedFor(now)), "the provider asked to wait")
	}
	return decision{next: nextStart}
}

// untilLate is wait, but for what would be late then: that comes back as soon
// as it is, to be settled.
func untilLate(f *execution, now time.Time, wait time.Duration) time.Duration {
	return max(0, min(wait, f.startBy.Sub(now)+time.Millisecond))
}

// slots are a number of places. The next of those that wait for one is the one of
// the least rank, and of equals the one that came first.
type slots struct {
	byTurn bool // else by priority

	mu      sync.Mutex
	free    int
	waiting []*waiter // in the order of coming
	round   int       // by turns: the rank that was served last
	passed  int       // by priority: slots in a row that went past another rank
}

type waiter struct {
	session string
	// rank is, by turns, the round of the session's turn: a session that waits for
	// several slots has one in each. By priority it is the less the higher that is.
	rank  int
	given chan struct{} // closed when it has its slot
}

// enter waits for a slot; false if ctx ended before. leave must be called after
// true.
func (s *slots) enter(ctx context.Context, session string, priority int) bool {
	s.mu.Lock()
	if s.free > 0 { // then nobody waits
		s.free--
		s.mu.Unlock()
		return true
	}
	own := &waiter{session, -priority, make(chan struct{})}
	if s.byTurn {
		own.rank = s.round + 1 // behind those that waited before this round
		for _, w := range s.waiting {
			if w.session == session {
				own.rank = max(own.rank, w.rank+1)
			}
		}
	}
	s.waiting = append(s.waiting, own)
	s.mu.Unlock()
	select {
	case <-own.given:
		return true
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.Index(s.waiting, own); at >= 0 {
		s.waiting = slices.Delete(s.waiting, at, at+1)
	} else { // it was given at the same moment
		s.grant()
	}
	return false
}

// leave frees a slot.
func (s *slots) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grant()
}

// grant gives a free slot to the one that is next. By priority, after slotsPassed
// slots in a row that went past others, one is for the one of those that has waited
// longest. The lock is held.
func (s *slots) grant() {
	if len(s.waiting) == 0 {
		s.free++
		s.passed = 0
		return
	}
	next := slices.MinFunc(s.waiting, func(a, b *waiter) int { return cmp.Compare(a.rank, b.rank) })
	passed := slices.IndexFunc(s.waiting, func(w *waiter) bool { return w.rank != next.rank })
	switch {
	case s.byTurn:
		s.round = next.rank
	case passed < 0:
		s.passed = 0
	case s.passed < slotsPassed:
		s.passed++
	default:
		next, s.passed = s.waiting[passed], 0
	}
	close(next.given)
	s.waiting = slices.DeleteFunc(s.waiting, func(w *waiter) bool { return w == next })
}
