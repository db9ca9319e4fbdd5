// Package retry waits until a tool call that reached nobody may be sent again.
package retry

import (
	"context"
	"time"
)

// EndMargin before the end of its run time a call that reached nobody is given
// up. After the end it could not be distinguished from one that did.
const EndMargin = 500 * time.Millisecond

// Fits reports that a call which is sent again at next is not yet at the end of
// its run time then. Without a deadline it always fits.
func Fits(ctx context.Context, next time.Time) bool {
	end, ok := ctx.Deadline()
	return !ok || next.Add(EndMargin).Before(end)
}

// Pause waits, and reports whether ctx did not end meanwhile.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
