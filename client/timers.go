package client

import (
	"context"
	"time"

	"github.com/refold/refold/internal/audit"
)

// TimersRestored is the result of RestoreTimers.
type TimersRestored struct {
	Sessions int           // in the log
	Wakes    int           // scheduled
	Took     time.Duration // in total
}

// RestoreTimers restores lost timers: it reads the log once, folds all sessions
// together, and schedules every open wake. It may run at any time, also while
// daemons run: it replaces an existing schedule by the same one, and a wake that
// was settled meanwhile fires again, which its session ignores. It holds the
// states of all sessions in memory. When it fails, some wakes may be scheduled;
// running it again is safe.
func (c *Client) RestoreTimers(ctx context.Context) (t TimersRestored, err error) {
	begun := time.Now()
	t.Sessions, t.Wakes, err = audit.RestoreWakes(ctx, c.bus, c.installs.Pinned)
	t.Took = time.Since(begun)
	return t, err
}
