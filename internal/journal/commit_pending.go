package journal

import (
	"cmp"
	"slices"
	"time"

	"github.com/refold/refold/internal/natsio"
)

// pendingPublish is a single message or a batch that was sent and has no
// acknowledgement yet.
type pendingPublish struct {
	one   *write // the single message; nil: a batch
	batch []*write
	sent  time.Time
	err   error // it could not be sent
}

// writes returns how many are in it.
func (f *pendingPublish) writes() int {
	if f.one != nil {
		return 1
	}
	return len(f.batch)
}

// all returns what is in it.
func (f *pendingPublish) all() []*write {
	if f.one != nil {
		return []*write{f.one}
	}
	return f.batch
}

// pendingPublishes are those that were sent and have no answer, each in a slot. An
// answer names the number of the slot.
//
// Reply subjects are reused: routing a reply on a new subject costs the server as much
// as the reply. A slot keeps its number while it held single messages that were
// stored. Should the server answer one of them twice, the second answer tells a
// sequence that is not behind those that are known here, and is not believed (hear).
// After any error, and after a batch, a slot gets a new number, so that a late reply
// matches nothing.
type pendingPublishes struct {
	slots     []slot
	free      []int
	numbers   uint64 // how many were given
	published uint64
}

// slot holds one pending publish at a time.
type slot struct {
	pendingPublish
	number uint64 // 0: it gets one
	reply  string // the subject of its answers; empty: it is made
	turn   uint64 // of the pending publish; later ones are greater; 0: the slot is free
	last   uint64 // the last sequence that was told under this number
}

// slotBits is how many bits of a number tell the slot: there are more slots than
// commitWritesMax.
const slotBits = 14

// add puts a pending publish into a slot.
func (a *pendingPublishes) add(f pendingPublish) *slot {
	i := len(a.slots)
	if last := len(a.free) - 1; last >= 0 {
		i = a.free[last]
		a.free = a.free[:last]
	} else {
		a.slots = append(a.slots, slot{})
	}
	p := &a.slots[i]
	if p.number == 0 || f.one == nil {
		a.numbers++
		*p = slot{number: a.numbers<<slotBits | uint64(i)}
	}
	a.published++
	p.pendingPublish, p.turn = f, a.published
	return p
}

// at returns the slot with a number, if something is pending in it, nil if there is
// none. It is good until the next one is added.
func (a *pendingPublishes) at(number uint64) *slot {
	i := number & (1<<slotBits - 1)
	if i >= uint64(len(a.slots)) || a.slots[i].number != number || a.slots[i].turn == 0 {
		return nil
	}
	return &a.slots[i]
}

// remove takes out the pending publish at a number. Its slot keeps that for
// the next one if it was a single message and is stored at a sequence, seq (0: it
// isn't).
func (a *pendingPublishes) remove(number, seq uint64) pendingPublish {
	i := number & (1<<slotBits - 1)
	p := &a.slots[i]
	f := p.pendingPublish
	p.pendingPublish, p.turn, p.last = pendingPublish{}, 0, seq
	if seq == 0 || f.one == nil {
		*p = slot{}
	}
	a.free = append(a.free, int(i))
	return f
}

// sentBy returns the numbers of what was sent at a time or before, the first first.
func (a *pendingPublishes) sentBy(t time.Time) (numbers []uint64) {
	var all []*slot
	for i := range a.slots {
		if p := &a.slots[i]; p.turn != 0 && !p.sent.After(t) {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *slot) int { return cmp.Compare(a.turn, b.turn) })
	for _, p := range all {
		numbers = append(numbers, p.number)
	}
	return numbers
}

// publish sends a pending publish.
func (s *committerLoop) publish(f pendingPublish, send func(reply string) error) {
	p := s.pending.add(f)
	s.outstanding += f.writes()
	if p.reply == "" {
		p.reply = natsio.ReplySubject(s.inbox, p.number)
	}
	if p.err = send(p.reply); p.err != nil {
		s.unsent = append(s.unsent, p.number)
	}
}

// finish ends a pending publish, which has its answer. seq is as for remove. The last of a burst ends
// it, whatever becomes of its write: nothing else is sent before.
func (s *committerLoop) finish(number, seq uint64) pendingPublish {
	f := s.pending.remove(number, seq)
	s.outstanding -= f.writes()
	if s.pace.sent > 0 && s.outstanding == 0 {
		s.pace.end(time.Now())
		s.fast.Store(s.pace.judged && !s.pace.groups)
	}
	if f.one != nil {
		s.free(f.one.order)
	}
	return f
}
