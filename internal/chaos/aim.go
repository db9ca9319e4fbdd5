package chaos

import (
	"slices"
	"sync"
)

// aim counts what the processes of a trial send, and says where a strike is due.
type aim struct {
	namer namer

	mu     sync.Mutex
	counts map[Point]int // by the first of a message: its N is 0
	passed []Point       // Before each, in order
	due    Course        // what has not been done
	held   bool          // a strike has begun: the next is due once it is done
	since  int           // of passed: where it was when the last strike was done
}

func newAim(n namer, c Course) *aim {
	return &aim{namer: n, counts: map[Point]int{}, due: slices.Clone(c)}
}

// pass counts a message that a process publishes. due: the strike is to be done
// there, and the next is not due before done is called.
func (a *aim) pass(part Part, f *frame) (s Strike, due bool) {
	if !f.published() {
		return s, false
	}
	what, ok := a.namer.what(f)
	if !ok {
		return s, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	at := Point{Part: part, Side: Before, What: what}
	a.counts[at]++
	at.N = a.counts[at]
	a.passed = append(a.passed, at)
	if a.held || len(a.due) == 0 {
		return s, false
	}
	s = a.due[0]
	if s.At.Part != part || s.At.What != what || s.At.N != at.N {
		return s, false
	}
	a.due, a.held = a.due[1:], true
	return s, true
}

// done notes that a strike was done: what passes from now on is its recovery.
func (a *aim) done() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held, a.since = false, len(a.passed)
}

// points returns what passed, both sides of each message, those of one process
// after those of the other.
func (a *aim) points() []Point {
	a.mu.Lock()
	defer a.mu.Unlock()
	return bothSides(a.passed)
}

// recovery returns what passed since the last strike likewise.
func (a *aim) recovery() []Point {
	a.mu.Lock()
	defer a.mu.Unlock()
	return bothSides(a.passed[a.since:])
}

func bothSides(passed []Point) []Point {
	all := make([]Point, 0, 2*len(passed))
	for _, part := range Parts() {
		for _, point := range passed {
			if point.Part == part {
				after := point
				after.Side = After
				all = append(all, point, after)
			}
		}
	}
	return all
}
