package audit

import (
	"context"
	"fmt"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// Result is what an audit of one session came to.
type Result struct {
	Session  string
	Events   uint64 // folded
	Rejected int    // of them
	Seq      uint64 // of the last one
	Whole    bool   // it was folded up to the log's newest event
	Hash     codec.Hash
	Chain    codec.Hash

	EffectsSame uint64 // effects whose stored bytes are those that the fold asks for
	EffectsGone uint64 // effects that are not stored
	SnapshotAt  uint64 // sequence of the snapshot that was compared; 0: none

	Differences []Difference // by their kinds
	Panicked    bool         // the fold panicked: later events were not compared

	State *session.State // as folded; nil: the log has no event
}

// Kind is what a Difference is of.
type Kind int

// The kinds of differences, the one that says most last.
const (
	OfFold Kind = iota // the fold panicked: a fault of this program
	OfEffect
	OfNotice // the last one
	OfState  // a snapshot, or a state in memory
)

// Difference is one thing that is not as it was stored.
type Difference struct {
	Kind     Kind
	Excused  bool   // see Laws
	Seq      uint64 // of the event at which it shows; 0: of none
	Text     string // one line for people, with all that is known
	Expected string // what was stored, as a hash or a count
	Found    string // what the log folds to now
}

// Damage returns the difference that says most of how the log is not what it was, nil
// if none does.
func (r *Result) Damage() *Difference {
	for i := len(r.Differences) - 1; i >= 0; i-- {
		if d := &r.Differences[i]; !d.Excused && d.Kind != OfFold {
			return d
		}
	}
	return nil
}

// Session folds the events of a session up to the sequence `to` (0: the newest), and
// compares with what was stored, which was read before. Up to an earlier event than
// the log's newest one, what was stored later is not missed. each, if not nil, is
// called with every event, the notices that the fold returned for it and the state
// after it, which each must not keep.
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
			if said := f.next(e); each != nil {
				each(e, said, f.state)
			}
		}
	}
	if f.state != nil {
		f.close()
		f.takeHashes()
	}
	r := &f.result
	if r.Whole = whole; whole && !r.Panicked {
		f.unasked()
		err = f.unmet(ctx, from, last)
	}
	slices.SortStableFunc(r.Differences, func(a, b Difference) int { return int(a.Kind - b.Kind) })
	return r, err
}
