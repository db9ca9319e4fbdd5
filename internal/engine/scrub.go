package engine

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/refold/refold/subjects"
)

// Limits of scrubbing.
const (
	scrubFirst = 5 * time.Minute // after the start, when lanes have other work
	scrubEvery = 24 * time.Hour  // from the start of one scrub to that of the next
)

// scrub compares the snapshots of all sessions of the lane with the log, one after
// another, once a day, until ctx ends. A load begins at the snapshot, so it does
// not notice that an earlier event was altered. Samples cover only sessions that
// receive events.
func (d *driver) scrub(ctx context.Context) {
	if d.host.opts.VerifyPart <= 0 {
		return
	}
	for next := scrubFirst; pause(ctx, next); {
		began := time.Now()
		next = scrubFirst // if this host does not own the lane yet
		if !d.owned() {
			continue
		}
		n, err := d.scrubOnce(ctx)
		if err != nil && ctx.Err() == nil {
			d.log.Warn("scrub not finished", "sessions", n, "error", err)
			continue
		}
		if n > 0 {
			d.log.Info("snapshots compared with the log", "sessions", n, "took_ms", time.Since(began).Milliseconds())
		}
		next = max(scrubFirst, time.Until(began.Add(scrubEvery)))
	}
}

// scrubOnce scrubs once, while the host owns the lane, and returns how many
// sessions it checked. It begins at a random session: otherwise a host that is
// restarted each morning would never reach the last ones.
func (d *driver) scrubOnce(ctx context.Context) (n int, err error) {
	var sids []string
	for s, err := range d.host.world.ListSnapshots(ctx, 1) {
		if err != nil {
			return 0, err
		}
		if subjects.LaneOf(subjects.Partition(s.Session), d.host.opts.Lanes) == d.number {
			sids = append(sids, s.Session)
		}
	}
	for first := rand.IntN(len(sids) + 1); n < len(sids) && d.owned(); n++ {
		verify := verification{outside: d.outside, sid: sids[(first+n)%len(sids)]}
		if !verify.inTurn(ctx, func(in Input) { d.report(ctx, in) }) {
			return n, ctx.Err()
		}
	}
	return n, nil
}
