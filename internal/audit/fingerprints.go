package audit

import "hash/maphash"

// fingerprints are the stored effects of a session that a pass has not compared
// yet, in stored order. A fingerprint takes eight bytes and holds no name. A
// session that has some left at the end is folded again by Session, which reports
// names and hashes.
type fingerprints []uint64

// nameShift splits a fingerprint: its upper bits come from the effect's name, its
// lower bits from the payload.
const nameShift = 48

// fingerprinter makes fingerprints. Its seed is random, so that publishers can't
// provoke collisions. Two effects of one name collide with probability 2^-48.
type fingerprinter struct{ seed maphash.Seed }

func (r fingerprinter) put(m *fingerprints, name string, payload []byte) {
	*m = append(*m, fingerprint(maphash.String(r.seed, name), maphash.Bytes(r.seed, payload)))
}

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

// named reports whether m may contain an effect of that name.
func (m fingerprints) named(name uint64) bool {
	for _, have := range m {
		if (have^name)>>nameShift == 0 {
			return true
		}
	}
	return false
}

// take removes a fingerprint and reports whether it was there. Effects are mostly
// opened in stored order, so it is near the start.
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
