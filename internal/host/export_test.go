package host

import (
	"context"
	"log/slog"
	"time"

	"github.com/refold/refold/internal/bus"
)

// WakeGrace is how late a timer bridge may be.
const WakeGrace = wakeGrace

// RecheckEvery makes a host look after quarantined sessions more often.
func (h *Host) RecheckEvery(d time.Duration) { h.recheck = d }

// SweepFirst makes a host sweep lanes that nobody owns sooner.
func (h *Host) SweepFirst(d time.Duration) { h.sweepFirst = d }

// SweepLanes sweeps all lanes once, as a host that has no session in memory, and
// returns how many sessions it looked after.
func SweepLanes(ctx context.Context, b *bus.Bus) (n int, err error) {
	h := New(b, slog.New(slog.DiscardHandler), Options{})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i := range h.opts.Lanes {
		l := newLaneActor(h, b.Lane(i))
		go func() {
			for {
				select {
				case f := <-l.calls:
					f()
				case <-ctx.Done():
					return
				}
			}
		}()
		swept, err := l.sweep(ctx)
		if n += swept; err != nil {
			return n, err
		}
	}
	return n, nil
}

// LookAfter does to one session what a sweep does.
func LookAfter(ctx context.Context, b *bus.Bus, w bus.Waiting) error {
	return newLaneActor(New(b, slog.New(slog.DiscardHandler), Options{}), b.Lane(0)).lookAfter(ctx, w)
}
