package engine

import (
	"context"
	"math"
	"time"
)

// begin begins an epoch, when everything folded in the previous one is stored. It
// reads what the lane must know before its first event. A lane does not wait for
// anything that can't be read: quarantines are then looked up on each load, and the
// guard suspects nothing.
func (l *Lane) begin(e *EpochStarted) {
	for _, s := range l.sessions {
		s.proven, s.passing = false, 0
		if s.stop != nil && s.state != nil {
			// Its events up to the stop may be done: without a state a recheck
			// notices its release.
			s.state = nil
			l.weigh(s)
		}
	}
	for _, r := range l.released {
		r.last, r.going, r.ending = 0, nil, false // another owner may have resumed it
	}
	var stops map[string]*Stop
	var listErr, recordErr, endErr error
	lane, known, began, end := l.number, l.stopped(), guard{left: e.Left}, uint64(0)
	l.wait("begins an epoch", func(ctx context.Context, w outside) error {
		stops, listErr = w.stopsIn(ctx, lane, time.Now(), known, nil)
		if recordErr = w.host.installs.Load(ctx); recordErr != nil && ctx.Err() == nil {
			w.log.Warn("install records not read", "error", recordErr)
		}
		w.host.checkIntegrity(ctx)
		if began.left != 0 {
			began.note, began.rev = w.guardNote(ctx, lane)
		}
		if end, endErr = w.host.world.LastSeq(ctx); endErr != nil {
			end = math.MaxUint64 // no session counts as new, so each load reads the snapshot
		}
		return nil
	}, func() {
		l.takeStops(stops)
		l.listed, l.recorded = listErr == nil, recordErr == nil
		l.guard, l.newest, l.end = began, 0, end
		l.host.ownsFirst.CompareAndSwap(false, l.number == 0)
		l.host.meters.began(l.number, l.owned, l.epochs == 0)
		l.epochs++
	})
}
