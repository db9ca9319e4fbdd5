package bus

import (
	"cmp"
	"slices"
	"time"
)

// flight is what one answer is awaited for: a single message or a batch.
type flight struct {
	one   *write // the single message; nil: a batch
	batch []*write
	sent  time.Time
	err   error // it could not be sent
}

// writes returns how many are in it.
func (f *flight) writes() int {
	if f.one != nil {
		return 1
	}
	return len(f.batch)
}

// all returns what is in it.
func (f *flight) all() []*write {
	if f.one != nil {
		return []*write{f.one}
	}
	return f.batch
}

// flights are what is in the air, each in a slot. An answer names the number of
// the slot.
//
// A slot keeps its number while each that flew there was a single message and is
// stored: so the subjects of answers are few, and the server finds out once who
// listens to each, which costs as much as all else that an answer does. Should the
// server answer one of them twice, the second answer tells a sequence that is not
// behind those that are known here, and is not believed (hear). After anything else
// a slot gets a new number, so that what comes late is about nothing.
type flights struct {
	slots   []slot
	free    []int
	numbers uint64 // how many were given
	flown   uint64
}

// slot is where one flight at a time is in the air.
type slot struct {
	flight
	number uint64 // 0: it gets one
	reply  string // the subject of its answers; empty: it is made
	turn   uint64 // of the flight; later ones are greater; 0: none flies here
	last   uint64 // the last sequence that was told under this number
}

// slotBits is how many bits of a number tell the slot: there are more slots than
// commitWritesMax.
const slotBits = 14

// add takes a flight in.
func (a *flights) add(f flight) *slot {
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
	a.flown++
	p.flight, p.turn = f, a.flown
	return p
}

// at returns the slot with a number in which something flies, nil if there is
// none. It is good until the next one is added.
func (a *flights) at(number uint64) *slot {
	i := number & (1<<slotBits - 1)
	if i >= uint64(len(a.slots)) || a.slots[i].number != number || a.slots[i].turn == 0 {
		return nil
	}
	return &a.slots[i]
}

// remove takes out the flight at a number. Its slot keeps that for
// the next one if it was a single message and is stored at a sequence, seq (0: it
// isn't).
func (a *flights) remove(number, seq uint64) flight {
	i := number & (1<<slotBits - 1)
	p := &a.slots[i]
	f := p.flight
	p.flight, p.turn, p.last = flight{}, 0, seq
	if seq == 0 || f.one == nil {
		*p = slot{}
	}
	a.free = append(a.free, int(i))
	return f
}

// sentBy returns the numbers of what was sent at a time or before, the first first.
func (a *flights) sentBy(t time.Time) (numbers []uint64) {
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

// fly sends a flight.
func (s *committing) fly(f flight, send func(reply string) error) {
	p := s.flights.add(f)
	s.inAir += f.writes()
	if p.reply == "" {
		p.reply = replySubject(s.inbox, p.number)
	}
	if p.err = send(p.reply); p.err != nil {
		s.fell = append(s.fell, p.number)
	}
}

// land takes a flight out of the air. seq is as for remove. The last of a burst ends
// it, whatever becomes of its write: nothing else is sent before.
func (s *committing) land(number, seq uint64) flight {
	f := s.flights.remove(number, seq)
	s.inAir -= f.writes()
	if s.pace.sent > 0 && s.inAir == 0 {
		s.pace.end(time.Now())
		s.fast.Store(s.pace.judged && !s.pace.groups)
	}
	if f.one != nil {
		s.free(f.one.order)
	}
	return f
}
