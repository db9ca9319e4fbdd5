package delivery

import (
	"context"
	"errors"
	"sync"
)

// once is what a lane and a puller of effects know of their one run.
type once struct {
	mu       sync.Mutex
	running  chan struct{} // closed when Run returns; nil before it
	draining chan struct{} // closed by Drain
	drained  bool
}

var errRunTwice = errors.New("it is run once: take a new one from the Source")

// begin begins the run. The caller closes done at its end.
func (o *once) begin() (done chan struct{}, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.running != nil {
		return nil, errRunTwice
	}
	o.running = make(chan struct{})
	return o.running, nil
}

// drain closes draining, and waits until the run has ended. Without one it returns nil.
func (o *once) drain(ctx context.Context) error {
	o.mu.Lock()
	if !o.drained {
		o.drained = true
		close(o.draining)
	}
	running := o.running
	o.mu.Unlock()
	if running == nil {
		return nil
	}
	select {
	case <-running:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
