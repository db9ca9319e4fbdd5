package delivery

import (
	"cmp"
	"slices"
	"sync"
)

// Limits of what one lane may have received and not acknowledged. Together
// they bound a host's memory: events that wait for their fold, are being
// folded, or wait for their outputs to be stored.
const (
	windowEventsMax = 1024
	windowBytesMax  = 16 << 20
)

// window holds what one epoch of a lane received and has not acknowledged, in
// order. Events are done in any order; the server hears of the prefix only,
// so that what lies below its ack floor is done without exception.
type window struct {
	ack   func(reply string) // publishes an acknowledgement; must not block
	freed chan struct{}      // of capacity 1: there is more room

	mu      sync.Mutex
	ended   bool
	closed  bool   // nothing more is given to the owner
	base    uint64 // number of held[0]; numbers count what was added
	held    []heldEvent
	bytes   int
	handed  uint64 // numbers below this were given to the owner, or skipped
	replied string // the last reply that was acknowledged
}

type heldEvent struct {
	seq   uint64 // of the stream; ascending
	reply string
	bytes int
	done  bool
}

func newWindow(ack func(reply string)) *window {
	return &window{ack: ack, freed: make(chan struct{}, 1)}
}

// add takes an event in and returns its number.
func (w *window) add(e heldEvent) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = append(w.held, e)
	w.bytes += e.bytes
	return w.base + uint64(len(w.held)) - 1
}

// hand says that an event is given to the owner now. False: it must not be,
// the epoch has ended or the lane is being handed over.
func (w *window) hand(number uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || w.closed {
		return false
	}
	w.handed = number + 1
	return true
}

// done acknowledges the prefix that is done now. After the epoch's end it does
// nothing: the event comes again, to the owner of the lane then.
func (w *window) done(number uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || number < w.base {
		return
	}
	w.held[number-w.base].done = true
	n := 0
	for n < len(w.held) && w.held[n].done {
		e := &w.held[n]
		w.ack(e.reply)
		w.replied = e.reply
		w.bytes -= e.bytes
		*e = heldEvent{}
		n++
	}
	if n == 0 {
		return
	}
	w.held = w.held[n:]
	w.base += uint64(n)
	select {
	case w.freed <- struct{}{}:
	default:
	}
}

// holds reports that the event at a stream sequence is held.
func (w *window) holds(seq uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, held := slices.BinarySearchFunc(w.held, seq, func(e heldEvent, seq uint64) int { return cmp.Compare(e.seq, seq) })
	return held
}

// room returns how many more events and bytes may come.
func (w *window) room() (events, bytes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return windowEventsMax - len(w.held), windowBytesMax - w.bytes
}

// gives reports that events may be given to the owner still.
func (w *window) gives() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.ended && !w.closed
}

// close ends the giving of events to the owner; acknowledging goes on.
func (w *window) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
}

// settled reports that all that the owner was given is acknowledged.
func (w *window) settled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.base >= w.handed
}

// end makes every later call do nothing. It returns the reply that was
// acknowledged last, empty if none was.
func (w *window) end() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	return w.replied
}
