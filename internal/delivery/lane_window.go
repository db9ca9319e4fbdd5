package delivery

import (
	"cmp"
	"slices"
	"sync"
)

// Limits of the received and unacknowledged events of one lane. They bound a process's
// memory: these events wait for their fold, are being folded, or wait for their outputs
// to be stored.
const (
	windowEventsMax = 1024
	windowBytesMax  = 16 << 20
)

// window holds the received and unacknowledged events of one epoch, in order. Events
// are done in any order. Only the done prefix is acknowledged to the server, so that
// every event below its ack floor is done.
type window struct {
	ack   func(reply string) // publishes an acknowledgement; must not block
	freed chan struct{}      // of capacity 1: there is more room

	mu      sync.Mutex
	ended   bool
	closed  bool   // the owner takes no more events
	base    uint64 // number of held[0]; events are numbered from 0
	held    []heldEvent
	bytes   int
	taken   uint64 // events with lower numbers were taken by the owner, or skipped
	replied string // reply subject of the last ack
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

func (w *window) add(e heldEvent) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = append(w.held, e)
	w.bytes += e.bytes
	return w.base + uint64(len(w.held)) - 1
}

// take records that the owner takes an event now. It returns false if it must not: the
// epoch has ended or the lane is being handed over.
func (w *window) take(number uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || w.closed {
		return false
	}
	w.taken = number + 1
	return true
}

// done marks an event as done and acknowledges the done prefix. After the epoch's end
// it does nothing: the server delivers the event again, to the owner at that time.
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

func (w *window) holds(seq uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, held := slices.BinarySearchFunc(w.held, seq, func(e heldEvent, seq uint64) int { return cmp.Compare(e.seq, seq) })
	return held
}

// room returns how many more events and bytes the window may receive.
func (w *window) room() (events, bytes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return windowEventsMax - len(w.held), windowBytesMax - w.bytes
}

// close makes take refuse events. Acknowledging goes on.
func (w *window) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
}

// settled reports whether every event that the owner took is acknowledged.
func (w *window) settled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.base >= w.taken
}

// end makes every later call do nothing. It returns the reply subject of the last ack,
// empty if there was none.
func (w *window) end() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	return w.replied
}
