package audit

import (
	"context"
	"fmt"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// Result is the outcome of auditing one session.
type Result struct {
	Session  string
	Events   uint64 // folded
	Rejected int    // of these
	Seq      uint64 // of the last event
	Whole    bool   // it was folded up to the log's newest event
	Hash     codec.Hash
	Chain    codec.Hash

	EffectsSame uint64 // effects that are stored as the fold opens them
	EffectsGone uint64 // effects that are not stored
	SnapshotAt  uint64 // sequence of the snapshot that was compared; 0: none

	Differences []Difference // sorted by kind
	Panicked    bool         // the fold panicked: later events were not compared

	State *session.State // after the fold; nil: the log has no event
}

// Kind is the kind of a Difference.
type Kind int

// The kinds of differences, in ascending order of how much they tell.
const (
	OfFold Kind = iota // the fold panicked: a fault of this program
	OfEffect
	OfNotice // the session's last notice
	OfState  // a snapshot, or a state in memory
)

// Difference is one mismatch between the log and what was stored.
type Difference struct {
	Kind     Kind
	Excused  bool   // see Laws
	Seq      uint64 // of the event at which it shows; 0: none
	Text     string // one line for people, with all details
	Expected string // what was stored, as a hash or a count
	Found    string // what the log folds to now
}

// Damage returns the most telling difference that is not excused, or nil.
func (r *Result) Damage() *Difference {
	for i := len(r.Differences) - 1; i >= 0; i-- {
		if d := &r.Differences[i]; !d.Excused && d.Kind != OfFold {
			return d
		}
	}
	return nil
}

// Session folds the events of a session up to the sequence `to` (0: the newest),
// and compares them with `with`, which must have been read before. If `to` is not
// the log's newest event, stored outputs of later events are not reported as
// missing. If each is not nil, it is called after every event with the event, its
// notices and the state, which it must not keep.
func Session(ctx context.Context, from Log, pinned Pinned, sid string, to uint64, with *Stored, each func(session.Event, []session.Notice, *session.State)) (*Result, error) {
	last, err := from.LastSeq(ctx)
	if err != nil {
		return nil, err
	}
	whole := to == 0 || to >= last
	if whole {
		to = last
	}
	f := newFold(sid, with)
	if to > 0 {
		for e, err := range from.ReadSession(ctx, sid, 1, to, true) {
			if err != nil {
				return nil, fmt.Errorf("read session %s: %w", sid, err)
			}
			if f.state == nil {
				install, err := pinned(ctx, e.Seq)
				if err != nil {
					return nil, fmt.Errorf("session %s: %w", sid, err)
				}
				f.begin(install)
				f.state.SetQuiet(each == nil)
			}
			notices, err := f.next(e)
			if err != nil {
				return nil, err
			}
			if each != nil {
				each(e, notices, f.state)
			}
		}
	}
	if f.state != nil {
		f.close()
		f.takeHashes()
	}
	r := &f.result
	if r.Whole = whole; whole && !r.Panicked {
		f.unopened()
		err = f.unmet(ctx, from, last)
	}
	slices.SortStableFunc(r.Differences, func(a, b Difference) int { return int(a.Kind - b.Kind) })
	return r, err
}
