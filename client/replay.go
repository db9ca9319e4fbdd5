package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/audit"
)

// Replayed is what folding a session's events again came to, and how it
// compares with what was stored when they were folded first.
type Replayed struct {
	Session  string     `json:"session"`
	Events   uint64     `json:"events"`   // folded
	Rejected int        `json:"rejected"` // of them
	Seq      uint64     `json:"seq"`      // of the last one
	Hash     codec.Hash `json:"hash"`     // BLAKE2b-256 of the state
	Chain    codec.Hash `json:"chain"`

	EffectsSame uint64   `json:"effects_same"`          // effects whose stored bytes are those that the fold asks for
	EffectsGone uint64   `json:"effects_gone"`          // effects that are not stored: they are kept for about an hour, and a new one may come yet
	SnapshotAt  uint64   `json:"snapshot_at,omitempty"` // sequence of the snapshot that was compared; 0: none
	Differences []string `json:"differences,omitempty"` // what is not as it was stored, for people; none: identical

	State *session.State `json:"-"` // as folded; nil if the log has no event

	details []Difference
}

// Details returns what differs, in the order of Differences.
func (r *Replayed) Details() []Difference { return r.details }

// Identical reports whether nothing differs.
func (r *Replayed) Identical() bool { return len(r.Differences) == 0 }

// Difference is one thing that is not as it was stored.
type Difference struct {
	Seq      uint64 `json:"seq,omitempty"`      // of the event at which it shows; 0: of none
	Text     string `json:"text"`               // one line for people, with all that is known
	Expected string `json:"expected,omitempty"` // what was stored, as a hash or a count
	Found    string `json:"found,omitempty"`    // what the log folds to now
}

// ErrNoSession says that the log holds no event of a session.
var ErrNoSession = errors.New("the log holds no event of this session")

// Replay folds a session's events from the first on, up to the sequence `to`
// (0: the newest), and compares with its effects, as far as they are still
// stored, its snapshot and its last notice. It writes nothing. each, if not nil,
// is called with every event, the notices that the fold returned for it
// (EventRejected if the event had no effect) and the state after it, which each
// must not keep. Events that arrive meanwhile make no difference.
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

// replay is Replay, but for a session of which the log has no event: its State is nil.
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
	if stopped && a.Whole && r.State != nil {
		r.differ(Difference{Text: "the session is quarantined: " + string(why)})
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

// Folder returns a function that folds a session's events one after the other,
// from the first one on, and returns the notices for each (EventRejected if it
// had no effect) and the state after it. The state is the function's: read it
// until the next call.
func (c *Client) Folder(sid string) func(context.Context, session.Event) ([]session.Notice, *session.State, error) {
	var state *session.State
	return func(ctx context.Context, e session.Event) ([]session.Notice, *session.State, error) {
		if state == nil {
			var err error
			if state, err = c.begin(ctx, e); err != nil {
				return nil, nil, err
			}
		}
		said, _ := state.Evolve(e) // a rejection is among the notices
		return said, state, nil
	}
}
