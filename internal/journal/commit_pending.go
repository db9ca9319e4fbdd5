package journal

import (
	"cmp"
	"slices"
	"time"

	"github.com/refold/refold/internal/natsio"
)

// pending is a single message or a batch that was sent and has no acknowledgement
// yet.
type pending struct {
	number uint64   // its reply subject ends with it
	reply  string   // subject of its acknowledgement
	last   uint64   // the last sequence that was acknowledged on that
	writes []*write // one: a single message
	turn   uint64   // later ones are greater
	sent   time.Time
	err    error // it could not be sent
}

// pendings are all that are pending.
//
// Reply subjects are reused: routing a reply on a new subject costs the server as much
// as the reply. One is used again after a single message that was stored. Should the
// server acknowledge that message twice, the second acknowledgement tells a sequence
// that is not behind the last one of that subject, and is not believed (hear). After any
// error, and after a batch, nothing listens for the number any more.
type pendings struct {
	open  map[uint64]*pending // by number
	idle  []*pending          // whose reply subjects are used again
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

// reuse keeps the reply subject of a single message that is stored at a sequence.
func (a *pendings) reuse(p *pending, seq uint64) {
	clear(p.writes)
	p.writes, p.last = p.writes[:0], seq
	a.idle = append(a.idle, p)
}

// sentBy returns what was sent at a time or before, the first first.
func (a *pendings) sentBy(t time.Time) (all []*pending) {
	for _, p := range a.open {
		if !p.sent.After(t) {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *pending) int { return cmp.Compare(a.turn, b.turn) })
	return all
}
