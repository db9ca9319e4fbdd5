package engine

import (
	"cmp"
	"slices"

	"github.com/refold/refold/planner"
)

// memoryDefault is the default of Options.Memory.
const memoryDefault = 256 << 20

// actorWeight is the memory of an actor besides its state: the actor, its map
// entry, its lists.
const actorWeight = 384

// evictTo is the target of an eviction, in quarters of the lane's limit. It is
// below the limit, so that one eviction serves many loads.
const evictTo = 3

// captureMax is how many snapshots may wait to be stored. Beyond it, sessions are
// evicted without one.
const captureMax = 1024

// keep puts a session into memory, replacing the one of its name.
func (l *Lane) keep(s *actor) {
	l.leave(s.sid)
	l.sessions[s.sid] = s
	l.weigh(s)
}

// leave removes a session from memory.
func (l *Lane) leave(sid string) {
	if s := l.sessions[sid]; s != nil {
		delete(l.sessions, sid)
		l.bytes -= s.bytes
		l.host.registries.release(s.registries...)
	}
}

// weigh updates the estimate of a session's memory after it was folded. The host
// counts each registry that sessions set once. The install record's are not
// counted, since they stay.
func (l *Lane) weigh(s *actor) {
	l.bytes -= s.bytes
	s.bytes = actorWeight + len(s.sid)
	var room [4]*planner.Registry
	now := room[:0]
	if s.state != nil {
		s.bytes += s.state.Weight()
		s.state.ShareRegistries(func(r *planner.Registry) *planner.Registry {
			now = append(now, r)
			return r
		})
	}
	l.bytes += s.bytes
	if !slices.Equal(now, s.registries) {
		l.host.registries.retain(now...)
		l.host.registries.release(s.registries...)
		s.registries = slices.Clone(now)
	}
}

// memory returns how many bytes the lane's sessions take and may take. Running
// lanes have equal parts of the limit, so that none waits for another, and share
// the registries that sessions set.
func (l *Lane) memory() (bytes, bytesMax int) {
	running, _, _ := l.host.assignment.now()
	lanes := max(1, len(running))
	return l.bytes + int(l.host.registries.used.Load())/lanes, int(l.host.opts.Memory) / lanes
}

// isOver reports whether the lane uses more than the given quarters of its limits.
func (l *Lane) isOver(quarters int) bool {
	bytes, bytesMax := l.memory()
	most := l.host.opts.SessionsMax
	return bytes > bytesMax/4*quarters || most > 0 && len(l.sessions) > max(1, most*quarters/4)
}

// cacheSession puts a session into memory that was loaded for an event.
func (l *Lane) cacheSession(s *actor) {
	l.clock++
	s.used = l.clock
	l.keep(s)
	l.evict(s)
}

// evict removes the least recently used sessions from memory, except keep, once the
// lane is over its limits. Nothing is lost: their events are in the log, and their
// wakes are schedules. Sessions with many events since their snapshot are
// snapshotted, so that they load fast. Quarantined sessions stay, so that their
// release is noticed.
func (l *Lane) evict(keep *actor) {
	if !l.isOver(4) {
		return
	}
	var unsnapshotted []*actor
	for _, s := range l.evictable(keep) {
		if !l.isOver(evictTo) {
			break
		}
		l.leave(s.sid)
		if s.proven && s.isWorthSnapshot() && len(unsnapshotted) < captureMax {
			unsnapshotted = append(unsnapshotted, s)
		}
	}
	l.captureAll(unsnapshotted)
}

// evictable returns the sessions that may be evicted, least recently used first: no
// store or read of them is pending.
func (l *Lane) evictable(keep *actor) (list []*actor) {
	for _, s := range l.sessions {
		if _, busy := l.parked[s.sid]; !busy && s != keep && s.stop == nil && s.settled() {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *actor) int { return cmp.Or(cmp.Compare(a.used, b.used), cmp.Compare(a.sid, b.sid)) })
	return list
}

// isWorthSnapshot reports whether reading the events since the session's snapshot
// again would cost more than storing a new one.
func (s *actor) isWorthSnapshot() bool { return s.state.Count-s.snapped >= lastSnapshotEvents }
