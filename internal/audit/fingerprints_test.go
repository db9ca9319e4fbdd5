package audit

// What a pass is told by the marks of stored effects: which sessions differ, and
// how many effects are as they were stored, or are not stored any more. Effects
// are taken away, altered, renamed and reordered in memory.

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/refold/refold/internal/journal"
)

func TestPassComparesEffectsByFingerprint(t *testing.T) {
	t.Parallel()
	sound := newLibrary(t, 3)
	const sid = "bench-0000000001"
	var of []int // its effects
	for i, e := range sound.effects {
		if e.Name.Session == sid {
			of = append(of, i)
		}
	}
	all, own := len(sound.effects), len(of)
	if own < 5 {
		t.Fatalf("%s has %d effects, want more", sid, own)
	}
	altered := func(payload []byte) []byte {
		payload = bytes.Clone(payload)
		payload[len(payload)/2] ^= 1
		return payload
	}
	for name, c := range map[string]struct {
		change     func(effects []journal.StoredEffect) []journal.StoredEffect
		same, gone int
		differs    string
	}{
		"nothing":     {func(e []journal.StoredEffect) []journal.StoredEffect { return e }, all, 0, ""},
		"all expired": {func([]journal.StoredEffect) []journal.StoredEffect { return nil }, 0, all, ""},
		"the oldest expired": {func(e []journal.StoredEffect) []journal.StoredEffect { return e[of[2]+1:] },
			all - of[2] - 1, of[2] + 1, ""},
		"the newest is not stored": {func(e []journal.StoredEffect) []journal.StoredEffect { return slices.Delete(e, of[own-1], of[own-1]+1) },
			all - 1, 1, ""},
		"another order": {func(e []journal.StoredEffect) []journal.StoredEffect { slices.Reverse(e); return e }, all, 0, ""},
		"other bytes": {func(e []journal.StoredEffect) []journal.StoredEffect {
			e[of[1]].Payload = altered(e[of[1]].Payload)
			return e
		}, all - 1, 1, sid},
		"another name": {func(e []journal.StoredEffect) []journal.StoredEffect {
			e[of[1]].Name.Effect = "r9t9"
			return e
		}, all - 1, 1, sid},
		"names exchanged": {func(e []journal.StoredEffect) []journal.StoredEffect {
			a, b := &e[of[0]], &e[of[own-1]]
			a.Name.Effect, b.Name.Effect = b.Name.Effect, a.Name.Effect
			return e
		}, all - 2, 2, sid},
		"another session's": {func(e []journal.StoredEffect) []journal.StoredEffect {
			other := e[of[0]]
			other.Name.Session, other.Name.Effect = sid, "r99t1"
			return append(e, other)
		}, all, 0, sid},
		"one too many": {func(e []journal.StoredEffect) []journal.StoredEffect {
			more := e[of[0]]
			more.Payload = altered(more.Payload)
			return append(e, more)
		}, all, 0, sid},
	} {
		l := *sound
		l.effects = c.change(slices.Clone(sound.effects))
		same, gone, differ := l.outcome(t)
		if fmt.Sprint(same, gone, differ) != fmt.Sprint(c.same, c.gone, c.differs) {
			t.Errorf("%s: got %d the same, %d gone, %q differs, want %d, %d, %q", name, same, gone, differ, c.same, c.gone, c.differs)
		}
	}
}

// outcome is what a pass comes to: effects that are the same and that are gone,
// and the session that differs.
func (l *library) outcome(t *testing.T) (same, gone uint64, differs string) {
	t.Helper()
	p, err := All(t.Context(), l, l.pinned, 1)
	if err != nil {
		t.Fatal(err)
	}
	for r, other := range p.Results(false) {
		same, gone = same+r.EffectsSame, gone+r.EffectsGone
		if other {
			differs += r.Session
		}
	}
	return same, gone, differs
}
