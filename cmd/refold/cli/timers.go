package cli

import (
	"context"
	"fmt"
	"time"
)

// timersCommand has the commands about schedules of deadlines.
type timersCommand struct {
	Restore timersRestoreCommand `cmd:"" help:"Schedule every open deadline again, from the log: after a loss of REFOLD_TIMERS, or a restore without it. Safe at any time."`
}

// timersRestoreCommand schedules the open wakes of all sessions.
type timersRestoreCommand struct{ asJSON }

func (t timersRestoreCommand) Run(ctx context.Context, s streams, conn connection) error {
	c, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	r, err := c.RestoreTimers(ctx)
	if err != nil {
		return fmt.Errorf("timers restore: %w", err)
	}
	if t.JSON {
		printJSON(s.out, map[string]any{"sessions": r.Sessions, "scheduled": r.Wakes, "took_ms": r.Took.Milliseconds()})
		return nil
	}
	fmt.Fprintf(s.out, "%d wakes scheduled, of %d sessions, in %v\n", r.Wakes, r.Sessions, r.Took.Round(time.Millisecond))
	return nil
}
