package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/audit"
	"github.com/refold/refold/subjects"
)

// Limits of scrubbing.
const (
	dailyFirst = 5 * time.Minute // after the start, when lanes have other work
	dailyEvery = 24 * time.Hour  // from the start of one day's work to that of the next
	// scrubRest is how long a host rests after it has compared a session, as a
	// multiple of the time that this took: it uses at most a twentieth of one core.
	scrubRest   = 19
	scrubWithin = 5 * time.Minute // for one session
)

// daily does work once a day while this host owns the lane, until ctx ends. What
// fails is tried again soon.
func (d *driver) daily(ctx context.Context, work func(context.Context) error) {
	for next := dailyFirst; pause(ctx, next); {
		began := time.Now()
		next = dailyFirst
		if d.owned() && work(ctx) == nil {
			next = max(dailyFirst, time.Until(began.Add(dailyEvery)))
		}
	}
}

// scrub compares the snapshots of all sessions of the lane with the log, one after
// another. A load begins at the snapshot, so it does not notice that an earlier
// event was altered, or that the snapshot is of another state.
func (d *driver) scrub(ctx context.Context) error {
	began := time.Now()
	n, err := d.scrubOnce(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		d.log.Warn("scrub not finished", "sessions", n, "error", err)
	case n > 0:
		d.log.Info("snapshots compared with the log", "sessions", n, "took_ms", time.Since(began).Milliseconds())
	}
	return err
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
		if !d.scrubSession(ctx, sids[(first+n)%len(sids)]) {
			return n, ctx.Err()
		}
	}
	return n, nil
}

// scrubSession compares one session while no other lane of the host does, and then
// rests before the next one may begin. It returns false if ctx has ended.
func (d *driver) scrubSession(ctx context.Context, sid string) bool {
	select {
	case d.host.scrubbing <- struct{}{}:
		defer func() { <-d.host.scrubbing }()
	case <-ctx.Done():
		return false
	}
	began := time.Now()
	err := d.host.compareSnapshot(ctx, sid)
	var damage *damageError
	switch {
	case errors.As(err, &damage):
		d.results.put(&found{sid, damage})
	case err != nil && ctx.Err() == nil:
		d.log.Warn("snapshot not verified", "session", sid, "error", err)
	}
	return pause(ctx, scrubRest*time.Since(began))
}

// compareSnapshot compares a session's snapshot with what the log folds to. It
// returns a *damageError if they differ.
func (h *Host) compareSnapshot(ctx context.Context, sid string) (err error) {
	defer func() { err = recovered(recover(), err) }()
	ctx, cancel := context.WithTimeout(ctx, scrubWithin)
	defer cancel()
	data, found, err := h.world.GetSnapshot(ctx, sid)
	if err != nil || !found {
		return err
	}
	stored := &audit.Stored{}
	stored.ExpectSnapshot(sid, data)
	r, err := h.audit(ctx, sid, stored)
	switch {
	case r == nil:
	case r.Panicked:
		return errors.New(r.Differences[0].Text)
	case r.SnapshotAt > 0: // otherwise no load uses it
		h.meters.ended(h.meters.compared, err == nil, "same", "different")
	}
	return err
}

// found is a session whose snapshot is not what the log folds to. Its events that
// are folded are stored first.
type found struct {
	sid    string
	damage *damageError
}

func (f *found) step(l *Lane) {
	s := l.sessions[f.sid]
	_, busy := l.parked[f.sid]
	switch {
	case !l.owned() || s != nil && s.stop != nil:
		l.log.Warn("snapshot not verified", "session", f.sid, "error", f.damage)
	case busy:
		l.damaged = append(l.damaged, f) // until the next Tick
	default:
		seq := f.damage.seq + 1
		if s != nil && s.state != nil {
			seq = max(seq, s.state.Seq+1)
		}
		l.quarantine(session.Event{Session: f.sid, Seq: seq}, f.damage, nil)
	}
}
