package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/refold/refold/internal/journal"
)

// ErrNotQuarantined says that a session is not quarantined.
var ErrNotQuarantined = errors.New("the session is not quarantined")

// ErrOtherQuarantine is returned if the session's quarantine is not the one that
// the caller has seen.
var ErrOtherQuarantine = errors.New("the session is now quarantined for another reason: look again")

// Quarantined is a session's quarantine.
type Quarantined struct {
	Seq    uint64 `json:"seq"` // of the first event that was not folded
	Reason string `json:"reason"`
}

// Quarantined returns a session's quarantine, and ErrNotQuarantined if there is
// none.
func (c *Client) Quarantined(ctx context.Context, sid string) (*Quarantined, error) {
	q, err := c.quarantineOf(ctx, sid)
	switch {
	case err != nil:
		return nil, err
	case q.Seq == 0:
		return nil, fmt.Errorf("session %s: %w", sid, ErrNotQuarantined)
	}
	return &q, nil
}

// quarantineOf returns a session's quarantine, with Seq 0 if there is none.
func (c *Client) quarantineOf(ctx context.Context, sid string) (q Quarantined, err error) {
	body, found, err := c.bus.GetQuarantine(ctx, sid)
	if stop := journal.ParseStop(body); err == nil && found && !stop.Released {
		q = Quarantined{Seq: stop.Seq, Reason: stop.Reason}
	}
	return q, err
}

// quarantineAfter is quarantineOf. It returns a *QuarantinedError if the session stopped
// before it folded the event at seq.
func (c *Client) quarantineAfter(ctx context.Context, sid string, seq uint64) (Quarantined, error) {
	q, err := c.quarantineOf(ctx, sid)
	if err == nil && q.Seq != 0 && q.Seq <= seq {
		err = &QuarantinedError{Reason: q.Reason}
	}
	return q, err
}

// Release ends the quarantine seen. If the session now has another one, it
// returns ErrOtherQuarantine. Within 15 s the session's session-actor loads the
// session up to the event before seen.Seq, continues from there, and publishes
// effects from there on. If it dies before it is done, the next one does the same. If
// the cause remains, it quarantines the session again.
func (c *Client) Release(ctx context.Context, sid string, seen *Quarantined) error {
	now, err := c.Quarantined(ctx, sid)
	switch {
	case err != nil:
		return err
	case *now != *seen:
		return fmt.Errorf("session %s: %w", sid, ErrOtherQuarantine)
	}
	body, _, err := c.bus.GetQuarantine(ctx, sid)
	if err != nil {
		return err
	}
	stop := journal.ParseStop(body)
	stop.Released = true
	if body, err = stop.Bytes(); err != nil {
		return err
	}
	return c.bus.PutQuarantine(ctx, sid, body)
}
