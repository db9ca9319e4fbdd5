package worker

import (
	"context"
	"time"
)

// silentFor returns the time between two readings of time.Now: the longer of what the
// monotonic clock and the shown time say, since the monotonic clock stands still
// while the machine is suspended.
func silentFor(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// afterSilence decides about a call that we claimed. If others may have considered
// us gone since, because this process was frozen or cut off, another bridge may have
// settled the call as outcome_unknown: then it starts only if it is still open.
func (w *Worker) afterSilence(ctx context.Context, f *execution) decision {
	gaps := w.detector.look()
	if !w.wasSilent(f) {
		return decision{next: nextStart}
	}
	view, err := w.wire.View(ctx, f.name.Session)
	switch {
	case err != nil:
		return giveBack(troubleDelay, "no view")
	case isOpen(view, f.name.Effect):
		f.claims.gaps = gaps // of the heartbeats before the view
		if w.wasSilent(f) {
			return giveBack(aliveEvery, "nobody hears this bridge")
		}
		return decision{next: nextStart}
	case view.Clock > f.call.At:
		return ack("not open")
	}
	return giveBack(troubleDelay, "the view is older than the effect")
}

// wasSilent reports whether others may have considered us gone since we claimed f.
func (w *Worker) wasSilent(f *execution) bool {
	if f.claims.asked == 0 {
		return false
	}
	heard, now := w.detector.heardWithoutGap(f.claims.gaps)
	return !heard || !now
}
