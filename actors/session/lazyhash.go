package session

import "github.com/refold/refold/codec"

// The hash of a settlement tells an identical repeat from a conflicting one.
// Repeats are rare, so hashes are computed lazily: an active session keeps the data
// of its latest settlements. It hashes them when a repeat arrives, when the state's
// bytes are needed, or when the session becomes idle.

// lazyBytesMax bounds the data that a session keeps for lazy hashes. Settlements
// beyond it are hashed at once.
const lazyBytesMax = 16 << 10

// lazyRoom is the first capacity, in settlements: enough for most turns.
const lazyRoom = 4

// lazyHashes are the settlements that are not hashed yet.
type lazyHashes struct {
	pending []unhashed
	bytes   int // of all data
}

// unhashed is a settlement of the latest turn, or of the last completed batch.
type unhashed struct {
	data     codec.Raw // the event's memory
	status   string    // of the result
	call     int32     // index in the batch; -1: the generation, which made calls
	from, to int32     // of the result's text in data; 0, 0: not known
	result   bool      // the settlement is the call's result
}

// hashLazily defers the hash of a settlement of the latest turn: of its generation
// if call is -1, else of that call. With result, the settlement is the call's
// result too. The data is kept, not copied.
func (s *State) hashLazily(call int, b *settlement, result bool) {
	o := &s.turnHashes
	u := unhashed{data: b.data, status: b.call.Status, call: int32(call), from: int32(b.outputFrom), to: int32(b.outputTo), result: result}
	if o.bytes+len(b.data) > lazyBytesMax {
		s.hashSettlement(&u)
		return
	}
	if o.pending == nil {
		o.pending = make([]unhashed, 0, lazyRoom)
	}
	o.bytes += len(b.data)
	o.pending = append(o.pending, u)
}

// computeLazyHashes computes all deferred hashes. The state does not change.
func (s *State) computeLazyHashes() {
	if s.scratch == nil {
		return
	}
	s.turnHashes.each(s.hashSettlement)
	s.doneHashes.each(func(u *unhashed) {
		if u.result {
			s.Done.Results[u.call] = u.hash()
		}
	})
}

// hashSettlement hashes a settlement of the latest turn. If the last completed
// batch is that turn's, it stores the hash of the result there too.
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

// rotateLazyHashes is called when a new turn replaces the latest one. It drops the
// old turn's settlements, but keeps the results of the last completed batch.
func (s *State) rotateLazyHashes() {
	if t, d := s.Turn, s.Done; t != nil && d != nil && d.Run == t.Run && d.Turn == t.Number {
		s.turnHashes, s.doneHashes = s.doneHashes, s.turnHashes
	}
	s.turnHashes.clear()
}

// forgetGenerationsHash drops the hash of a generation before its next attempt.
func (s *State) forgetGenerationsHash() {
	s.turnHashes.clear() // it has made no calls
	s.Turn.Settled = codec.Hash{}
}

// each calls fn for all of them and removes them.
func (o *lazyHashes) each(fn func(u *unhashed)) {
	for i := range o.pending {
		fn(&o.pending[i])
	}
	o.clear()
}

// clear removes all of them and releases the memory of their events.
func (o *lazyHashes) clear() {
	clear(o.pending)
	o.pending, o.bytes = o.pending[:0], 0
}

func (o *lazyHashes) weight() int { return cap(o.pending)*unhashedWeight + o.bytes }

// hash returns the hash of the result in a ToolCallSettled that was decoded before.
// A text result is not decoded again.
func (u *unhashed) hash() codec.Hash {
	if u.from < u.to {
		return resultHash(u.status, 't', u.data[u.from:u.to])
	}
	var b ToolCallSettled
	_ = codec.Decode(u.data, &b)
	return b.result()
}
