package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/audit"
	"github.com/refold/refold/internal/journal"
)

// Replayed is the result of folding a session's events again, and its comparison
// with what the first fold stored.
type Replayed struct {
	Session  string     `json:"session"`
	Events   uint64     `json:"events"`   // folded
	Rejected int        `json:"rejected"` // of them
	Seq      uint64     `json:"seq"`      // of the last one
	Hash     codec.Hash `json:"hash"`     // BLAKE2b-256 of the state
	Chain    codec.Hash `json:"chain"`

	EffectsSame uint64   `json:"effects_same"`          // effects whose stored bytes are those of the fold
	EffectsGone uint64   `json:"effects_gone"`          // effects that are not stored: they are kept for about an hour, and the latest may not be stored yet
	SnapshotAt  uint64   `json:"snapshot_at,omitempty"` // sequence of the snapshot compared; 0: none
	Differences []string `json:"differences,omitempty"` // for people; none: identical

	State *session.State `json:"-"` // as folded; nil if the log has no event

	details []Difference
}

// Details returns the differences, in the order of Differences.
func (r *Replayed) Details() []Difference { return r.details }

// Identical reports whether nothing differs.
func (r *Replayed) Identical() bool { return len(r.Differences) == 0 }

// Difference is one difference between a fold and what was stored.
type Difference struct {
	Seq      uint64 `json:"seq,omitempty"`      // of the event that shows it; 0: of none
	Text     string `json:"text"`               // one line for people, with all details
	Expected string `json:"expected,omitempty"` // the stored value, as a hash or a count
	Found    string `json:"found,omitempty"`    // the value of the fold
}

// ErrNoSession says that the log holds no event of a session.
var ErrNoSession = errors.New("the log holds no event of this session")

// Replay folds a session's events from the first one up to the sequence `to` (0:
// the newest), and compares the result with the session's effects, as far as they
// are still stored, its snapshot and its last notice. It writes nothing. each, if
// not nil, is called with every event, the notices of its fold (EventRejected if
// the event had no effect) and the state after it, which each must not keep.
// Events that arrive meanwhile make no difference.
func (c *Client) Replay(ctx context.Context, sid string, to uint64, each func(session.Event, []session.Notice, *session.State)) (*Replayed, error) {
	r, err := c.replay(ctx, sid, to, each)
	switch {
	case err != nil:
		return nil, err
	case r.State == nil && to != 0:
		return nil, fmt.Errorf("%w up to %d", ErrNoSession, to)
	case r.State == nil:
		return nil, ErrNoSession
	}
	return r, nil
}

// replay is Replay, except that the State is nil if the log has no event of the
// session.
func (c *Client) replay(ctx context.Context, sid string, to uint64, each func(session.Event, []session.Notice, *session.State)) (*Replayed, error) {
	with, err := audit.Read(ctx, c.bus, sid)
	if err != nil {
		return nil, err
	}
	why, stopped, err := c.bus.GetQuarantine(ctx, sid)
	if err != nil {
		return nil, err
	}
	a, err := audit.Session(ctx, c.bus, c.installs.Pinned, sid, to, with, each)
	if err != nil {
		return nil, err
	}
	r := replayedOf(a)
	if stopped && !journal.ParseStop(why).Released && a.Whole && r.State != nil {
		r.differ(Difference{Text: "the session is quarantined: " + string(why)})
	}
	if of, ok := c.bus.(*archived); ok && a.Whole && r.State != nil {
		of.expect(r)
	}
	return r, nil
}

func replayedOf(a *audit.Result) *Replayed {
	r := &Replayed{
		Session: a.Session, Events: a.Events, Rejected: a.Rejected, Seq: a.Seq, Hash: a.Hash, Chain: a.Chain,
		EffectsSame: a.EffectsSame, EffectsGone: a.EffectsGone, SnapshotAt: a.SnapshotAt, State: a.State,
	}
	for _, d := range a.Differences {
		r.differ(Difference{Seq: d.Seq, Text: d.Text, Expected: d.Expected, Found: d.Found})
	}
	return r
}

func (r *Replayed) differ(d Difference) {
	r.Differences, r.details = append(r.Differences, d.Text), append(r.details, d)
}

// Folder returns a function that folds a session's events one after another, from
// the first one, and returns the notices for each (EventRejected if it had no
// effect) and the state after it. The state is valid until the next call, and the
// caller must not change it.
func (c *Client) Folder(sid string) func(context.Context, session.Event) ([]session.Notice, *session.State, error) {
	var state *session.State
	return func(ctx context.Context, e session.Event) ([]session.Notice, *session.State, error) {
		t, err := c.fold(ctx, state, e)
		if err != nil {
			return nil, nil, err
		}
		state = t.after
		return t.notices, state, nil
	}
}
