package engine

import (
	"cmp"
	"slices"

	"github.com/refold/refold/planner"
)

// memoryDefault is how many bytes the sessions in memory of a host take at most.
const memoryDefault = 256 << 20

// actorWeight is what an actor takes besides its state: itself, its place in the
// lane's map, its lists of names and numbers.
const actorWeight = 384

// evictTo is down to how many quarters of what a lane may keep it is emptied when it
// keeps more than all of it: so it is looked through once for many loads.
const evictTo = 3

// captureMax is how many snapshots may wait to be put before sessions that have
// no need of one leave without.
const captureMax = 1024

// keep takes a session into memory, in the place of what was there of it.
func (l *Lane) keep(s *actor) {
	l.leave(s.sid)
	l.sessions[s.sid] = s
	l.weigh(s)
}

// leave takes a session out of memory.
func (l *Lane) leave(sid string) {
	if s := l.sessions[sid]; s != nil {
		delete(l.sessions, sid)
		l.bytes -= s.bytes
		l.host.registries.letGo(s.registries...)
	}
}

// weigh estimates again what a session in memory takes, after it was folded.
// Registries that it set are counted by the host, each once. The install record's
// are not counted, since they stay.
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
		l.host.registries.hold(now...)
		l.host.registries.letGo(s.registries...)
		s.registries = slices.Clone(now)
	}
}

// memory returns how many bytes the lane's sessions take, and how many they may
// take. The lanes that the host runs now have equal parts, so that none waits for
// another, and share the registries that sessions set.
func (l *Lane) memory() (bytes, bytesMax int) {
	running, _, _ := l.host.assignment.now()
	lanes := max(1, len(running))
	return l.bytes + int(l.host.registries.used.Load())/lanes, int(l.host.opts.Memory) / lanes
}

// isOver reports whether the lane keeps more than so many quarters of what it
// may.
func (l *Lane) isOver(quarters int) bool {
	bytes, bytesMax := l.memory()
	most := l.host.opts.SessionsMax
	return bytes > bytesMax/4*quarters || most > 0 && len(l.sessions) > max(1, most*quarters/4)
}

// cacheSession takes a session into memory that was loaded for an event.
func (l *Lane) cacheSession(s *actor) {
	l.clock++
	s.used = l.clock
	l.keep(s)
	l.evict(s)
	if s.loaded != nil {
		l.verify(s.sid, s.loaded)
		s.loaded = nil
	}
}

// evict forgets the sessions that were used least lately, once all together take
// too much, whatever they wait for; but for keep. Nothing is lost: they are in
// the log, and their wakes are schedules. Those with many events since their
// snapshot are snapshotted, so that they wake fast.
// What is quarantined stays, to be seen when it is released.
func (l *Lane) evict(keep *actor) {
	if !l.isOver(4) {
		return
	}
	var behind []*actor
	for _, s := range l.evictable(keep) {
		if !l.isOver(evictTo) {
			break
		}
		l.leave(s.sid)
		if s.proven && s.isWorthSnapshot() && len(behind) < captureMax {
			behind = append(behind, s)
		}
	}
	l.captures(behind)
}

// evictable returns the sessions that may leave memory, the least lately used
// first: those that wait for nothing to be stored or read.
func (l *Lane) evictable(keep *actor) (list []*actor) {
	for _, s := range l.sessions {
		if _, busy := l.parked[s.sid]; !busy && s != keep && s.stop == nil && s.settled() {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *actor) int { return cmp.Or(cmp.Compare(a.used, b.used), cmp.Compare(a.sid, b.sid)) })
	return list
}

// isWorthSnapshot reports whether so many events were folded since the session's
// snapshot that reading them again costs more than storing one.
func (s *actor) isWorthSnapshot() bool { return s.state.Count-s.snapped >= lastSnapshotEvents }
