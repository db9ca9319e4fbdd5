package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/natsio"
)

// isRepeat reports whether a session refused an event because it had accepted one
// with the same id.
func isRepeat(err error) bool {
	var refused *RejectedError
	return errors.As(err, &refused) && refused.Code == session.RejectDuplicateEvent
}

// repeated returns the sequence of the event that the one at seq repeats: the session
// accepted it, and it has the same id, door and content. It is 0 if the other one has
// other content. It folds the session from its first event.
func (c *Client) repeated(ctx context.Context, sid string, seq uint64) (first uint64, err error) {
	e, err := c.bus.EventAt(ctx, seq)
	if err != nil {
		return 0, err
	}
	env, err := envelopeOf(e)
	if err != nil {
		return 0, err
	}
	_, err = c.refold(ctx, sid, nil, seq, func(t *foldedEvent) bool {
		if t.Seq < seq && t.rejected() == nil {
			if other, err := envelopeOf(t.Event); err == nil && other.ID == env.ID {
				first = 0
				if t.Door == e.Door && other.Type == env.Type && bytes.Equal(other.Data, env.Data) {
					first = t.Seq
				}
			}
		}
		return true
	})
	if err != nil {
		return 0, fmt.Errorf("the event that %d repeats: %w", seq, err)
	}
	return first, nil
}

// repeated reads the end of the run of a repeated request from the log, since its
// notice is gone. why is how the repeat was noticed: the session may have refused it.
func (f *Follower) repeated(ctx context.Context, why error) (RunEnd, error) {
	reading, cancel := context.WithTimeout(ctx, endedWithin)
	defer cancel()
	p, err := f.c.runStatus(reading, f.sid, f.seq)
	var denied *natsio.PermissionError
	var refused *RejectedError
	switch {
	case err != nil && (reading.Err() != nil || errors.As(err, &denied)) && ctx.Err() == nil:
		if errors.As(why, &refused) {
			return RunEnd{}, refused
		}
		return RunEnd{}, ErrEndedBefore
	case err != nil:
		return RunEnd{}, err
	}
	f.setRun(p.run)
	if p.ended != nil {
		return f.c.Ended(ctx, *p.ended)
	}
	return f.c.End(ctx, f.sid, f.seq, 1, nil) // another request's run, which goes on
}

// endedWithin is how long reading a run's end from the log may take: the server may
// not say that a user has no permission.
const endedWithin = time.Minute
