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

// drain closes draining and waits until the run has ended. It returns at once if
// nothing was run.
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
