package journal

import (
	"cmp"
	"slices"
	"time"

	"github.com/refold/refold/internal/natsio"
)

// pending is a single message or a batch that was sent and is not acknowledged yet.
type pending struct {
	number uint64   // last token of its reply subject
	reply  string   // subject of its acknowledgement
	last   uint64   // the last sequence acknowledged on that subject
	writes []*write // one: a single message
	turn   uint64   // ascends with the time of sending
	sent   time.Time
	err    error // why it could not be sent
}

// pendings has every pending publish. Reply subjects are reused: routing a reply on a new
// subject costs the server as much as the reply. A subject is reused after a single
// message that was stored. If the server acknowledges that message twice, receive ignores
// the second acknowledgement, since its sequence is not after the last one of the subject.
// After an error or a batch the subject is not used again, and answers to its number are
// dropped.
type pendings struct {
	open  map[uint64]*pending // by number
	idle  []*pending          // with reusable reply subjects
	turns uint64
}

// add makes writes pending.
func (a *pendings) add(inbox string, writes ...*write) *pending {
	a.turns++
	p := &pending{number: a.turns}
	if last := len(a.idle) - 1; last >= 0 && len(writes) == 1 {
		p = a.idle[last]
		a.idle = a.idle[:last]
	} else {
		p.reply = natsio.ReplySubject(inbox, p.number)
	}
	p.writes, p.turn, p.sent, p.err = append(p.writes, writes...), a.turns, time.Now(), nil
	a.open[p.number] = p
	return p
}

// reuse keeps the reply subject of a single message that was stored at seq.
func (a *pendings) reuse(p *pending, seq uint64) {
	clear(p.writes)
	p.writes, p.last = p.writes[:0], seq
	a.idle = append(a.idle, p)
}

// sentBy returns the publishes sent at t or before, oldest first.
func (a *pendings) sentBy(t time.Time) (all []*pending) {
	for _, p := range a.open {
		if !p.sent.After(t) {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *pending) int { return cmp.Compare(a.turn, b.turn) })
	return all
}
