package worker

import (
	"context"
	"strings"
	"sync"
)

// turns gives slots to sessions by turns.
type turns struct {
	mu      sync.Mutex
	free    int
	waiting map[string][]chan struct{} // by session, first come first; each has at least one
	order   []string                   // sessions that wait, the next one first
}

func newTurns(slots int) *turns {
	return &turns{free: slots, waiting: make(map[string][]chan struct{})}
}

// enter waits for a slot; false if ctx ended before. leave must be called after
// true.
func (t *turns) enter(ctx context.Context, sid string) bool {
	t.mu.Lock()
	if t.free > 0 && len(t.order) == 0 {
		t.free--
		t.mu.Unlock()
		return true
	}
	turn := make(chan struct{})
	if len(t.waiting[sid]) == 0 {
		t.order = append(t.order, sid)
	}
	t.waiting[sid] = append(t.waiting[sid], turn)
	t.mu.Unlock()
	select {
	case <-turn:
		return true
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-turn: // it came at the same moment
		t.next()
		return false
	default:
	}
	t.forget(sid, turn)
	return false
}

// forget takes out a waiter that gave up. The lock is held.
func (t *turns) forget(sid string, turn chan struct{}) {
	rest := t.waiting[sid][:0]
	for _, other := range t.waiting[sid] {
		if other != turn {
			rest = append(rest, other)
		}
	}
	if t.waiting[sid] = rest; len(rest) > 0 {
		return
	}
	delete(t.waiting, sid)
	order := t.order[:0]
	for _, other := range t.order {
		if other != sid {
			order = append(order, other)
		}
	}
	t.order = order
}

// leave frees a slot.
func (t *turns) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next()
}

// next gives a slot that is free to the session whose turn it is, which goes
// to the end of the line if it has more. The lock is held.
func (t *turns) next() {
	if len(t.order) == 0 {
		t.free++
		return
	}
	sid := t.order[0]
	t.order = t.order[1:]
	line := t.waiting[sid]
	close(line[0])
	if t.waiting[sid] = line[1:]; len(line) > 1 {
		t.order = append(t.order, sid)
	} else {
		delete(t.waiting, sid)
	}
}

// inTurn returns carry behind the turns of s. What a stopping bridge has
// waiting is carried at once: carry gives it back.
func (w *Worker) inTurn(life Lifetimes, s Target, carry func(delivery)) func(delivery) {
	line := newTurns(s.Concurrency)
	return func(d delivery) {
		if line.enter(life.Drain, sessionOf(d.Subject())) {
			d = leaving{d, line.leave}
		}
		carry(d)
	}
}

// sessionOf returns the session of an effect's subject, the last token but one;
// of what is none, anything.
func sessionOf(subject string) string {
	head := subject[:max(0, strings.LastIndexByte(subject, '.'))]
	return head[strings.LastIndexByte(head, '.')+1:]
}
