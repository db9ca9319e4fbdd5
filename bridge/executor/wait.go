package executor

import (
	"context"
	"errors"
	"time"
)

// ErrStopping is returned by Wait if the bridge stops.
var ErrStopping = errors.New("this bridge is stopping")

type stoppingKey struct{}

// WithStopping returns a context for an executor of a bridge that begins to stop
// when stopping ends. Bridges and tests of executors call it.
func WithStopping(ctx, stopping context.Context) context.Context {
	return context.WithValue(ctx, stoppingKey{}, stopping.Done())
}

// Stopping returns a channel that is closed when the bridge that calls an executor
// with ctx begins to stop; nil without a bridge. What an executor has begun may then
// go on, until ctx ends after the grace time. What only waits should end: see Wait.
func Stopping(ctx context.Context) <-chan struct{} {
	stopping, _ := ctx.Value(stoppingKey{}).(<-chan struct{})
	return stopping
}

// Wait waits for d before an executor tries again. It returns the error of ctx if
// that ends first, and ErrStopping if the bridge begins to stop: the executor should
// return an error that wraps it, at once. The bridge then gives the effect back, and
// another bridge carries it out. A call that is not retry-safe can't be given back:
// it is settled with the Result that is returned beside the error, which must have
// an Error.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-Stopping(ctx):
		return ErrStopping
	}
}
