package natsio

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Bounds of the wait between two attempts to connect again.
const (
	reopenWaitMin = 250 * time.Millisecond
	reopenWaitMax = 5 * time.Second
)

// Reopen calls run, which connects, calls up when it works, and returns when ctx or its
// connections end. If a connection was closed for good, Reopen calls run again, with
// exponential backoff, until it works. Meanwhile it tells broken why it does not, and
// an empty text when it works again; broken may be nil. Reopen returns the latest error
// if that takes longer than within; 0: at once. It returns every other error of run at
// once.
func Reopen(ctx context.Context, within time.Duration, log *slog.Logger, broken func(why string), run func(ctx context.Context, up func()) error) error {
	if broken == nil {
		broken = func(string) {}
	}
	var until time.Time // run must work before; zero: it works, or never did
	wait := reopenWaitMin
	for {
		err := run(ctx, func() {
			until, wait = time.Time{}, reopenWaitMin
			broken("")
		})
		switch {
		case err == nil, ctx.Err() != nil, until.IsZero() && !errors.Is(err, ErrClosed):
			return err
		case until.IsZero():
			until = time.Now().Add(within)
		}
		if time.Now().Add(wait).After(until) {
			return fmt.Errorf("%w; there was no new connection within %v", err, within)
		}
		broken(err.Error())
		log.Warn("nats_opens_again", "error", err.Error(), "in_ms", wait.Milliseconds(), "ends_in_ms", time.Until(until).Milliseconds())
		if err := Sleep(ctx, wait); err != nil {
			return err
		}
		wait = min(2*wait, reopenWaitMax)
	}
}
