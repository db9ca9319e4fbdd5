package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/refold/refold/actors/session"
)

// Limits of storing snapshots: how many are put at once, how long one may take, and
// for how long none is tried after one failed. They are a cache, and must not hold a
// lane up.
const (
	puttingMax     = 32
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

// snapshots are those of a lane on their way to the bucket: of one session one
// after another, and of several that wait only the newest, so that none takes the
// place of a newer one.
type snapshots struct {
	next  map[string]*snapshot // that waits, by session
	order []string             // of those
	under map[string]*snapshot // is being put, by session
	until time.Time            // none is tried before: the last one failed
}

func newSnapshots() snapshots {
	return snapshots{next: map[string]*snapshot{}, under: map[string]*snapshot{}}
}

// snapshot is the snapshot of a session on its way to the bucket.
type snapshot struct {
	outside
	actor *actor
	seq   uint64
	count uint64 // events folded
	data  []byte
	right *wrong // whose place it takes; nil: nobody waits for it
	err   error  // it is not stored
}

// due returns the snapshot of a session's state, if one is due. The state need
// not be stored yet; the snapshot must not be put before it is.
func (l *Lane) due(s *actor) *snapshot {
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
func (l *Lane) capture(s *actor) *snapshot {
	p := l.captureOf(s)
	if p != nil && l.host.chosen() && !s.barred {
		if snap, err := session.ParseSnapshot(p.data); err == nil {
			l.sample(&sample{sid: s.sid, seq: snap.Seq, hash: snap.Hash, data: p.data})
		}
	}
	return p
}

func (l *Lane) captureOf(s *actor) *snapshot {
	data, err := snapshotOf(s.state)
	if err != nil {
		l.log.Error("snapshot not taken", "session", s.sid, "error", err)
		return nil
	}
	p := &snapshot{outside: l.outside, actor: s, seq: s.state.Seq, count: s.state.Count, data: data}
	s.snapped = s.state.Count
	s.snapshotsPending++
	return p
}

// captures takes snapshots of sessions whose states are stored, and has them
// put.
func (l *Lane) captures(list []*actor) {
	for _, s := range list {
		if p := l.capture(s); p != nil {
			l.put(p)
		}
	}
}

// put has snapshots of stored states put.
func (l *Lane) put(list ...*snapshot) {
	k := &l.snapshots
	for _, p := range list {
		sid := p.actor.sid
		if p.actor.barred {
			p.isNotStored()
			continue
		}
		if old := k.next[sid]; old == nil {
			k.order = append(k.order, sid)
		} else {
			old.actor.snapshotsPending-- // the newer one tells for both
		}
		k.next[sid] = p
	}
}

// errPutPaused says that no snapshot is put for a while after one failed.
var errPutPaused = errors.New("not tried: one failed a moment ago")

// putSnapshots begins to put what waits, as far as it may be.
func (l *Lane) putSnapshots() {
	k := &l.snapshots
	var wait []string
	for _, sid := range k.order {
		p := k.next[sid]
		switch {
		case p.right == nil && l.now.Before(k.until):
			l.host.meters.snapshot(errPutPaused)
			p.isNotStored()
		case k.under[sid] != nil || len(k.under) == puttingMax:
			wait = append(wait, sid)
			continue
		default:
			k.under[sid] = p
			l.ready.Snapshots = append(l.ready.Snapshots, p)
		}
		delete(k.next, sid)
	}
	k.order = wait
}

// IsSnapshotting reports whether snapshots wait to be put, or are being put.
func (l *Lane) IsSnapshotting() bool { return len(l.snapshots.order)+len(l.snapshots.under) > 0 }

// isNotStored takes back what was counted as stored and is not.
func (p *snapshot) isNotStored() {
	p.actor.snapshotsPending--
	if p.actor.snapped == p.count {
		p.actor.snapped = 0
	}
}

func (p *snapshot) String() string { return "puts the snapshot of " + p.actor.sid }

func (p *snapshot) Do(ctx context.Context, tell func(Input)) {
	within, cancel := context.WithTimeout(ctx, snapshotWithin)
	defer cancel()
	for range 2 {
		p.err = p.host.world.PutSnapshot(within, p.actor.sid, p.seq, p.data)
		if p.err == nil || p.right == nil {
			break
		}
	}
	if p.right != nil && p.err == nil {
		p.right.keep(ctx, p.host)
	}
	tell(p)
}

// step takes note of what became of a snapshot. It is a cache: one that is not
// stored costs time at the next load.
func (p *snapshot) step(l *Lane) {
	delete(l.snapshots.under, p.actor.sid)
	p.data = nil
	l.host.meters.snapshot(p.err)
	if p.err == nil {
		p.actor.snapshotsPending--
	} else {
		l.log.Warn("snapshot not stored", "session", p.actor.sid, "error", p.err)
		l.snapshots.until = l.now.Add(snapshotPause)
		p.isNotStored()
	}
	if p.right != nil {
		l.replaced(p.right, p.err)
	}
}

// snapshotAll puts what the next owner will ask for first.
func (l *Lane) snapshotAll() {
	var list []*actor
	for _, sid := range slices.Sorted(maps.Keys(l.sessions)) {
		s := l.sessions[sid]
		if len(list) < lastSnapshotsMax && s.settled() && s.state.Count-s.snapped >= lastSnapshotEvents {
			list = append(list, s)
		}
	}
	l.captures(list)
}
