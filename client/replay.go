package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
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
// stored, and its snapshot. It writes nothing. each, if not nil, is called
// with every event, the notices that the fold returned for it (EventRejected if
// the event had no effect) and the state after it, which each must not keep.
// Events that arrive meanwhile make no difference.
func (c *Client) Replay(ctx context.Context, sid string, to uint64, each func(session.Event, []session.Notice, *session.State)) (*Replayed, error) {
	// What is stored is read before the log: the events that it comes from are
	// in the log then.
	kept, err := c.stored(ctx, sid)
	if err != nil {
		return nil, err
	}
	last, err := c.bus.LastSeq(ctx)
	if err != nil {
		return nil, err
	}
	partial := to != 0 && to < last
	if !partial {
		to = last
	}
	var f *folding
	if to > 0 {
		for e, err := range c.bus.ReadSession(ctx, sid, 1, to, true) {
			if err != nil {
				return nil, fmt.Errorf("read session %s: %w", sid, err)
			}
			if f == nil {
				install, err := c.installs.Pinned(ctx, e.Seq)
				if err != nil {
					return nil, fmt.Errorf("session %s: %w", sid, err)
				}
				f = newFolding(install, sid, kept.standing)
				f.gone = map[string]asked{}
				f.state.SetQuiet(each == nil)
			}
			if said := f.fold(e); each != nil {
				each(e, said, f.state)
			}
		}
	}
	switch {
	case f == nil && partial:
		return nil, fmt.Errorf("%w up to %d", ErrNoSession, to)
	case f == nil:
		return nil, ErrNoSession
	}
	return c.compare(ctx, f, kept, partial)
}

// stored is what is kept of a session besides its events.
type stored struct {
	standing
	found    bool             // there is a snapshot
	snapshot session.Snapshot // if it could be read
	fault    error            // why it could not be
	stopped  string           // why the session is quarantined; empty: it is not
}

func (c *Client) stored(ctx context.Context, sid string) (s stored, err error) {
	data, found, err := c.bus.GetSnapshot(ctx, sid)
	if err != nil {
		return s, err
	}
	if s.found = found; found {
		if s.snapshot, s.fault = session.ParseSnapshot(data); s.fault == nil {
			s.seq, s.hash = s.snapshot.Seq, s.snapshot.Hash
		}
	}
	why, stopped, err := c.bus.GetQuarantine(ctx, sid)
	if err != nil {
		return s, err
	}
	if stopped {
		s.stopped = string(why)
	}
	s.effects, err = c.effects(ctx, sid)
	return s, err
}

// effects returns the hashes of the session's effects that are stored now.
func (c *Client) effects(ctx context.Context, sid string) (map[string]codec.Hash, error) {
	all, err := c.bus.ListEffects(ctx, sid)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]codec.Hash, len(all))
	for _, e := range all {
		byName[e.Name.Effect] = codec.Sum(e.Payload)
	}
	return byName, nil
}

// compare closes the account. Of a partial fold what was stored later is not
// missed.
func (c *Client) compare(ctx context.Context, f *folding, s stored, partial bool) (*Replayed, error) {
	if len(f.gone) > 0 {
		// Those of the newest events may have been stored since.
		now, err := c.effects(ctx, f.result.Session)
		if err != nil {
			return nil, err
		}
		f.compareGone(now)
	}
	r := f.close()
	if partial {
		return r, nil
	}
	f.reportUnaskedEffects()
	f.missed(s)
	if s.stopped != "" {
		f.differ(Difference{Text: "the session is quarantined: " + s.stopped})
	}
	return r, nil
}

// missed says what is wrong with the snapshot.
func (f *folding) missed(s stored) {
	switch {
	case s.fault != nil:
		f.differ(Difference{Text: s.fault.Error()})
	case s.found && f.result.SnapshotAt == 0:
		f.differ(Difference{
			Seq: s.seq, Expected: s.snapshot.Leaf.String(),
			Text: fmt.Sprintf("snapshot at %d: the session has no event there; expected one with the leaf %s, found none", s.seq, s.snapshot.Leaf),
		})
	case f.otherAt != nil:
		f.differ(snapshotDifference(s.snapshot, f.otherAt))
	}
}

// snapshotDifference says what is wrong where a snapshot and the fold of the
// events up to it differ: events are missing, or are others, or they are the
// same and this build folds them to something else.
func snapshotDifference(snap session.Snapshot, found *head) Difference {
	d := Difference{
		Seq: snap.Seq, Expected: snap.Hash.String(), Found: found.hash.String(),
		Text: fmt.Sprintf("snapshot at %d: its state is %s, the fold's is %s", snap.Seq, snap.Hash, found.hash),
	}
	var was session.Record
	if err := codec.Unmarshal(snap.State, &was); err != nil {
		return d
	}
	switch {
	case was.Count != found.count:
		d.Expected, d.Found = fmt.Sprintf("%d events", was.Count), fmt.Sprintf("%d events", found.count)
		d.Text += fmt.Sprintf("; expected %d events up to there, found %d", was.Count, found.count)
	case was.Chain != found.chain:
		d.Expected, d.Found = was.Chain.String(), found.chain.String()
		d.Text += fmt.Sprintf("; expected the chain %s of %d events, found %s: one is not what it was", was.Chain, was.Count, found.chain)
	default:
		d.Text += fmt.Sprintf("; the %d events are the same: another build folded them", was.Count)
	}
	return d
}

// Folder returns a function that folds a session's events one after the other,
// from the first one on, and returns the notices for each (EventRejected if it
// had no effect) and the state after it. The state is the function's: read it
// until the next call.
func (c *Client) Folder(sid string) func(context.Context, session.Event) ([]session.Notice, *session.State, error) {
	var state *session.State
	return func(ctx context.Context, e session.Event) ([]session.Notice, *session.State, error) {
		if state == nil {
			install, err := c.installs.Pinned(ctx, e.Seq)
			if err != nil {
				return nil, nil, err
			}
			state = session.New(install, sid)
		}
		said, _ := state.Evolve(e) // a rejection is among the notices
		return said, state, nil
	}
}
