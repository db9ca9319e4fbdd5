package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/refold/refold/actors/session/timeline"
)

// ErrNoRun says that a session has no run of a number.
var ErrNoRun = errors.New("the session has no such run")

// Spans returns the spans of a session's runs that have ended, in the order in
// which they ended: of one run, or of all if run is 0. They follow from the
// log, so they are the spans that a live session-actor exports. open lists the
// runs that are still active. Of these, the spans hold what has ended.
func (c *Client) Spans(ctx context.Context, sid string, run uint32) (spans []*timeline.Span, open []uint32, err error) {
	last, err := c.bus.LastSeq(ctx)
	if err != nil {
		return nil, nil, err
	}
	var wanted func(uint32) bool
	if run != 0 {
		wanted = func(number uint32) bool { return number == run }
	}
	tracker, fold, runs, events := timeline.NewTracker(0, wanted), c.Folder(sid), uint32(0), 0
	for e, err := range c.bus.ReadSession(ctx, sid, 1, max(last, 1), true) {
		if err != nil {
			return nil, nil, fmt.Errorf("read session %s: %w", sid, err)
		}
		said, state, err := fold(ctx, e)
		if err != nil {
			return nil, nil, fmt.Errorf("session %s: %w", sid, err)
		}
		spans = append(spans, tracker.Follow(state, said, state.Progress(), "")...)
		runs, events = state.Runs, events+1
	}
	switch {
	case events == 0:
		return nil, nil, ErrNoSession
	case run > runs:
		return nil, nil, fmt.Errorf("%w: %d (it has %d)", ErrNoRun, run, runs)
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
