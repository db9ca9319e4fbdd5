package client

import "sync"

// inbox holds received messages until the reader takes them. Deltas that do not
// fit are dropped, so that a slow reader blocks no sender.
type inbox[T any] struct {
	came chan struct{} // holds one if there are messages

	mu     sync.Mutex
	all    []T
	deltas int
	bytes  int // of their texts
}

func newInbox[T any]() inbox[T] { return inbox[T]{came: make(chan struct{}, 1)} }

// put adds a message. d is its delta, nil for other messages.
func (q *inbox[T]) put(message T, d *Delta) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if d != nil {
		if q.deltas >= earlyMax || q.bytes+len(d.Text) > earlyBytesMax {
			return
		}
		q.deltas++
		q.bytes += len(d.Text)
	}
	q.all = append(q.all, message)
	select {
	case q.came <- struct{}{}:
	default:
	}
}

func (q *inbox[T]) take() []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.all
	q.all, q.deltas, q.bytes = nil, 0, 0
	return all
}
