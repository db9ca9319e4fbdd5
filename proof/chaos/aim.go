package chaos

import (
	"crypto/sha256"
	"slices"
	"strconv"
	"sync"
)

// aim counts the messages of a trial's processes, and decides where a kill is due.
type aim struct {
	namer namer
	alive func(Part, string) // called for an instance's heartbeat; nil: not called

	mu       sync.Mutex
	counts   map[Point]int // by the first point of a message: its N is 0
	bytes    map[string]map[[sha256.Size]byte]int
	distinct map[Point]map[string]bool // by the first point of a message: the different messages of its name
	passed   []Point                   // Before each message, in order
	due      Course                    // kills that have not begun
	killed   []hit                     // kills that have begun
	held     bool                      // a kill is in progress: the next is due once it is done
	weak     map[Part]bool             // killed parts that have sent nothing new since then
	since    int                       // length of passed when the last kill was done
}

// hit is a kill that has begun, and the length of passed at that time.
type hit struct {
	kill Kill
	at   int
}

func newAim(n namer, c Course) *aim {
	return &aim{
		namer: n, counts: map[Point]int{}, bytes: map[string]map[[sha256.Size]byte]int{}, distinct: map[Point]map[string]bool{},
		weak: map[Part]bool{}, due: slices.Clone(c),
	}
}

// pass counts a message that a process publishes. due: the caller must kill
// there, and the next kill is not due before done is called.
func (a *aim) pass(part Part, f *frame) (s Kill, due bool) {
	if !f.published() {
		return s, false
	}
	if _, instance, err := a.namer.names.ParseAlive(f.subject); err == nil && a.alive != nil {
		a.alive(part, instance)
	}
	what, ok := a.namer.what(f)
	if !ok {
		return s, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	at := Point{Part: part, Side: Before, What: a.which(what, f)}
	nth, anew := a.nth(at, f)
	a.counts[at]++
	at.N = a.counts[at]
	a.passed = append(a.passed, at)
	if anew && !a.held {
		delete(a.weak, part)
	}
	if a.held || len(a.due) == 0 {
		return s, false
	}
	candidates, n := a.due[:1], at.N
	if a.due.isFree() {
		if !anew || len(a.weak) > 0 {
			return s, false
		}
		candidates, n = a.due, nth
	}
	i := slices.IndexFunc(candidates, func(s Kill) bool {
		return s.At.Part == part && s.At.What == at.What && s.At.N == n
	})
	if i < 0 {
		return s, false
	}
	s = a.due[i]
	a.due, a.held = slices.Delete(a.due, i, i+1), true
	a.killed = append(a.killed, hit{s, len(a.passed)})
	return s, true
}

// nth returns how many different messages of a name there were, this one
// included, and whether it is the first of its kind. Repeats after a kill don't
// count: later messages keep the number that they have without a kill.
func (a *aim) nth(first Point, f *frame) (n int, anew bool) {
	if a.distinct[first] == nil {
		a.distinct[first] = map[string]bool{}
	}
	same := a.distinct[first]
	id := a.namer.identity(first.What, f)
	anew = !same[id]
	same[id] = true
	return len(same), anew
}

// which distinguishes contents of the object store: chunk.3 is the third that a
// daemon stores, also when it is stored again under another subject.
func (a *aim) which(what string, f *frame) string {
	bytes := f.payload
	switch what {
	case "chunk":
	case "blob": // its metadata has a timestamp
		bytes = []byte(f.subject)
	default:
		return what
	}
	if a.bytes[what] == nil {
		a.bytes[what] = map[[sha256.Size]byte]int{}
	}
	hash := sha256.Sum256(bytes)
	n, again := a.bytes[what][hash]
	if !again {
		n = len(a.bytes[what]) + 1
		a.bytes[what][hash] = n
	}
	return what + "." + strconv.Itoa(n)
}

// left returns the kills that were not done.
func (a *aim) left() Course {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.due)
}

// done records that a kill is done: later messages belong to the recovery.
func (a *aim) done() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held, a.since = false, len(a.passed)
	if len(a.killed) == 0 {
		return
	}
	for _, part := range a.killed[len(a.killed)-1].kill.parts() {
		if part != Server {
			a.weak[part] = true
		}
	}
}

// hits returns the kills that have begun, in order.
func (a *aim) hits() []hit {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.killed)
}

// order returns the points of all messages, Before each, in order, and how many of
// them came before the last kill was done.
func (a *aim) order() (passed []Point, since int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.passed), a.since
}

// bothSides returns the points on both sides of messages, process by process.
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
