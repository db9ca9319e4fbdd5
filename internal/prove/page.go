package prove

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// A page of a log is frames one after another, numbers big-endian, and its end.
//
//	'E', sequence (8 bytes), time (8), length of the door (1), door,
//	length of the payload (4), payload, chain after the event (32)
//	'R', leaf (32), content (32): what the next event was before its text was removed
//	'Z', sequence with which the next page begins (8); 0: there is none
const (
	frameEvent  = 'E'
	frameBefore = 'R'
	frameEnd    = 'Z'
)

// Append appends an event to a page. chain is what the fold has after it.
func Append(page []byte, e session.Event, chain codec.Hash) []byte {
	if o := e.Original; o != nil {
		page = append(append(append(page, frameBefore), o.Leaf[:]...), o.Content[:]...)
	}
	page = append(page, frameEvent)
	page = binary.BigEndian.AppendUint64(page, e.Seq)
	page = binary.BigEndian.AppendUint64(page, uint64(e.Time))
	page = append(page, byte(len(e.Door)))
	page = append(page, e.Door...)
	page = binary.BigEndian.AppendUint32(page, uint32(len(e.Payload)))
	page = append(page, e.Payload...)
	return append(page, chain[:]...)
}

// AppendEnd ends a page. next is the sequence with which the next one begins; 0: this is
// the last one.
func AppendEnd(page []byte, next uint64) []byte {
	return binary.BigEndian.AppendUint64(append(page, frameEnd), next)
}

// Next returns the sequence with which the page after a whole one begins; 0: there is none.
func Next(page []byte) uint64 {
	if len(page) < 9 {
		return 0
	}
	return binary.BigEndian.Uint64(page[len(page)-8:])
}

// errCut says that bytes of a page are missing.
var errCut = errors.New("the page ends within it")

// reader reads a page.
type reader struct {
	rest []byte
	err  error
}

// take returns the next n bytes; nil after an error.
func (r *reader) take(n int) []byte {
	if r.err == nil && n > len(r.rest) {
		r.err = errCut
	}
	if r.err != nil {
		return nil
	}
	part := r.rest[:n:n]
	r.rest = r.rest[n:]
	return part
}

func (r *reader) number(bytes int) (n uint64) {
	for _, b := range r.take(bytes) {
		n = n<<8 | uint64(b)
	}
	return n
}

// next returns the next event and its chain. isEnd says that the page ends, and after is
// the sequence of the next page then. The event's payload is a part of the page.
func (r *reader) next() (e session.Event, chain codec.Hash, after uint64, isEnd bool, err error) {
	kind := r.number(1)
	if kind == frameBefore {
		e.Original = new(session.Original)
		copy(e.Original.Leaf[:], r.take(len(e.Original.Leaf)))
		copy(e.Original.Content[:], r.take(len(e.Original.Content)))
		kind = r.number(1)
	}
	switch {
	case r.err != nil:
	case kind == frameEnd:
		after, isEnd = r.number(8), true
		if r.err == nil && len(r.rest) > 0 {
			r.err = fmt.Errorf("%d bytes follow the end of the page", len(r.rest))
		}
	case kind == frameEvent:
		e.Seq, e.Time = r.number(8), int64(r.number(8))
		e.Door = session.Door(r.take(int(r.number(1))))
		e.Payload = r.take(int(r.number(4)))
		copy(chain[:], r.take(len(chain)))
	default:
		r.err = fmt.Errorf("it begins with the byte %d", kind)
	}
	return e, chain, after, isEnd, r.err
}
