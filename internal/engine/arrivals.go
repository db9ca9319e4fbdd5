package engine

import (
	"slices"
	"sync"

	"github.com/refold/refold/internal/delivery"
)

// arrivals are the epochs and deliveries that a lane has not taken yet, in order. The
// window of an epoch bounds its deliveries, and put drops those of earlier epochs.
type arrivals struct {
	mu    sync.Mutex
	queue []arrival
	more  chan struct{} // of capacity 1: queue is not empty
}

type arrival struct {
	is     Input
	handle delivery.Handle // of a delivery
}

func newArrivals() arrivals { return arrivals{more: make(chan struct{}, 1)} }

// put queues an epoch or a delivery. It does not block.
func (a *arrivals) put(next arrival) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, begins := next.is.(*EpochStarted); begins {
		a.queue = slices.DeleteFunc(a.queue, func(former arrival) bool {
			_, delivered := former.is.(*Delivered)
			return delivered
		})
	}
	a.queue = append(a.queue, next)
	a.signal()
}

// take returns what is next, or nil. Deliveries that may not be processed any more are
// skipped.
func (a *arrivals) take() Input {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.queue) > 0 {
		next := a.queue[0]
		a.queue[0] = arrival{}
		if a.queue = a.queue[1:]; len(a.queue) > 0 {
			a.signal()
		}
		if next.handle == (delivery.Handle{}) || next.handle.Take() {
			return next.is
		}
	}
	return nil
}

func (a *arrivals) isEmpty() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.queue) == 0
}

// signal signals that the queue is not empty. The lock is held.
func (a *arrivals) signal() {
	select {
	case a.more <- struct{}{}:
	default:
	}
}
