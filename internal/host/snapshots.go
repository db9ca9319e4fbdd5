package host

import (
	"context"
	"slices"
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

// snapshot is the snapshot of a session on its way to the bucket.
type snapshot struct {
	actor *actor
	seq   uint64
	count uint64 // events folded
	data  []byte
	wake  int64 // when its earliest open wake is due, Unix ms; 0: it has none
	long  bool  // it waits far ahead, and is in no other snapshot
	err   error // it is not stored
	done  chan struct{}
}

// due returns the snapshot of a session's state, if one is due. The state need
// not be stored yet; the snapshot must not be put before it is.
func (l *laneActor) due(s *actor) *snapshot {
	if s.state == nil {
		return nil
	}
	l.weigh(s)
	long := s.waitsLong()
	if !long && s.state.Count-s.snapped < l.host.opts.SnapshotEach && !s.isBehind() {
		return nil
	}
	p := l.capture(s)
	if p != nil {
		p.long = long
	}
	return p
}

// capture takes the snapshot of a session, and counts it as stored until it is
// known to have failed. It may be verified, unless its state is known to be wrong.
func (l *laneActor) capture(s *actor) *snapshot {
	p := l.captureOf(s)
	if p != nil && l.host.chosen() && !l.snapshots.bars(s) {
		if snap, err := session.ParseSnapshot(p.data); err == nil {
			l.sample(&sample{sid: s.sid, seq: snap.Seq, hash: snap.Hash, data: p.data})
		}
	}
	return p
}

func (l *laneActor) captureOf(s *actor) *snapshot {
	data, err := snapshotOf(s.state)
	if err != nil {
		l.log.Error("snapshot not taken", "session", s.sid, "error", err)
		return nil
	}
	p := &snapshot{actor: s, seq: s.state.Seq, count: s.state.Count, data: data, done: make(chan struct{})}
	for i := range s.state.Wakes {
		if due := s.state.Wakes[i].Due; p.wake == 0 || due < p.wake {
			p.wake = due
		}
	}
	s.snapshotIs(s.state)
	s.unsure++
	return p
}

// captures takes snapshots of sessions whose states are stored, and has them
// put.
func (l *laneActor) captures(list []*actor) {
	var all []*snapshot
	for _, s := range list {
		if p := l.capture(s); p != nil {
			all = append(all, p)
		} else if l.sessions[s.sid] == nil {
			l.saveNot(s)
		}
	}
	l.snapshots.put(all...)
}

// putLong puts the snapshots of sessions that wait far ahead, and waits for
// them: one that waits for a week is found by its snapshot alone, whatever
// becomes of this process, so it comes before the acknowledgement. Called when
// the slice is stored.
func (l *laneActor) putLong(ctx context.Context, s *slice) {
	var rest, long []*snapshot
	for _, p := range s.snapshots {
		switch {
		case s.fails(p.actor): // quarantined: its state is ahead of what is stored
		case p.long:
			long = append(long, p)
		default:
			rest = append(rest, p)
		}
	}
	s.snapshots = rest
	l.snapshots.put(long...)
	ctx, cancel := context.WithTimeout(ctx, snapshotWithin)
	defer cancel()
	for _, p := range long {
		select {
		case <-p.done:
		case <-ctx.Done():
			return // it is on its way; the lane goes on
		}
	}
}

// fails reports whether an output of a session can never be stored.
func (s *slice) fails(a *actor) bool {
	return slices.ContainsFunc(s.outputs, func(o *outputs) bool { return o.actor == a && o.failed != nil })
}

// failsOf is the same, of a session by its name.
func (s *slice) failsOf(sid string) bool {
	return slices.ContainsFunc(s.outputs, func(o *outputs) bool { return o.failed != nil && o.arrival.event.Session == sid })
}

// learn takes back what was counted as stored and is not.
func (l *laneActor) learn() {
	for _, p := range l.snapshots.results() {
		p.actor.unsure--
		if p.err != nil && p.actor.snapped == p.count {
			p.actor.snapped, p.actor.wakes = 0, nil
			if l.sessions[p.actor.sid] == nil {
				l.saveNot(p.actor)
			}
		}
	}
}

// lookAtSnapshots learns what became of those on their way, and tries those
// again of sessions that wait far ahead.
func (l *laneActor) lookAtSnapshots() {
	l.learn()
	if l.snapshots.paused() {
		return
	}
	var list []*actor
	for _, s := range l.sessions {
		if len(list) < puttingMax && s.stop == nil && s.proven && s.settled() && s.waitsLong() {
			list = append(list, s)
		}
	}
	l.captures(list)
}

// snapshotAll puts what the next owner will ask for first, and waits for it. Who
// waits long is snapshotted already.
func (l *laneActor) snapshotAll() {
	var list []*actor
	for _, s := range l.sessions {
		if len(list) < lastSnapshotsMax && s.settled() && s.state.Count-s.snapped >= lastSnapshotEvents {
			list = append(list, s)
		}
	}
	l.captures(list)
	l.snapshots.finish(lastSnapshotsFor)
}
