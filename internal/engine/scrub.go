package engine

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/subjects"
)

// Limits of scrubbing.
const (
	scrubFirst = 5 * time.Minute // after the start: others have work to do then
	scrubEvery = 24 * time.Hour  // from the beginning of one to that of the next
	scrubPage  = 256             // snapshots that are held at a time
)

// scrub compares the snapshots of all sessions of the lane with what the log
// folds to, one after the other, once a day, until ctx ends. A load begins at the
// snapshot, and so does not see an event before it that was altered; samples are
// of sessions that something happens to. This is how it is seen in the others.
func (d *driver) scrub(ctx context.Context) {
	if d.host.opts.VerifyPart <= 0 {
		return
	}
	for next := scrubFirst; pause(ctx, next); {
		began := time.Now()
		next = scrubFirst // of a lane that this host does not own: it may soon
		if !d.owned() {
			continue
		}
		n, err := d.scrubOnce(ctx)
		if err != nil && ctx.Err() == nil {
			d.log.Warn("round not finished", "sessions", n, "error", err)
			continue
		}
		if n > 0 {
			d.log.Info("snapshots compared with the log", "sessions", n, "took_ms", time.Since(began).Milliseconds())
		}
		next = max(scrubFirst, time.Until(began.Add(scrubEvery)))
	}
}

// scrubOnce scrubs once, and returns how many sessions it looked at. It begins
// anywhere: one that is started each morning would else never come to the last ones.
func (d *driver) scrubOnce(ctx context.Context) (n int, err error) {
	start, err := d.randomStart(ctx)
	if err != nil || start == 0 {
		return 0, err
	}
	for _, part := range [][2]uint64{{start, math.MaxUint64}, {1, start}} {
		for from := part[0]; from > 0 && from < part[1]; {
			var page []journal.SnapshotAt
			if page, from, err = d.snapshotsFrom(ctx, from, part[1]); err != nil {
				return n, err
			}
			for _, w := range page {
				if !d.owned() {
					return n, nil // whoever owns it goes his own
				}
				if !d.host.inTurn(ctx, func() {
					if wrong := d.auditSnapshot(ctx, w.Session, nil); wrong != nil {
						d.tell(ctx, wrong)
					}
				}) {
					return n, ctx.Err()
				}
				n++
			}
		}
	}
	return n, nil
}

// snapshotsFrom returns some of the lane's snapshots, by their sequences in the
// bucket, and from where to go on; 0: that was all before end.
func (d *driver) snapshotsFrom(ctx context.Context, from, end uint64) (page []journal.SnapshotAt, next uint64, err error) {
	for w, err := range d.host.world.ListSnapshots(ctx, from) {
		if err != nil {
			return nil, 0, err
		}
		if w.Seq >= end {
			break
		}
		if !d.has(w.Session) {
			continue
		}
		if page = append(page, w); len(page) == scrubPage {
			return page, w.Seq + 1, nil
		}
	}
	return page, 0, nil
}

// randomStart returns the sequence of one of the lane's snapshots, each as likely;
// 0: there are none.
func (d *driver) randomStart(ctx context.Context) (seq uint64, err error) {
	n := 0
	for w, err := range d.host.world.ListSnapshots(ctx, 1) {
		if err != nil {
			return 0, err
		}
		if d.has(w.Session) {
			if n++; rand.IntN(n) == 0 {
				seq = w.Seq
			}
		}
	}
	return seq, nil
}

// has reports whether a session is of this lane.
func (d *driver) has(sid string) bool {
	return subjects.LaneOf(subjects.Partition(sid), d.host.opts.Lanes) == d.number
}
