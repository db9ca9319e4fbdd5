package host

import (
	"context"
	"math"
	"sync"

	"github.com/refold/refold/actors/session"
)

// loadsAtOnce is how many sessions of a lane are loaded at once.
const loadsAtOnce = 32

// ahead is a session that was loaded before the turn of its event.
type ahead struct {
	actor *actor // nil: it could not be; loading it in its turn tells why
	seq   uint64 // of the event that it was loaded for
}

// before returns the session as it was loaded for e, nil if it was not.
func (a ahead) before(e session.Event) *actor {
	if a.seq != e.Seq {
		return nil
	}
	return a.actor
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

// loadAhead loads the sessions of a batch that are not in memory: the new ones
// together, the others side by side. One after another, each would cost the lane
// its round trips. What an era or an install record says is known in its turn:
// nothing behind it is loaded.
func (l *laneActor) loadAhead(ctx context.Context, group []arrival) {
	var first []session.Event
	for _, a := range group {
		sid := a.event.Session
		if a.era || sid == "" {
			break
		}
		if l.sessions[sid] != nil || l.loaded[sid].seq != 0 {
			continue
		}
		l.loaded[sid] = ahead{seq: a.event.Seq}
		first = append(first, a.event)
	}
	if first = l.loadNew(ctx, first); len(first) == 0 {
		return
	}
	if len(first) == 1 {
		delete(l.loaded, first[0].Session)
		return
	}
	loaded := make([]*actor, len(first))
	room := make(chan struct{}, loadsAtOnce)
	var loading sync.WaitGroup
	for i, e := range first {
		room <- struct{}{}
		loading.Go(func() {
			defer func() { <-room }()
			if s, err := l.host.load(ctx, e, l.informed()); err == nil {
				loaded[i] = s
			}
		})
	}
	loading.Wait()
	for i, e := range first {
		l.loaded[e.Session] = ahead{actor: loaded[i], seq: e.Seq}
	}
}

// loadNew loads those of some sessions whose first event is to be folded, which
// is what most are that a busy host loads, and returns the events of the others.
// A replica that has an event has all before it, so that which is the first one
// is all there is to ask. What the log took since the era began nobody else has
// folded, so there is no snapshot to look for; and nobody settles what was not
// asked. Where the last ones were not new, sessions are looked at one by one
// (start).
func (l *laneActor) loadNew(ctx context.Context, events []session.Event) (others []session.Event) {
	h := l.host
	world, tells := h.world.(firsts)
	if !tells || !l.informed() || h.olds.Load() {
		return events
	}
	var asked []session.Event
	var sids []string
	for _, e := range events {
		if mayBegin(e) && e.Seq > l.end && !h.doubts(e.Session) {
			asked, sids = append(asked, e), append(sids, e.Session)
		} else {
			others = append(others, e)
		}
	}
	if len(asked) == 0 {
		return events
	}
	seqs, err := world.FirstSeqs(ctx, sids)
	if err != nil {
		return events // loading them one by one tells why
	}
	for i, e := range asked {
		if seqs[i] != e.Seq {
			h.olds.Store(true)
			others = append(others, e)
			continue
		}
		install, err := h.pinned(ctx, e.Seq, true)
		if err != nil {
			others = append(others, e)
			continue
		}
		l.loaded[e.Session] = ahead{actor: &actor{sid: e.Session, proven: true, state: session.New(install, e.Session)}, seq: e.Seq}
	}
	return others
}

// mayBegin reports whether an event may be a session's first one.
func mayBegin(e session.Event) bool { return e.Door == session.DoorIn || e.Door == session.DoorCtl }
