package host

import (
	"context"
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

// loadAhead loads the sessions of a batch that are not in memory side by side:
// one after another, each would cost the lane its round trips. What an era or an
// install record says is known in its turn: nothing behind it is loaded.
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
	if len(first) < 2 {
		clear(l.loaded)
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
