package client

import (
	"fmt"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// standing is what a fold is compared with: little, since it is held for every
// session at once.
type standing struct {
	effects      map[string]codec.Hash // of the stored effects' bytes, by name; nil in a pass
	fingerprints fingerprints          // in a pass: of the stored effects
	seq          uint64                // of the snapshot; 0: none that can be read
	hash         codec.Hash            // of its state
}

// folding is a session being folded again, and compared on the way.
type folding struct {
	state         *session.State
	began         uint64           // sequence of its first event
	left          standing         // what it was not compared with yet
	fingerprinter *fingerprinter   // of the pass; nil: the session is folded by itself
	room          *[]byte          // for an effect's bytes, one effect after the other
	ownRoom       []byte           // if nobody lends another
	open          []session.Place  // of the effects that were open after the latest event
	gone          map[string]asked // asked and not stored, if the session is folded by itself
	otherAt       *head            // of the fold where the snapshot is, if its state is another
	broken        bool             // the fold panicked: no event after it is folded
	result        Replayed

	openRoom [4]session.Place // for most sessions' open

	waiting     bool // it has events in the portion at hand
	first, last int  // of these
}

// asked is an effect as a fold asked for it.
type asked struct {
	hash codec.Hash
	seq  uint64 // of the event that did
}

// head shows how far a fold has come.
type head struct {
	count       uint64
	chain, hash codec.Hash
}

func newFolding(install *session.Install, sid string, left standing) *folding {
	f := &folding{state: session.New(install, sid), left: left, result: Replayed{Session: sid}}
	f.state.SetQuiet(true)
	f.room, f.open = &f.ownRoom, f.openRoom[:0]
	return f
}

// fold folds one event and compares what it asks for. It returns the notices,
// none while the state is quiet.
func (f *folding) fold(e session.Event) (said []session.Notice) {
	if f.broken {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			f.broken = true
			f.differ(Difference{Seq: e.Seq, Text: fmt.Sprintf("the fold panicked at event %d: %v", e.Seq, v)})
		}
	}()
	said, err := f.state.Evolve(e)
	if err != nil {
		f.result.Rejected++
	}
	f.ask(e.Seq)
	if f.left.seq == e.Seq {
		f.result.SnapshotAt = e.Seq
		if hash := f.state.Hash(); hash != f.left.hash {
			f.otherAt = &head{count: f.state.Count, chain: f.state.Chain, hash: hash}
		}
	}
	return said
}

// ask looks at what is open, and compares each effect once: when the event at
// seq has opened it. What is surely not stored is not built in a pass.
func (f *folding) ask(seq uint64) {
	var room [8]session.Place
	var spelled [64]byte
	var name uint64 // of the effect at hand, as marks have it
	now, was := room[:0], f.open
	skip := func(p session.Place) bool {
		now = append(now, p)
		// Both lists are in the same order.
		if at := slices.Index(was, p); at >= 0 {
			was = was[at+1:]
			return true
		}
		if p.IsWake() {
			return true // it is a schedule, and gone when it has fired
		}
		if f.fingerprinter == nil {
			return false
		}
		if len(f.left.fingerprints) > 0 {
			if name = f.fingerprinter.name(p.Append(spelled[:0])); f.left.fingerprints.named(name) {
				return false
			}
		}
		f.result.EffectsGone++
		return true
	}
	*f.room = f.state.EachOpen(*f.room, skip, func(_ session.Place, e session.Effect) {
		switch {
		case f.fingerprinter == nil:
			f.compareAsked(e.Name, asked{codec.Sum(e.Payload), seq})
		case f.left.fingerprints.take(f.fingerprinter.of(name, e.Payload)):
			f.result.EffectsSame++
		default: // or other bytes are: then their mark is left
			f.result.EffectsGone++
		}
	})
	f.open = append(f.open[:0], now...)
}

// compareAsked compares an effect with what is stored under its name.
func (f *folding) compareAsked(name string, a asked) {
	held, found := f.left.effects[name]
	if !found {
		f.result.EffectsGone++
		f.gone[name] = a
		return
	}
	delete(f.left.effects, name)
	f.compareEffect(name, held, a)
}

func (f *folding) compareEffect(name string, held codec.Hash, a asked) {
	if held == a.hash {
		f.result.EffectsSame++
		return
	}
	f.differ(Difference{
		Seq: a.seq, Expected: held.String(), Found: a.hash.String(),
		Text: fmt.Sprintf("effect %s: other bytes are stored (%s) than the fold asks for at %d (%s)", name, held, a.seq, a.hash),
	})
}

// compareGone compares effects that were not stored when the fold began with
// those that are now.
func (f *folding) compareGone(now map[string]codec.Hash) {
	for _, name := range sorted(f.gone) {
		if held, found := now[name]; found {
			f.result.EffectsGone--
			f.compareEffect(name, held, f.gone[name])
		}
	}
}

// reportUnaskedEffects reports stored effects that the fold never opened.
func (f *folding) reportUnaskedEffects() {
	for _, name := range sorted(f.left.effects) {
		f.differ(Difference{
			Seq: f.result.Seq, Expected: f.left.effects[name].String(),
			Text: fmt.Sprintf("effect %s is stored, and the fold never asks for it", name),
		})
	}
}

// close takes over what the fold came to.
func (f *folding) close() *Replayed {
	r := &f.result
	f.state.SetQuiet(false)
	r.State, r.Events, r.Seq, r.Hash, r.Chain = f.state, f.state.Count, f.state.Seq, f.state.Hash(), f.state.Chain
	return r
}

func (f *folding) differ(d Difference) {
	f.result.Differences = append(f.result.Differences, d.Text)
	f.result.details = append(f.result.details, d)
}

func sorted[V any](byName map[string]V) []string {
	names := make([]string, 0, len(byName))
	for name := range byName {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
