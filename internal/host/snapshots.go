package host

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/refold/refold/actors/session"
)

// Limits of storing a snapshot: how long one may take, and for how long none
// is tried after one failed. They are a cache, and must not hold a lane up.
const (
	snapshotWithin = 5 * time.Second
	snapshotPause  = time.Minute
)

// How many sessions a draining lane snapshots, for how long, and from how many
// events behind the last snapshot on it is worth it.
const (
	lastSnapshotsMax   = 1024
	lastSnapshotsFor   = 3 * time.Second
	lastSnapshotEvents = 16
)

// longWaitMS is how far ahead a wake must be due to be in a snapshot before the
// event that opened it is acknowledged. What is due sooner is settled while the
// name of the wake is kept; a session that waits longer is found by a sweep, and
// a sweep looks at snapshots alone. An effect's default deadline is no long wait.
const longWaitMS = session.DeadlineDefaultMS

// waitsLong reports whether the state has a wake far ahead that the session's
// snapshot does not know.
func (s *actor) waitsLong() bool {
	for i := range s.state.Wakes {
		if w := &s.state.Wakes[i]; w.Due-w.At > longWaitMS && !slices.Contains(s.wakes, w.Number) {
			return true
		}
	}
	return false
}

// waitsOtherwise reports whether the open wakes are others than those of the
// session's snapshot.
func (s *actor) waitsOtherwise() bool {
	return len(s.state.Wakes) != len(s.wakes) || s.isBehind()
}

// isBehind reports whether the snapshot has a wake that is open no more: a sweep
// would load the session for it, in vain.
func (s *actor) isBehind() bool {
	return slices.ContainsFunc(s.wakes, func(number uint32) bool { return !s.isOpen(number) })
}

// isOpen reports whether a wake is open.
func (s *actor) isOpen(wake uint32) bool {
	return slices.ContainsFunc(s.state.Wakes, func(w session.OpenWake) bool { return w.Number == wake })
}

// snapshotIs takes the state as what the session's snapshot has.
func (s *actor) snapshotIs(state *session.State) {
	s.snapped, s.wakes = state.Count, nil
	for i := range state.Wakes {
		s.wakes = append(s.wakes, state.Wakes[i].Number)
	}
}

// snapshot stores the snapshots of sessions that are settled, several at once,
// and waits for them. Failing to costs time at the next load; a session that
// waits long is tried again while it is in memory.
func (l *laneActor) snapshot(ctx context.Context, list []*actor) {
	if len(list) == 0 || time.Now().Before(l.snapshotsFrom) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, snapshotWithin)
	defer cancel()
	failures := make([]error, len(list))
	room := make(chan struct{}, storingMax)
	var storing sync.WaitGroup
	for i, s := range list {
		room <- struct{}{}
		storing.Go(func() {
			defer func() { <-room }()
			if failures[i] = l.host.putSnapshot(ctx, s); failures[i] != nil {
				return
			}
			s.snapshotIs(s.state)
		})
	}
	storing.Wait()
	failed := 0
	for i, err := range failures {
		if err == nil {
			continue
		}
		if failed++; failed == 1 {
			l.log.Warn("snapshot not stored", "session", list[i].sid, "error", err)
			l.snapshotsFrom = time.Now().Add(snapshotPause)
		}
	}
	if failed > 1 {
		l.log.Warn("more snapshots not stored", "sessions", failed-1)
	}
}

// putSnapshot stores the snapshot of a session that is settled.
func (h *Host) putSnapshot(ctx context.Context, s *actor) error {
	data, err := snapshotOf(s.state)
	if err != nil {
		return err
	}
	if len(s.state.Wakes) == 0 {
		return h.world.PutSnapshot(ctx, s.sid, s.state.Seq, data)
	}
	due := s.state.Wakes[0].Due
	for i := range s.state.Wakes {
		due = min(due, s.state.Wakes[i].Due)
	}
	return h.world.PutWaiting(ctx, s.sid, s.state.Seq, data, due)
}

// snapshotLong stores the snapshots of sessions that wait long and are in none,
// because storing it failed.
func (l *laneActor) snapshotLong(ctx context.Context) {
	if time.Now().Before(l.snapshotsFrom) {
		return
	}
	var list []*actor
	for _, s := range l.sessions {
		if len(list) < storingMax && s.stop == nil && s.proven && s.settled() && s.waitsLong() {
			list = append(list, s)
		}
	}
	l.snapshot(ctx, list)
}

// snapshotAll stores what the next owner will ask for first. Who waits long is
// snapshotted already.
func (l *laneActor) snapshotAll() {
	ctx, cancel := context.WithTimeout(context.Background(), lastSnapshotsFor)
	defer cancel()
	var list []*actor
	for _, s := range l.sessions {
		if len(list) < lastSnapshotsMax && s.settled() && s.state.Count-s.snapped >= lastSnapshotEvents {
			list = append(list, s)
		}
	}
	l.snapshot(ctx, list)
}
