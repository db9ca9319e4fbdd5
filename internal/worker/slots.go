package worker

import (
	"context"
	"slices"
	"sync"
)

// slots are what the targets of a process share.
type slots struct {
	mu     sync.Mutex
	free   int
	lines  []*slotLine // those that somebody waits in, the first to be served first
	passed int         // slots in a row that went past another line
	came   uint64      // who waited, ever
}

// slotLine is who waits with one priority, first come first; at least one.
type slotLine struct {
	priority int
	waiting  []slotTurn
}

// slotTurn is one that waits.
type slotTurn struct {
	number uint64
	given  chan struct{} // closed when it has its slot
}

func newSlots(n int) *slots { return &slots{free: n} }

// enter waits for a slot; false if ctx ended before. leave must be called after
// true.
func (s *slots) enter(ctx context.Context, priority int) bool {
	s.mu.Lock()
	if s.free > 0 {
		s.free--
		s.mu.Unlock()
		return true
	}
	s.came++
	turn := slotTurn{s.came, make(chan struct{})}
	at, found := slices.BinarySearchFunc(s.lines, priority, func(l *slotLine, p int) int { return p - l.priority })
	if !found {
		s.lines = slices.Insert(s.lines, at, &slotLine{priority: priority})
	}
	s.lines[at].waiting = append(s.lines[at].waiting, turn)
	s.mu.Unlock()
	select {
	case <-turn.given:
		return true
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-turn.given: // at the same moment
		s.next()
	default:
		s.forget(priority, turn.number)
	}
	return false
}

// forget takes out a turn that gave up. The lock is held.
func (s *slots) forget(priority int, number uint64) {
	at := slices.IndexFunc(s.lines, func(l *slotLine) bool { return l.priority == priority })
	line := s.lines[at]
	line.waiting = slices.DeleteFunc(line.waiting, func(t slotTurn) bool { return t.number == number })
	if len(line.waiting) == 0 {
		s.lines = slices.Delete(s.lines, at, at+1)
	}
}

// leave frees a slot.
func (s *slots) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next()
}

// next gives a slot that is free to whose turn it is. The lock is held.
func (s *slots) next() {
	at := 0
	switch {
	case len(s.lines) == 0:
		s.free++
		s.passed = 0
		return
	case len(s.lines) == 1:
		s.passed = 0
	case s.passed < slotsPassed:
		s.passed++
	default:
		s.passed = 0
		at = 1
		for i := range s.lines[2:] {
			if s.lines[2+i].waiting[0].number < s.lines[at].waiting[0].number {
				at = 2 + i
			}
		}
	}
	line := s.lines[at]
	close(line.waiting[0].given)
	if line.waiting = line.waiting[1:]; len(line.waiting) == 0 {
		s.lines = slices.Delete(s.lines, at, at+1)
	}
}

// inSlot returns carry behind the slots of the process. What a stopping bridge
// has waiting is carried at once: carry gives it back.
func (w *Worker) inSlot(life Lifetimes, s Target, carry func(delivery)) func(delivery) {
	return func(d delivery) {
		if w.slots.enter(life.Drain, s.Priority) {
			d = leaving{d, w.slots.leave}
		}
		carry(d)
	}
}

// leaving is a delivery that leaves a line when it is done.
type leaving struct {
	delivery
	leave func()
}

func (l leaving) Done() {
	l.leave()
	l.delivery.Done()
}
