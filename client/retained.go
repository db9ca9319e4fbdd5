package client

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/journal"
)

// StateNow returns the state after the session's latest event. It folds the log itself, as
// ViewNow does. The caller owns the state.
func (c *Client) StateNow(ctx context.Context, sid string) (*session.State, error) {
	state, err := c.latest(ctx, sid)
	if err != nil {
		return nil, fmt.Errorf("state of session %s: %w", sid, err)
	}
	return state, nil
}

// StoredSession is a session that the log has text of.
type StoredSession struct {
	Session string
	At      int64 // Unix ms, of its last notice, or of its last event if no notice is kept
	Erased  bool  // as its last notice says
}

// Stored yields the sessions that the log has events of, by partition of the log and name.
// Deleted sessions, of which the tombstone alone is left, are left out. It reads the last
// notice of each session, or else its last event. It uses no more memory than for the names
// of one partition.
func (c *Client) Stored(ctx context.Context) iter.Seq2[StoredSession, error] {
	return func(yield func(StoredSession, error) bool) {
		for partition := range journal.Partitions {
			all, err := c.bus.SessionsIn(ctx, partition)
			if err != nil {
				yield(StoredSession{}, err)
				return
			}
			maps.DeleteFunc(all, func(_ string, of journal.InLog) bool { return of.IsDeleted() })
			for chunk := range slices.Chunk(slices.Sorted(maps.Keys(all)), journal.LastNoticesMax) {
				if !c.storedOf(ctx, chunk, yield) {
					return
				}
			}
		}
	}
}

// storedOf yields some sessions; false ends the reading.
func (c *Client) storedOf(ctx context.Context, sids []string, yield func(StoredSession, error) bool) bool {
	noticed := map[string]IndexRow{}
	for n, err := range c.bus.LastNotices(ctx, sids, 0) {
		if err != nil {
			yield(StoredSession{}, err)
			return false
		}
		noticed[n.Session] = rowOf(&n)
	}
	for _, sid := range sids {
		s := StoredSession{Session: sid}
		if row, ok := noticed[sid]; ok {
			s.At, s.Erased = row.At, row.Erased
		} else {
			e, found, err := c.bus.LastEventOf(ctx, sid)
			if err != nil {
				yield(StoredSession{}, err)
				return false
			}
			if !found {
				continue
			}
			s.At = e.Time
		}
		if !yield(s, nil) {
			return false
		}
	}
	return true
}

// DeletedPlainly reports whether the ledger has a deletion of the session, and the last one
// was plain.
func (c *Client) DeletedPlainly(ctx context.Context, sid string) (bool, error) {
	last, seq, err := c.bus.LastErasureOf(ctx, sid)
	return seq > 0 && last.Plain, err
}
