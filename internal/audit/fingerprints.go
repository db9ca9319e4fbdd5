package audit

import "hash/maphash"

// fingerprints are the stored effects of a session that a pass has not compared
// yet, in the order in which they were stored. A fingerprint takes eight bytes
// and holds no name. A session that has some left at the end is folded again by
// itself, and its differences are reported by name and hash.
type fingerprints []uint64

// nameShift splits a fingerprint: the bits from it up are of the effect's name,
// those below of its bytes.
const nameShift = 48

// fingerprinter makes fingerprints. No publisher can know its seed, so two
// effects of one name collide once in 2^48 times.
type fingerprinter struct{ seed maphash.Seed }

// put adds the fingerprint of a stored effect.
func (r fingerprinter) put(m *fingerprints, name string, payload []byte) {
	*m = append(*m, fingerprint(maphash.String(r.seed, name), maphash.Bytes(r.seed, payload)))
}

// name returns the name bits of a fingerprint.
func (r fingerprinter) name(name []byte) uint64 {
	return maphash.Bytes(r.seed, name) >> nameShift << nameShift
}

// of returns the fingerprint of an effect whose name bits are known.
func (r fingerprinter) of(name uint64, payload []byte) uint64 {
	return fingerprint(name, maphash.Bytes(r.seed, payload))
}

func fingerprint(name, payload uint64) uint64 {
	return name>>nameShift<<nameShift | payload&(1<<nameShift-1)
}

// named reports whether an effect of that name may be among them.
func (m fingerprints) named(name uint64) bool {
	for _, have := range m {
		if (have^name)>>nameShift == 0 {
			return true
		}
	}
	return false
}

// take removes a fingerprint and reports whether it was there. Effects are
// mostly asked in stored order, so it is near the start.
func (m *fingerprints) take(mark uint64) bool {
	for i, have := range *m {
		if have == mark {
			copy((*m)[1:i+1], (*m)[:i])
			*m = (*m)[1:]
			return true
		}
	}
	return false
}
