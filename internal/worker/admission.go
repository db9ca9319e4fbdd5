package worker

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// admission gives slots to who waits for one. Who waits stands in a group, first
// come first: the sessions of a target take turns (Fair), and the targets of a
// process go by priority. pick says which group is served next.
type admission[K comparable] struct {
	pick func(groups []*group[K]) int // is told also that there is one group, or none

	mu     sync.Mutex
	free   int
	groups []*group[K] // that somebody waits in; who was served goes to the end
	came   uint64      // who waited, ever
}

// group is who waits under one key; at least one.
type group[K comparable] struct {
	key     K
	waiting []waiter
}

type waiter struct {
	number uint64        // by when it came
	given  chan struct{} // closed when it has its slot
}

func newAdmission[K comparable](slots int, pick func([]*group[K]) int) *admission[K] {
	return &admission[K]{free: slots, pick: pick}
}

// byTurn serves the group whose turn was longest ago.
func byTurn([]*group[string]) int { return 0 }

// byPriority serves the group with the greatest key. After slotsPassed slots in a
// row that went past others, one is for whoever of those has waited for the
// longest.
func byPriority() func([]*group[int]) int {
	passed := 0
	return func(groups []*group[int]) int {
		if len(groups) < 2 {
			passed = 0
			return 0
		}
		first, longest := 0, -1
		for i, g := range groups {
			if g.key > groups[first].key {
				first = i
			}
		}
		for i, g := range groups {
			if i != first && (longest < 0 || g.waiting[0].number < groups[longest].waiting[0].number) {
				longest = i
			}
		}
		if passed < slotsPassed {
			passed++
			return first
		}
		passed = 0
		return longest
	}
}

// enter waits for a slot; false if ctx ended before. leave must be called after
// true.
func (a *admission[K]) enter(ctx context.Context, key K) bool {
	a.mu.Lock()
	if a.free > 0 { // then nobody waits
		a.free--
		a.mu.Unlock()
		return true
	}
	a.came++
	own := waiter{a.came, make(chan struct{})}
	at := a.index(key)
	if at < 0 {
		at = len(a.groups)
		a.groups = append(a.groups, &group[K]{key: key})
	}
	a.groups[at].waiting = append(a.groups[at].waiting, own)
	a.mu.Unlock()
	select {
	case <-own.given:
		return true
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-own.given: // at the same moment
		a.grant()
	default:
		at := a.index(key)
		g := a.groups[at]
		g.waiting = slices.DeleteFunc(g.waiting, func(w waiter) bool { return w.number == own.number })
		if len(g.waiting) == 0 {
			a.groups = slices.Delete(a.groups, at, at+1)
		}
	}
	return false
}

func (a *admission[K]) index(key K) int {
	return slices.IndexFunc(a.groups, func(g *group[K]) bool { return g.key == key })
}

// leave frees a slot.
func (a *admission[K]) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.grant()
}

// grant gives a slot that is free to whose turn it is. The lock is held.
func (a *admission[K]) grant() {
	at := a.pick(a.groups)
	if len(a.groups) == 0 {
		a.free++
		return
	}
	g := a.groups[at]
	a.groups = slices.Delete(a.groups, at, at+1)
	close(g.waiting[0].given)
	if g.waiting = g.waiting[1:]; len(g.waiting) > 0 {
		a.groups = append(a.groups, g)
	}
}

// before returns carry behind a. What a stopping bridge has waiting is carried at
// once: carry gives it back.
func (a *admission[K]) before(drain context.Context, keyOf func(delivery) K, carry func(delivery)) func(delivery) {
	return func(d delivery) {
		if a.enter(drain, keyOf(d)) {
			d = leaving{d, a.leave}
		}
		carry(d)
	}
}

// leaving is a delivery that leaves its slot when it is done.
type leaving struct {
	delivery
	leave func()
}

func (l leaving) Done() {
	l.leave()
	l.delivery.Done()
}

// sessionOf returns the session of an effect's subject, the last token but one;
// of what is none, anything.
func sessionOf(subject string) string {
	head := subject[:max(0, strings.LastIndexByte(subject, '.'))]
	return head[strings.LastIndexByte(head, '.')+1:]
}
