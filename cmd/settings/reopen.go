package settings

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/refold/refold/internal/natsio"
)

// Bounds of the wait between two attempts to connect again.
const (
	reopenWaitMin = 250 * time.Millisecond
	reopenWaitMax = 5 * time.Second
)

// Health is what a daemon reports about itself.
type Health interface {
	// Broken makes the daemon neither healthy nor ready, for this reason; an empty
	// one: it is healthy again.
	Broken(why string)
}

// Reopen calls run, which connects, calls up when it works, and returns when ctx or its
// connections end. If a connection was closed for good, Reopen calls run again, with
// exponential backoff, until it works; meanwhile the daemon is neither ready nor
// healthy. Reopen returns the latest error if that takes longer than ClosedExit. It
// returns every other error of run at once.
func (c *Connection) Reopen(ctx context.Context, log *slog.Logger, health Health, run func(ctx context.Context, up func()) error) error {
	var until time.Time // run must work before; zero: it works, or never did
	wait := reopenWaitMin
	for {
		err := run(ctx, func() {
			until, wait = time.Time{}, reopenWaitMin
			health.Broken("")
		})
		var closed *natsio.ClosedError
		switch {
		case err == nil, ctx.Err() != nil, until.IsZero() && !errors.As(err, &closed):
			return err
		case until.IsZero():
			until = time.Now().Add(c.ClosedExit)
		}
		if time.Now().Add(wait).After(until) {
			return fmt.Errorf("%w; there was no new connection within --closed-exit %v", err, c.ClosedExit)
		}
		health.Broken(err.Error())
		log.Warn("nats_opens_again", "error", err.Error(), "in_ms", wait.Milliseconds(), "ends_in_ms", time.Until(until).Milliseconds())
		if err := natsio.Sleep(ctx, wait); err != nil {
			return err
		}
		wait = min(2*wait, reopenWaitMax)
	}
}
