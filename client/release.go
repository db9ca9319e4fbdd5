package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/refold/refold/internal/journal"
)

// ErrNotQuarantined says that a session is not stopped.
var ErrNotQuarantined = errors.New("the session is not quarantined")

// ErrOtherQuarantine is returned if the session's quarantine is not the one
// that the caller had seen.
var ErrOtherQuarantine = errors.New("the session is quarantined otherwise by now: look again")

// Quarantined says why a session is stopped.
type Quarantined struct {
	Seq    uint64 `json:"seq"` // of the first event that is not done
	Reason string `json:"reason"`
}

// Quarantined returns why a session is stopped, and ErrNotQuarantined if it is
// not.
func (c *Client) Quarantined(ctx context.Context, sid string) (*Quarantined, error) {
	q, err := c.stopOf(ctx, sid)
	switch {
	case err != nil:
		return nil, err
	case q.Seq == 0:
		return nil, fmt.Errorf("session %s: %w", sid, ErrNotQuarantined)
	}
	return &q, nil
}

// stopOf returns where a session stopped, with Seq 0 if it did not.
func (c *Client) stopOf(ctx context.Context, sid string) (q Quarantined, err error) {
	body, found, err := c.bus.GetQuarantine(ctx, sid)
	if err == nil && found {
		stop := journal.ParseStop(body)
		q = Quarantined{Seq: stop.Seq, Reason: stop.Reason}
	}
	return q, err
}

// before reports whether the session stopped before the event at seq.
func (q Quarantined) before(seq uint64) bool { return q.Seq != 0 && q.Seq <= seq }

// Release ends a quarantine as it was seen: an ErrOtherQuarantine if another
// one stands by now. Within 15 s the session's session-actor loads it up to the
// event before seen.Seq and continues from there: effects from there on are
// stored. If what stopped it is still so, it is quarantined again.
func (c *Client) Release(ctx context.Context, sid string, seen *Quarantined) error {
	now, err := c.Quarantined(ctx, sid)
	switch {
	case err != nil:
		return err
	case *now != *seen:
		return fmt.Errorf("session %s: %w", sid, ErrOtherQuarantine)
	}
	return c.bus.DeleteQuarantine(ctx, sid)
}
