package client

import "sync"

// received is a delta or a notice, or neither: then messages may have been lost.
type received struct {
	delta  *Delta
	notice *Notice
}

// inbox holds received messages until the reader takes them. Deltas that do not
// fit are dropped, so that a slow reader blocks no sender.
type inbox struct {
	came chan struct{} // holds one if there are messages

	mu     sync.Mutex
	all    []received
	deltas int
	bytes  int // of their texts
}

func newInbox() inbox { return inbox{came: make(chan struct{}, 1)} }

func (q *inbox) put(h received) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if h.delta != nil {
		if q.deltas >= earlyMax || q.bytes+len(h.delta.Text) > earlyBytesMax {
			return
		}
		q.deltas++
		q.bytes += len(h.delta.Text)
	}
	q.all = append(q.all, h)
	q.wake()
}

// wake tells the reader that there are messages.
func (q *inbox) wake() {
	select {
	case q.came <- struct{}{}:
	default:
	}
}

func (q *inbox) take() []received {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.all
	q.all, q.deltas, q.bytes = nil, 0, 0
	return all
}
