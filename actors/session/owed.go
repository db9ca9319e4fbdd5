package session

import "github.com/refold/refold/codec"

// Hashes tell a settlement that comes once more from another one. Most come
// once, so that nobody asks for theirs: as long as a session is at work, it
// holds the data of its latest settlements, and hashes them when one comes
// again, when the state's bytes are wanted, or when it has nothing more to do.

// owedBytesMax is how much data a session holds for that; what is beyond it is
// hashed at once.
const owedBytesMax = 16 << 10

// owedRoom is for how many settlements there is room at first: most turns'.
const owedRoom = 4

// owed is what was not hashed yet.
type owed struct {
	of    []unhashed
	bytes int // of all data
}

// unhashed is a settlement of the latest turn, or of the batch completed last.
type unhashed struct {
	data     codec.Raw // the event's memory
	status   string    // of the result
	call     int32     // position in the batch; -1: the generation, which made calls
	from, to int32     // of the result's text in data; 0, 0: it is not known
	result   bool      // the settlement is the call's result
}

// owe has the settlement of the latest turn's generation, if call is -1, or of
// one of its calls, hashed when that is asked for. With result, it is the call's
// result too. The data is held, not copied.
func (s *State) owe(call int, b *settlement, result bool) {
	o := &s.turnOwes
	u := unhashed{data: b.data, status: b.call.Status, call: int32(call), from: int32(b.outputFrom), to: int32(b.outputTo), result: result}
	if o.bytes+len(b.data) > owedBytesMax {
		s.hashSettlement(&u)
		return
	}
	if o.of == nil {
		o.of = make([]unhashed, 0, owedRoom)
	}
	o.bytes += len(b.data)
	o.of = append(o.of, u)
}

// hashOwed makes all hashes that are owed. What it changes is what the state
// holds, not what it says.
func (s *State) hashOwed() {
	if s.live == nil {
		return
	}
	s.turnOwes.each(s.hashSettlement)
	s.doneOwes.each(func(u *unhashed) {
		if u.result {
			s.Done.Results[u.call] = u.hash()
		}
	})
}

// hashSettlement hashes a settlement of the latest turn. It is what the batch
// completed last keeps of it, if the turn made that.
func (s *State) hashSettlement(u *unhashed) {
	t := s.Turn
	if u.call < 0 {
		t.Settled = settlementHash(TypeToolCallsObserved, u.data)
		return
	}
	c := &t.Batch.Calls[u.call]
	c.Settled = settlementHash(TypeToolCallSettled, u.data)
	if !u.result {
		return
	}
	c.Result = u.hash()
	if d := s.Done; d != nil && d.Run == t.Run && d.Turn == t.Number {
		d.Results[u.call] = c.Result
	}
}

// passOwed is called when another turn takes the latest one's place: of its
// settlements none is asked for any more, and of its results those that the
// batch completed last keeps.
func (s *State) passOwed() {
	if t, d := s.Turn, s.Done; t != nil && d != nil && d.Run == t.Run && d.Turn == t.Number {
		s.turnOwes, s.doneOwes = s.doneOwes, s.turnOwes
	}
	s.turnOwes.clear()
}

// forgetGenerationsHash gives up the hash of a generation that is asked again.
func (s *State) forgetGenerationsHash() {
	s.turnOwes.clear() // it has made no calls
	s.Turn.Settled = codec.Hash{}
}

// each calls fn for all of them, and leaves none.
func (o *owed) each(fn func(u *unhashed)) {
	for i := range o.of {
		fn(&o.of[i])
	}
	o.clear()
}

// clear lets go of the events' memory, too.
func (o *owed) clear() {
	clear(o.of)
	o.of, o.bytes = o.of[:0], 0
}

// weight returns what o takes of memory.
func (o *owed) weight() int { return cap(o.of)*unhashedWeight + o.bytes }

// hash returns the hash of the result that is in the data of a ToolCallSettled,
// which was decoded before. What is text is not decoded again.
func (u *unhashed) hash() codec.Hash {
	if u.from < u.to {
		return resultHash(u.status, 't', u.data[u.from:u.to])
	}
	var b ToolCallSettled
	_ = codec.Decode(u.data, &b)
	return b.result()
}
