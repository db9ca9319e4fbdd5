package client

import (
	"context"
	"errors"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/audit"
	"github.com/refold/refold/internal/journal"
)

// restoredAtOnce is how many wakes RestoreTimers stores together.
const restoredAtOnce = 1000

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
	p, err := audit.States(ctx, c.bus, c.installs.Pinned)
	if err != nil {
		return t, err
	}
	var wakes []journal.Output
	flush := func() error {
		err := errors.Join(c.bus.Store(ctx, wakes)...)
		t.Wakes += len(wakes)
		wakes = wakes[:0]
		return err
	}
	for r := range p.Results(false) {
		t.Sessions++
		sid := r.Session
		// A state with only wakes has no other open effects.
		only := session.State{Record: session.Record{Session: sid, Wakes: r.State.Wakes}}
		for _, wake := range only.Open() {
			wakes = append(wakes, journal.Output{Session: sid, Effect: &wake})
		}
		if len(wakes) >= restoredAtOnce {
			if err := flush(); err != nil {
				return t, err
			}
		}
	}
	err = flush()
	t.Took = time.Since(begun)
	return t, err
}
