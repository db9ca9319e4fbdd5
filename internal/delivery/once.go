package delivery

import (
	"context"
	"errors"
	"sync"
)

// once allows a Lane or an EffectPuller to run once, and drains it.
type once struct {
	mu       sync.Mutex
	running  chan struct{} // closed when Run returns; nil before it
	draining chan struct{} // closed by Drain
	drain    sync.Once
}

var errRunTwice = errors.New("it runs only once: take a new one from the Source")

// begin begins the run. The caller closes done when the run ends.
func (o *once) begin() (done chan struct{}, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.running != nil {
		return nil, errRunTwice
	}
	o.running = make(chan struct{})
	return o.running, nil
}

// Drain ends the run: a lane delivers no more events, and a puller returns the messages
// that still arrive. When every delivery is acked, a lane is unpinned, so that a stand-by
// gets it at once. Drain returns nil when Run has returned, or ctx's error if ctx ends
// first. If Run was not called, Drain returns nil, and a later Run ends at once.
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
