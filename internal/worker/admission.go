package worker

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// admission records which slots of its target and process an effect holds. admit
// acquires them, and leave, called once, releases them. admit applies these rules
// in order:
//
//	rule      of             goes first                          until then
//	turn      target         the session longest without a turn  it waits
//	slot      process        the greatest priority               it waits
//	breaker   provider       one for a trial                     given back
//	pause     provider       -                                   it waits 10 s at most in its slot, else given back
//	rate      model          first come                          the same
//	rate      provider       first come                          the same
//
// Turns apply to targets with Ahead, slots to processes that share them, the rest
// to models. The first two are queues: an effect that ends frees a place for the
// next. The others wait for time alone, and give back an effect that can't start
// soon, so that another bridge may start it. One queue for all would keep effects
// from other bridges, or need both ways of waiting.
type admission struct{ turn, slot bool }

// admit waits until f may start, or decides to give it back. A late generation
// passes, since it is only settled.
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
	if f.isWithdrawn() { // while it waited, or replaced by another effect of its name
		return ack("withdrawn")
	}
	if f.settled != (settledAt{}) {
		if r := w.settledEarlier(f.life.grace, f); r.next != nextStart {
			return r
		}
	}
	now := w.now()
	if f.late(now) || s.lost { // it is only settled
		return decision{next: nextStart}
	}
	if r := w.isolate(f, 0); r.next != nextStart {
		return r
	}
	if now = w.now(); s.Pace != nil && f.generation != nil && !f.late(now) {
		return w.pace(f, now)
	}
	return decision{next: nextStart}
}

// takeSlots waits until f has the slots that it needs, is withdrawn, or this bridge
// stops.
func (w *Worker) takeSlots(f *execution) {
	ctx, cancel := context.WithCancelCause(f.life.Drain)
	defer cancel(nil)
	if f.setStop(cancel) {
		return
	}
	if turns := f.served.turns; turns != nil && ctx.Err() == nil {
		f.admitted.turn = turns.enter(ctx, f.name.Session, 0)
	}
	if w.slots != nil && ctx.Err() == nil {
		f.admitted.slot = w.slots.enter(ctx, f.name.Session, f.served.Priority)
	}
}

// leave releases the slots of f.
func (w *Worker) leave(f *execution) {
	w.neighbours.leave(&f.place)
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

// pace waits until the provider of f accepts requests, or decides to give f back.
func (w *Worker) pace(f *execution, now time.Time) decision {
	p := f.served.Pace
	if wait := p.breakerWait(f, now); wait > 0 {
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
	if now = w.now(); p.pausedFor(now) > 0 { // the pause began meanwhile
		return giveBack(untilLate(f, now, p.pausedFor(now)), "the provider asked to wait")
	}
	return decision{next: nextStart}
}

// untilLate returns wait, or the shorter time after which f is late and can be
// settled.
func untilLate(f *execution, now time.Time, wait time.Duration) time.Duration {
	return max(0, min(wait, f.startBy.Sub(now)+time.Millisecond))
}

// slots is a counting semaphore. A free slot goes to the waiter of the lowest rank,
// among equals to the first.
type slots struct {
	byTurn bool // else by priority

	mu      sync.Mutex
	free    int
	waiting []*waiter // in order of arrival
	round   int       // by turns: the rank served last
	passed  int       // by priority: grants in a row that passed over another rank
}

type waiter struct {
	session string
	// rank is, by turns, a round: each waiter of a session has a round of its
	// own. By priority it is the negated priority.
	rank  int
	given chan struct{} // closed when it has its slot
}

// enter waits for a slot, and returns false if ctx ends first. The caller must call
// leave after true.
func (s *slots) enter(ctx context.Context, session string, priority int) bool {
	s.mu.Lock()
	if s.free > 0 { // then the queue is empty
		s.free--
		s.mu.Unlock()
		return true
	}
	own := &waiter{session, -priority, make(chan struct{})}
	if s.byTurn {
		own.rank = s.round + 1 // after the waiters of this round
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
	} else { // granted at the same moment
		s.grant()
	}
	return false
}

func (s *slots) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grant()
}

// grant gives a slot to the next waiter. By priority, after slotsPassed grants in a
// row that passed over lower priorities, the longest waiting of those is next. The
// caller holds the lock.
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
