package host

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/refold/refold/actors/session"
)

// Limits of answering views: how long one may take, and how many at once.
const (
	viewWithin = 5 * time.Second
	viewsMax   = 8
)

// errNoSession is what a view request about an unknown session is told.
var errNoSession = errors.New("the log holds no event of this session")

// serveViews answers refold.view.<sid> from copies of sessions: loaded,
// projected and thrown away. Every host could answer for every session; the
// one that has the session's lane does, so that one answer comes.
func (h *Host) serveViews(ctx context.Context, owns func(sid string) bool) error {
	room := make(chan struct{}, viewsMax)
	return h.bus.ServeView(ctx, func(sid string, reply func([]byte, error)) {
		if !owns(sid) {
			return
		}
		room <- struct{}{}
		go func() {
			defer func() { <-room }()
			ctx, cancel := context.WithTimeout(ctx, viewWithin)
			defer cancel()
			reply(h.view(ctx, sid))
		}()
	})
}

// view returns the JSON of a session's View as the log has it now.
func (h *Host) view(ctx context.Context, sid string) ([]byte, error) {
	state, err := h.latest(ctx, sid)
	if err != nil {
		return nil, err
	}
	if state == nil {
		return nil, errNoSession
	}
	return json.Marshal(state.View())
}

// latest returns a session as the log has it now, nil if it has no event.
func (h *Host) latest(ctx context.Context, sid string) (*session.State, error) {
	state, err := h.fromSnapshot(ctx, sid)
	if err != nil {
		return nil, err
	}
	last, err := h.world.LastSeq(ctx)
	if err != nil {
		return nil, err
	}
	// The event behind the last one never comes, so the read ends incomplete.
	state, err = h.foldTo(ctx, sid, state, last+1, true)
	if errors.Is(err, errIncomplete) {
		err = nil
	}
	return state, err
}
