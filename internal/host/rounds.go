package host

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/subjects"
)

// Limits of rounds.
const (
	roundFirst = 5 * time.Minute // after the start: others have work to do then
	roundEvery = 24 * time.Hour  // from the beginning of one to that of the next
	roundPage  = 256             // snapshots that are held at a time
)

// rounds compares the snapshots of all sessions of the lane with what the log
// folds to, one after the other, once a day, until ctx ends. A load begins at the
// snapshot, and so does not see an event before it that was altered; samples are
// of sessions that something happens to. This is how it is seen in the others.
func (l *laneActor) rounds(ctx context.Context) {
	if l.host.opts.VerifyPart <= 0 {
		return
	}
	for next := roundFirst; pause(ctx, next); {
		began := time.Now()
		next = roundFirst // of a lane that this host does not own: it may soon
		if !l.lane.Owned() {
			continue
		}
		n, err := l.round(ctx)
		if err != nil && ctx.Err() == nil {
			l.log.Warn("round not finished", "sessions", n, "error", err)
			continue
		}
		if n > 0 {
			l.log.Info("snapshots compared with the log", "sessions", n, "took_ms", time.Since(began).Milliseconds())
		}
		next = max(roundFirst, time.Until(began.Add(roundEvery)))
	}
}

// round is one round, and returns how many sessions it looked at. It begins
// anywhere: who is started each morning would else never come to the last ones.
func (l *laneActor) round(ctx context.Context) (n int, err error) {
	start, err := l.anywhere(ctx)
	if err != nil || start == 0 {
		return 0, err
	}
	for _, part := range [][2]uint64{{start, math.MaxUint64}, {1, start}} {
		for from := part[0]; from > 0 && from < part[1]; {
			var page []journal.SnapshotAt
			if page, from, err = l.snapshotsFrom(ctx, from, part[1]); err != nil {
				return n, err
			}
			for _, w := range page {
				if !l.lane.Owned() {
					return n, nil // whoever owns it goes his own
				}
				if !l.inTurn(ctx, func() { l.examine(ctx, w.Session) }) {
					return n, ctx.Err()
				}
				n++
			}
		}
	}
	return n, nil
}

// examine compares the snapshot of a session with what the log folds to. A
// difference quarantines the session.
func (l *laneActor) examine(ctx context.Context, sid string) {
	err := func() (err error) {
		defer func() { err = recovered(recover(), err) }()
		data, found, err := l.host.world.GetSnapshot(ctx, sid)
		if err != nil || !found {
			return err
		}
		snap, err := session.ParseSnapshot(data)
		if err != nil {
			return err
		}
		return l.verify(ctx, sample{sid: sid, seq: snap.Seq, hash: snap.Hash, data: data})
	}()
	if err != nil && ctx.Err() == nil {
		l.log.Warn("snapshot not verified", "session", sid, "error", err)
	}
}

// snapshotsFrom returns some of the lane's snapshots, by their sequences in the
// bucket, and from where to go on; 0: that was all before end.
func (l *laneActor) snapshotsFrom(ctx context.Context, from, end uint64) (page []journal.SnapshotAt, next uint64, err error) {
	for w, err := range l.host.world.ListSnapshots(ctx, from) {
		if err != nil {
			return nil, 0, err
		}
		if w.Seq >= end {
			break
		}
		if !l.has(w.Session) {
			continue
		}
		if page = append(page, w); len(page) == roundPage {
			return page, w.Seq + 1, nil
		}
	}
	return page, 0, nil
}

// anywhere returns the sequence of one of the lane's snapshots, each as likely;
// 0: there are none.
func (l *laneActor) anywhere(ctx context.Context) (seq uint64, err error) {
	n := 0
	for w, err := range l.host.world.ListSnapshots(ctx, 1) {
		if err != nil {
			return 0, err
		}
		if l.has(w.Session) {
			if n++; rand.IntN(n) == 0 {
				seq = w.Seq
			}
		}
	}
	return seq, nil
}

// has reports whether a session is of this lane.
func (l *laneActor) has(sid string) bool {
	return subjects.LaneOf(subjects.Partition(sid), l.host.opts.Lanes) == l.lane.Number()
}
