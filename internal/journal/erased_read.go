package journal

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/refold/refold/actors/session"
)

// sinceErasure yields the events of a read of a session from a sequence on, without those
// that the eraser deletes, which may be there in part: of an erased session the tombstone
// is the first event. If the deletion began after some of them were yielded, the read ends
// with ErrErased. It asks the ledger once if there are two events, so that the load of a
// new session costs nothing.
func (j *Journal) sinceErasure(ctx context.Context, sid string, from, to uint64, events iter.Seq2[session.Event, error]) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		r := sinceErasure{journal: j, sid: sid, yield: yield, known: from > 1}
		for e, err := range events {
			if err != nil {
				yield(session.Event{}, err)
				return
			}
			if e.Seq == to && !r.given && r.held == nil {
				r.known = true // the event that the caller has: there is none before it
			}
			if !r.next(ctx, e) {
				return
			}
		}
		if r.held != nil && (isTombstone(*r.held) || r.look(ctx) && r.held.Seq >= r.begin) {
			yield(*r.held, nil)
		}
	}
}

type sinceErasure struct {
	journal *Journal
	sid     string
	yield   func(session.Event, error) bool
	held    *session.Event // the first one, until known
	known   bool           // where the session begins
	begin   uint64         // the first sequence that is not deleted
	given   bool           // an event was yielded
}

// next takes an event; false ends the read.
func (r *sinceErasure) next(ctx context.Context, e session.Event) bool {
	switch {
	case !r.known && r.held == nil:
		r.held = &e
		return true
	case !r.known:
		if !r.look(ctx) {
			return false
		}
		first := *r.held
		r.held, r.known = nil, true
		if first.Seq >= r.begin && !r.give(first) {
			return false
		}
	case r.given && isTombstone(e):
		if !r.look(ctx) {
			return false
		}
		if r.begin >= e.Seq {
			r.yield(session.Event{}, fmt.Errorf("session %s: %w", r.sid, ErrErased))
			return false
		}
	}
	return e.Seq < r.begin || r.give(e)
}

func (r *sinceErasure) give(e session.Event) bool {
	r.given = true
	return r.yield(e, nil)
}

// look asks the ledger where the session begins; false means that an error was yielded.
func (r *sinceErasure) look(ctx context.Context) bool {
	last, _, err := r.journal.LastErasureOf(ctx, r.sid)
	if err != nil {
		r.yield(session.Event{}, err)
		return false
	}
	r.begin = last.Tombstone
	return true
}

// isTombstone reports whether an event is a session's tombstone, accepted or not.
func isTombstone(e session.Event) bool {
	if e.Door != session.DoorWake {
		return false
	}
	env, bad := session.ReadEnvelope(e.Payload)
	return bad == nil && env.Type == session.TypeSessionTombstone
}

// unexplained returns the parts of holes that the ledger does not explain. Both are sorted.
func unexplained(holes, explained []Hole) (left []Hole) {
	slices.SortFunc(explained, func(a, b Hole) int { return cmp.Compare(a.First, b.First) })
	for _, h := range holes {
		at, _ := slices.BinarySearchFunc(explained, h.First, func(e Hole, seq uint64) int { return cmp.Compare(e.Last, seq) })
		for ; at < len(explained) && explained[at].First <= h.Last && h.First <= h.Last; at++ {
			if e := explained[at]; e.First > h.First {
				left = append(left, Hole{h.First, e.First - 1})
			}
			h.First = max(h.First, explained[at].Last+1)
		}
		if h.First <= h.Last {
			left = append(left, h)
		}
	}
	return left
}
