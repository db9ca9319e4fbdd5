package erase

import (
	"context"

	"github.com/refold/refold/internal/journal"
)

// Redaction is an event whose text is to be removed, and what else has the text.
type Redaction struct {
	Session  string
	Event    *journal.Redacted // what stands for it in the ledger
	Notices  []uint64          // sequences in REFOLD_OUT
	Dead     []uint64          // sequences in REFOLD_DEAD
	Snapshot bool              // the session's snapshot
}

// Redact removes an event's text: what else has it is deleted first, then the ledger says
// what stands for the event, and the event is deleted, which overwrites it. It first
// completes what an eraser before it has begun. The event must not be the session's latest
// one, and its lane must have acknowledged that one. The same call again completes it.
func (e *Eraser) Redact(ctx context.Context, r *Redaction) (err error) {
	if err := e.Finish(ctx); err != nil {
		return err
	}
	var n int
	if err := e.deleteAll(ctx, e.store.Names().NoticesStream(), r.Notices, false, &n); err != nil {
		return err
	}
	if err := e.deleteAll(ctx, e.store.Names().DeadStream(), r.Dead, false, &n); err != nil {
		return err
	}
	if r.Snapshot {
		if err := e.Prepare(ctx, r.Session); err != nil {
			return err
		}
	}
	at := r.Event.Seq
	if err := e.enter(ctx, journal.Erasure{Session: r.Session, Redacted: r.Event, Ranges: [][2]uint64{{at, at}}, Before: e.explained()}); err != nil {
		return err
	}
	return e.finish(ctx, &n)
}
