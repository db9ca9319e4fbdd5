package delivery

import (
	"context"
	"errors"
	"sync"
)

// once guards the single run of a Lane or an EffectPuller.
type once struct {
	mu       sync.Mutex
	running  chan struct{} // closed when Run returns; nil before it
	draining chan struct{} // closed by Drain
	drain    sync.Once
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

// Drain ends the run: nothing is given out any more, and what a puller gets is given
// back. When all that was given is acked, a lane is unpinned, so that a host that
// stands by has it at once. Drain returns nil when Run has returned, ctx's error if
// that ends before. What does not run returns nil, and never runs.
func (o *once) Drain(ctx context.Context) error {
	o.drain.Do(func() { close(o.draining) })
	o.mu.Lock()
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
