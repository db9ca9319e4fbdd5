package host

import (
	"context"
	"errors"
	"math"
	"sync"

	"github.com/refold/refold/actors/session"
)

// loadsAtOnce is how many sessions of a lane are loaded at once.
const loadsAtOnce = 32

// loading is some sessions that were loaded for events that arrived together.
// While they are loaded, their events are parked, and the lane folds on.
type loading struct {
	events []session.Event // the first one of each session
	actors []*actor        // nil: it could not be loaded; loading it in its turn tells why
}

// firsts is a world that tells the first events of many sessions at once, as
// *bus.Bus does. Without it each session is looked at by itself.
type firsts interface {
	FirstSeqs(ctx context.Context, sids []string) ([]uint64, error)
}

// logEnd returns the sequence of the log's last event, for who loads new
// sessions at once; the greatest number if that is not known, or nobody does.
func (l *laneActor) logEnd(ctx context.Context) uint64 {
	if _, tells := l.host.world.(firsts); tells {
		if seq, err := l.host.world.LastSeq(ctx); err == nil {
			return seq
		}
	}
	return math.MaxUint64
}

// loadAhead begins to load the sessions of some arrivals that are not in memory,
// and parks them: the new ones together, the others side by side. It returns how
// many arrivals it has looked at. What an epoch or an install record says is known
// in its turn: nothing behind it is loaded before.
func (l *laneActor) loadAhead(ctx context.Context, group []arrival) (looked int) {
	var first []session.Event
	for _, a := range group {
		looked++
		sid := a.event.Session
		if a.epoch || sid == "" {
			break
		}
		if _, is := l.parked[sid]; is || l.sessions[sid] != nil {
			continue
		}
		l.parked[sid] = nil
		first = append(first, a.event)
	}
	if len(first) > 0 {
		informed, end := l.informed(), l.end
		l.beside.Go(func() { l.load(ctx, first, informed, end) })
	}
	return looked
}

// load loads the sessions of some events: the new ones are there at once, of the
// others each as soon as it is.
func (l *laneActor) load(ctx context.Context, first []session.Event, informed bool, end uint64) {
	tell := func(g *loading) {
		select {
		case l.loads <- g:
		case <-ctx.Done():
		}
	}
	fresh, others := l.loadNew(ctx, first, informed, end)
	if len(fresh.events) > 0 {
		tell(fresh)
	}
	room := make(chan struct{}, loadsAtOnce)
	var loads sync.WaitGroup
	for _, e := range others {
		room <- struct{}{}
		loads.Go(func() {
			defer func() { <-room }()
			s, err := l.host.load(l.as(ctx, "loads "+e.Session), e, informed)
			if err != nil {
				s = nil
			}
			tell(&loading{events: []session.Event{e}, actors: []*actor{s}})
		})
	}
	loads.Wait()
}

// unpark takes sessions into memory that were loaded, and folds the events that
// waited for them.
func (l *laneActor) unpark(ctx context.Context, g *loading) error {
	for i, e := range g.events {
		waiting := l.parked[e.Session]
		delete(l.parked, e.Session)
		// It may have been stopped meanwhile.
		if s := l.sessions[e.Session]; g.actors[i] != nil && (s == nil || s.state == nil && !s.stops(e.Seq)) {
			l.admit(g.actors[i])
		}
		for _, o := range waiting {
			o.parked = false
			if err := l.retry(ctx, "fold", o.arrival.event, func() error { return l.fold(ctx, o) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// await folds all that is parked.
func (l *laneActor) await(ctx context.Context) error {
	for len(l.parked) > 0 {
		select {
		case g := <-l.loads:
			if err := l.unpark(ctx, g); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// loadNew loads those of some sessions whose first event is to be folded, which
// is what most are that a busy host loads, and returns the events of the others. A
// replica that has an event has all before it, so that which is the first one is
// all there is to ask. What the log took since the epoch began (behind end) nobody
// else has folded, so there is no snapshot to look for; and nobody settles what was
// not asked. Where the last ones were not new, sessions are looked at one by one
// (start).
func (l *laneActor) loadNew(ctx context.Context, events []session.Event, informed bool, end uint64) (fresh *loading, others []session.Event) {
	h, fresh := l.host, &loading{}
	world, tells := h.world.(firsts)
	if !tells || !informed || h.olds.Load() {
		return fresh, events
	}
	var asked []session.Event
	var sids []string
	for _, e := range events {
		if mayBegin(e) && e.Seq > end && !h.doubts(e.Session) {
			asked, sids = append(asked, e), append(sids, e.Session)
		} else {
			others = append(others, e)
		}
	}
	if len(asked) == 0 {
		return fresh, events
	}
	seqs, err := world.FirstSeqs(ctx, sids)
	if err != nil {
		return fresh, events // loading them one by one tells why
	}
	for i, e := range asked {
		install, err := h.pinned(ctx, e.Seq, true)
		if seqs[i] != e.Seq {
			h.olds.Store(true)
		}
		if seqs[i] != e.Seq || err != nil {
			others = append(others, e)
			continue
		}
		fresh.events = append(fresh.events, e)
		fresh.actors = append(fresh.actors, &actor{sid: e.Session, proven: true, state: session.New(install, e.Session)})
	}
	return fresh, others
}

// informed reports whether a load need not look for quarantines and install
// records: all of them are known since the epoch began, and what comes is seen.
func (l *laneActor) informed() bool { return l.listed && l.recorded }

// session returns the session of e, loaded and proven.
func (l *laneActor) session(ctx context.Context, e session.Event) (*actor, error) {
	s := l.sessions[e.Session]
	if s != nil && !s.proven && (s.state != nil || s.stops(e.Seq)) {
		if err := l.prove(ctx, s, e); err != nil {
			return nil, err
		}
		s = l.sessions[e.Session]
	}
	if s != nil && (s.state != nil || s.stops(e.Seq)) {
		return s, nil
	}
	loaded, err := l.host.load(ctx, e, l.informed() && (s == nil || s.stop == nil))
	if err != nil {
		return nil, err
	}
	l.admit(loaded)
	return loaded, nil
}

// prove makes sure of a session that is in memory since an earlier epoch, before
// e is looked at: another owner may have gone on with it, or stopped it. What
// can't be proven is forgotten.
func (l *laneActor) prove(ctx context.Context, s *actor, e session.Event) error {
	if s.state == nil {
		return l.relook(ctx, s)
	}
	err := l.host.prove(ctx, s, e)
	if err == nil {
		return nil
	}
	delete(l.sessions, s.sid)
	if errors.Is(err, errRewritten) {
		l.log.Warn("session read anew: the log lost what was folded", "session", s.sid)
		return nil
	}
	return err
}

// mayBegin reports whether an event may be a session's first one.
func mayBegin(e session.Event) bool { return e.Door == session.DoorIn || e.Door == session.DoorCtl }
