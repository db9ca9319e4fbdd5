package bus

import (
	"strconv"
	"time"
)

// flight is what one answer is awaited for: a single message or a batch.
type flight struct {
	number uint64 // that the answer names; 0: none flies here
	one    *write // the single message; nil: a batch
	batch  []*write
	sent   time.Time
	err    error // it could not be sent
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

// flights are what is in the air, each at a place that its number tells: thousands
// come and go a second, and a map of them would be a good part of what a committer
// computes. A place is used again under another number, so that an answer that comes
// too late, or twice, is about nothing. Later numbers are greater.
type flights struct {
	places []flight
	free   []int
	next   uint64 // how many have flown
}

// placeBits is how many bits of a number tell the place: there are more places than
// commitWritesMax.
const placeBits = 14

// add takes a flight in and returns its number.
func (a *flights) add(f flight) uint64 {
	place := len(a.places)
	if last := len(a.free) - 1; last >= 0 {
		place = a.free[last]
		a.free = a.free[:last]
	} else {
		a.places = append(a.places, flight{})
	}
	a.next++
	f.number = a.next<<placeBits | uint64(place)
	a.places[place] = f
	return f.number
}

// at returns the flight of a number, nil if there is none. It is there until the
// next one is taken in or out.
func (a *flights) at(number uint64) *flight {
	place := number & (1<<placeBits - 1)
	if number == 0 || place >= uint64(len(a.places)) || a.places[place].number != number {
		return nil
	}
	return &a.places[place]
}

// remove takes out the flight of a number, which must be there.
func (a *flights) remove(number uint64) flight {
	place := number & (1<<placeBits - 1)
	f := a.places[place]
	a.places[place] = flight{}
	a.free = append(a.free, int(place))
	return f
}

// before returns the numbers of those that were sent at a time or before, in any order.
func (a *flights) before(t time.Time) []uint64 {
	var all []uint64
	for i := range a.places {
		if f := &a.places[i]; f.number != 0 && !f.sent.After(t) {
			all = append(all, f.number)
		}
	}
	return all
}

// fly sends a flight.
func (s *committing) fly(f flight, send func(reply string) error) {
	number := s.flights.add(f)
	s.inAir += f.writes()
	s.reply = strconv.AppendUint(append(append(s.reply[:0], s.inbox...), '.'), number, 10)
	if err := send(string(s.reply)); err != nil {
		s.flights.at(number).err = err
		s.fell = append(s.fell, number)
	}
}

// land takes a flight out of the air.
func (s *committing) land(number uint64) flight {
	f := s.flights.remove(number)
	s.inAir -= f.writes()
	if f.one != nil {
		s.free(f.one.order)
	}
	return f
}
