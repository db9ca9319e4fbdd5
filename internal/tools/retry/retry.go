// Package retry decides whether a tool call that did not arrive is sent again.
package retry

import (
	"context"
	"time"
)

// EndMargin is how long before the end of its run time a call is given up that did
// not arrive. After the end it could not be distinguished from one that did.
const EndMargin = 500 * time.Millisecond

// Fits reports whether a call may be sent again at next, which must be before
// the end of its run time. Without a deadline it always may.
func Fits(ctx context.Context, next time.Time) bool {
	end, ok := ctx.Deadline()
	return !ok || next.Add(EndMargin).Before(end)
}
