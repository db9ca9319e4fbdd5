package client

import "hash/maphash"

// marks tell the stored effects of a session that a pass has not compared yet,
// in the order in which they were stored. One takes eight bytes, and no name: a
// session that has marks left at the end is folded again by itself, and what is
// wrong is told by names and hashes.
type marks []uint64

// nameShift is above which bit a mark is of the effect's name; what is below is
// of its bytes.
const nameShift = 48

// marker makes marks. Nobody who writes to a stream can know its seed, so that
// one effect has the mark of another once in 2^48 times.
type marker struct {
	seed maphash.Seed
	room []uint64 // for the marks of sessions to come
}

func newMarker() *marker { return &marker{seed: maphash.MakeSeed()} }

const (
	marksFirst = 8    // there is room for so many marks of a session at first: a short run's
	marksSlab  = 1024 // that is taken of so many
)

// put adds the mark of an effect that is stored.
func (r *marker) put(m *marks, name string, payload []byte) {
	if *m == nil {
		if len(r.room) < marksFirst {
			r.room = make([]uint64, marksSlab)
		}
		*m, r.room = r.room[:0:marksFirst], r.room[marksFirst:]
	}
	*m = append(*m, mark(maphash.String(r.seed, name), maphash.Bytes(r.seed, payload)))
}

// name returns what a mark has of a name.
func (r *marker) name(name []byte) uint64 {
	return maphash.Bytes(r.seed, name) >> nameShift << nameShift
}

// of returns the mark of an effect, of whose name that is had.
func (r *marker) of(name uint64, payload []byte) uint64 {
	return mark(name, maphash.Bytes(r.seed, payload))
}

func mark(name, payload uint64) uint64 {
	return name>>nameShift<<nameShift | payload&(1<<nameShift-1)
}

// named reports whether an effect of that name may be among them. If not, none
// is.
func (m marks) named(name uint64) bool {
	for _, have := range m {
		if (have^name)>>nameShift == 0 {
			return true
		}
	}
	return false
}

// take takes a mark out, and reports whether it was there. Effects are asked as
// they were stored, mostly: it is the first, or not far from it.
func (m *marks) take(mark uint64) bool {
	for i, have := range *m {
		if have == mark {
			copy((*m)[1:i+1], (*m)[:i])
			*m = (*m)[1:]
			return true
		}
	}
	return false
}
