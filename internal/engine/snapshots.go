package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/refold/refold/actors/session"
)

// Limits of storing snapshots: how many are stored at once, for how long one may
// take, and for how long none is tried after one failed. Snapshots are a cache and
// must not delay a lane.
const (
	puttingMax     = 32
	snapshotWithin = 5 * time.Second
	snapshotPause  = time.Minute
)

// How many sessions a draining lane snapshots, for how long, and after how many
// events since a session's last snapshot.
const (
	lastSnapshotsMax   = 1024
	lastSnapshotsFor   = 3 * time.Second
	lastSnapshotEvents = 16
)

// snapshots are a lane's snapshots on their way to the bucket. Those of one session
// are stored one after another, and only the newest of them waits, so that none
// replaces a newer one.
type snapshots struct {
	waiting []*snapshot
	under   map[string]bool // sessions whose snapshot is being stored
	until   time.Time       // none is taken before this time, after a failure
}

// snapshot is one session's snapshot on its way to the bucket.
type snapshot struct {
	outside
	actor *actor
	seq   uint64
	count uint64 // events folded
	data  []byte
	err   error // why it is not stored
}

// dueSnapshot returns a snapshot of a session's state if one is due. It must not be
// stored before the state is.
func (l *Lane) dueSnapshot(s *actor) *snapshot {
	if s.state == nil || l.sessions[s.sid] != s {
		return nil
	}
	l.weigh(s)
	isTombstone := s.state.LastType() == session.TypeSessionTombstone && s.state.IsErased() // its snapshot replaces one with text
	if s.state.Count-s.snapped < l.host.opts.SnapshotEach && !isTombstone {
		return nil
	}
	return l.capture(s)
}

// capture takes a snapshot of a session, and counts it as stored until it fails. It
// returns nil if none can be taken now.
func (l *Lane) capture(s *actor) *snapshot {
	if l.now.Before(l.snapshots.until) {
		return nil
	}
	data, err := snapshotOf(s.state)
	if err != nil {
		l.log.Error("snapshot not taken", "session", s.sid, "error", err)
		return nil
	}
	s.snapped = s.state.Count
	return &snapshot{outside: l.outside, actor: s, seq: s.state.Seq, count: s.state.Count, data: data}
}

// captureAll takes and queues snapshots of sessions whose states are stored.
func (l *Lane) captureAll(list []*actor) {
	for _, s := range list {
		if p := l.capture(s); p != nil {
			l.put(p)
		}
	}
}

// put queues snapshots of stored states.
func (l *Lane) put(list ...*snapshot) {
	k := &l.snapshots
	for _, p := range list {
		if at := slices.IndexFunc(k.waiting, func(old *snapshot) bool { return old.actor.sid == p.actor.sid }); at >= 0 {
			k.waiting[at] = p
		} else {
			k.waiting = append(k.waiting, p)
		}
	}
}

// putSnapshots begins to store queued snapshots, up to puttingMax at once.
func (l *Lane) putSnapshots() {
	k := &l.snapshots
	k.waiting = slices.DeleteFunc(k.waiting, func(p *snapshot) bool {
		begins := !k.under[p.actor.sid] && len(k.under) < puttingMax
		if begins {
			k.under[p.actor.sid] = true
			l.ready.Snapshots = append(l.ready.Snapshots, p)
		}
		return begins
	})
}

// IsSnapshotting reports whether snapshots are queued or being stored.
func (l *Lane) IsSnapshotting() bool { return len(l.snapshots.waiting)+len(l.snapshots.under) > 0 }

func (p *snapshot) String() string { return "puts the snapshot of " + p.actor.sid }

func (p *snapshot) Do(ctx context.Context, report func(Input)) {
	ctx, cancel := context.WithTimeout(ctx, snapshotWithin)
	defer cancel()
	p.err = p.host.world.PutSnapshot(ctx, p.actor.sid, p.seq, p.data)
	report(p)
}

// step applies the result of storing a snapshot. A missing snapshot costs time at
// the next load. After a failure the queued ones are dropped.
func (p *snapshot) step(l *Lane) {
	k := &l.snapshots
	delete(k.under, p.actor.sid)
	l.host.meters.ended(l.host.meters.snapshots, p.err == nil, "stored", "failed")
	if p.err == nil {
		return
	}
	l.log.Warn("snapshot not stored", "session", p.actor.sid, "error", p.err)
	for _, lost := range append(k.waiting, p) {
		if lost.actor.snapped == lost.count {
			lost.actor.snapped = 0
		}
	}
	k.waiting, k.until = nil, l.now.Add(snapshotPause)
}

// snapshotAll queues snapshots of the sessions that the next owner will load first.
func (l *Lane) snapshotAll() {
	var list []*actor
	for _, sid := range slices.Sorted(maps.Keys(l.sessions)) {
		if s := l.sessions[sid]; len(list) < lastSnapshotsMax && s.settled() && s.isWorthSnapshot() {
			list = append(list, s)
		}
	}
	l.captureAll(list)
}
