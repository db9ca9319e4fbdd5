package audit

import (
	"context"
	"errors"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/journal"
)

// wakesAtOnce is how many wakes RestoreWakes stores together.
const wakesAtOnce = 1000

// Wakes is where RestoreWakes stores them, and the log that it reads.
type Wakes interface {
	Archive
	Store(ctx context.Context, outputs []journal.Output) []error
}

// RestoreWakes reads the log once, folds all sessions together, and asks every open
// wake again. It holds the states of all sessions in memory. It may run at any time: a
// schedule is replaced by the same one, and a wake that was settled meanwhile fires
// again, which its session ignores. When it fails, some wakes may be asked.
func RestoreWakes(ctx context.Context, b Wakes, pinned Pinned) (sessions, wakes int, err error) {
	p, err := States(ctx, b, pinned)
	if err != nil {
		return 0, 0, err
	}
	var batch []journal.Output
	flush := func() error {
		err := errors.Join(b.Store(ctx, batch)...)
		wakes += len(batch)
		batch = batch[:0]
		return err
	}
	for r := range p.Results(false) {
		sessions++
		// A state with only wakes has no other open effects.
		only := session.State{Record: session.Record{Shown: session.Shown{Session: r.Session}, Overrides: r.State.Overrides, Wakes: r.State.Wakes}}
		for _, wake := range only.Open() {
			batch = append(batch, journal.Output{Session: r.Session, Effect: &wake})
		}
		if len(batch) >= wakesAtOnce {
			if err := flush(); err != nil {
				return sessions, wakes, err
			}
		}
	}
	return sessions, wakes, flush()
}
