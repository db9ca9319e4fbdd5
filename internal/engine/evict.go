package engine

import (
	"cmp"
	"slices"

	"github.com/refold/refold/codec"
)

// memoryDefault is how many bytes the sessions in memory of a host take at most.
const memoryDefault = 256 << 20

// actorWeight is what an actor takes beside its state: itself, its place in the
// lane's map, its lists of names and numbers.
const actorWeight = 384

// evictTo is down to how many quarters of what a lane may keep it is emptied when it
// keeps more than all of it: so it is looked through once for many loads.
const evictTo = 3

// captureMax is how many snapshots may wait to be put before sessions that have
// no need of one leave without.
const captureMax = 1024

// weigh estimates again what a session takes, after it was folded.
func (l *Lane) weigh(s *actor) {
	l.bytes -= s.bytes
	s.bytes = actorWeight + len(s.sid)
	if s.state != nil {
		s.bytes += s.state.Weight()
	}
	l.bytes += s.bytes
	l.weighRegistries(s)
}

// recount adds up what the sessions in memory take: what has left since is
// counted until then.
func (l *Lane) recount() {
	l.bytes = 0
	before := l.weights
	l.weights = map[codec.Hash]heldWeight{}
	for _, s := range l.sessions {
		l.bytes += s.bytes
		for _, r := range s.registries {
			l.hold(r)
		}
	}
	for hash := range before {
		l.host.registries.letGo(hash)
	}
}

// bytesMax is how many bytes the lane's sessions may take: the lanes that the
// host runs now have equal parts, so that none waits for another.
func (l *Lane) bytesMax() int {
	return int(l.host.opts.Memory) / max(1, l.host.assignment.lanes())
}

// isOver reports whether the lane keeps more than so many quarters of what it
// may.
func (l *Lane) isOver(quarters int) bool {
	most := l.host.opts.SessionsMax
	return l.bytes > l.bytesMax()/4*quarters || most > 0 && len(l.sessions) > max(1, most*quarters/4)
}

// cacheSession takes a session into memory that was loaded for an event.
func (l *Lane) cacheSession(s *actor) {
	l.clock++
	s.used = l.clock
	l.sessions[s.sid] = s
	l.weigh(s)
	l.evict(s)
	if s.loaded != nil {
		l.sample(s.loaded)
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
	l.recount()
	if !l.isOver(4) {
		return
	}
	var behind []*actor
	for _, s := range l.evictable(keep) {
		if !l.isOver(evictTo) {
			break
		}
		delete(l.sessions, s.sid)
		l.bytes -= s.bytes
		for _, r := range s.registries {
			l.letGoOf(r)
		}
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
		if _, busy := l.parked[s.sid]; !busy && s != keep && s.stop == nil && s.snapshotsPending == 0 && s.settled() {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *actor) int { return cmp.Or(cmp.Compare(a.used, b.used), cmp.Compare(a.sid, b.sid)) })
	return list
}

// isWorthSnapshot reports whether so many events were folded since the session's
// snapshot that reading them again costs more than storing one.
func (s *actor) isWorthSnapshot() bool { return s.state.Count-s.snapped >= lastSnapshotEvents }
