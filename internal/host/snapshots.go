package host

import (
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

// snapshot is the snapshot of a session on its way to the bucket.
type snapshot struct {
	actor *actor
	seq   uint64
	count uint64 // events folded
	data  []byte
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
	if s.state.Count-s.snapped < l.host.opts.SnapshotEach {
		return nil
	}
	return l.capture(s)
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
	s.snapped = s.state.Count
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
		}
	}
	l.snapshots.put(all...)
}

// fails reports whether an output of a session can never be stored.
func (s *slice) fails(a *actor) bool {
	return slices.ContainsFunc(s.outputs, func(o *outputs) bool { return o.actor == a && o.failed != nil })
}

// learn takes back what was counted as stored and is not.
func (l *laneActor) learn() {
	for _, p := range l.snapshots.results() {
		p.actor.unsure--
		if p.err != nil && p.actor.snapped == p.count {
			p.actor.snapped = 0
		}
	}
}

// lookAround learns what became of snapshots, and makes room in memory: a lane that
// is idle gives way when the host runs more lanes.
func (l *laneActor) lookAround() {
	defer l.snapshots.together()()
	l.learn()
	l.recount()
	l.evict(nil)
}

// snapshotAll puts what the next owner will ask for first, and waits for it.
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
