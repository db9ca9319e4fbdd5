package host

import (
	"context"
	"math"
	"time"
)

// begin begins an epoch, when all that was folded in the one before is stored.
func (l *Lane) begin(e *EpochStarted) {
	for _, s := range l.sessions {
		s.proven = false
	}
	for _, r := range l.released {
		r.anew()
	}
	l.guard = guard{left: e.Left}
	l.wait(&opening{outside: l.outside, lane: l.number, known: l.stopped(), left: e.Left})
}

// opening reads what is to be known before the first event of an epoch. What
// can't be read is looked up when it is needed, or not suspected: a lane does not
// wait for it.
type opening struct {
	outside
	lane  int
	known map[string]bool // sessions that are known to be quarantined
	left  uint64

	stops    map[string]*Stop
	listed   bool
	recorded bool
	note     guardNote
	rev      uint64
	end      uint64
}

func (w *opening) String() string { return "begins an epoch" }

func (w *opening) Do(ctx context.Context, tell func(Input)) {
	var err error
	if w.stops, err = w.host.stopsIn(ctx, w.lane, time.Now(), w.known); err != nil && ctx.Err() == nil {
		w.log.Warn("quarantined sessions not listed", "error", err)
	}
	w.listed = err == nil
	if err = w.host.installs.Load(ctx); err != nil && ctx.Err() == nil {
		w.log.Warn("install records not read", "error", err)
	}
	w.recorded = err == nil
	w.host.askIntegrity(ctx)
	if w.left != 0 {
		w.note, w.rev = w.guardNote(ctx, w.lane)
	}
	w.end = w.host.logEnd(ctx)
	tell(w)
}

func (w *opening) step(l *Lane) {
	l.waiting = false
	l.takeStops(w.stops)
	l.listed, l.recorded = w.listed, w.recorded
	l.guard.note, l.guard.rev = w.note, w.rev
	l.newest, l.end = 0, w.end
	l.host.ownsFirst.CompareAndSwap(false, l.number == 0)
	l.host.meters.began(l.number, l.owned, l.epochs == 0)
	l.epochs++
}

// logEnd returns the sequence of the log's last event, for who loads new
// sessions at once; the greatest number if that is not known, or nobody does.
func (h *Host) logEnd(ctx context.Context) uint64 {
	if _, tells := h.world.(firsts); tells {
		if seq, err := h.world.LastSeq(ctx); err == nil {
			return seq
		}
	}
	return math.MaxUint64
}
