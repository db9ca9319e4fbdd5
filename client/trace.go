package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/timeline"
)

// ErrNoRun says that a session has no run with a number.
var ErrNoRun = errors.New("the session has no such run")

// Spans returns the ended spans of one run, or of all if run is 0, in the order
// in which they ended. They follow from the log, so they are the spans that a
// live session-actor exports. open lists the runs that are still active.
func (c *Client) Spans(ctx context.Context, sid string, run uint32) (spans []*timeline.Span, open []uint32, err error) {
	var wanted func(*session.State, uint32) bool
	if run != 0 {
		wanted = func(_ *session.State, number uint32) bool { return number == run }
	}
	tracker := timeline.NewTracker(0, wanted)
	state, err := c.refold(ctx, sid, nil, 0, func(t *foldedEvent) bool {
		spans = append(spans, tracker.Follow(t.after, t.notices, t.after.Progress(), "")...)
		return true
	})
	switch {
	case err != nil:
		return nil, nil, err
	case state == nil:
		return nil, nil, ErrNoSession
	case run > state.Runs:
		return nil, nil, fmt.Errorf("%w: %d (it has %d)", ErrNoRun, run, state.Runs)
	}
	for _, s := range spans {
		if s.Kind == timeline.KindRun {
			if s.Caller, err = c.bus.TraceParentAt(ctx, s.RunSeq); err != nil {
				return nil, nil, err
			}
		}
	}
	return spans, tracker.Runs(), nil
}
