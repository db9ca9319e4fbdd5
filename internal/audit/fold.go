package audit

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
)

// fold folds one session again and compares it at each event.
type fold struct {
	state  *session.State
	with   *Stored // not compared yet; nil in a pass
	pass   *passed // the same in a pass; nil outside of one
	proven int64   // session clock of the latest checkpoint that matched, or whose difference is excused
	first  uint64  // sequence of the session's first event; 0: it has none yet
	result Result

	open     []session.Place  // effects that were open after the latest event
	openRoom [4]session.Place // open's array: enough for most sessions
	room     *[]byte          // buffer for the bytes of one effect at a time
	ownRoom  []byte           // used if the caller lends no buffer
}

func newFold(sid string, with *Stored) *fold {
	f := &fold{with: with, result: Result{Session: sid}}
	f.room, f.open = &f.ownRoom, f.openRoom[:0]
	return f
}

func (f *fold) begin(install *session.Install) {
	f.state = session.New(install, f.result.Session)
	f.state.SetQuiet(true)
}

// next folds one event and compares. It returns the event's notices; none while the
// state is quiet. An error is that of Foldable.
func (f *fold) next(e session.Event) (notices []session.Notice, err error) {
	if f.result.Panicked {
		return nil, nil
	}
	if err := f.state.Foldable(); err != nil {
		return nil, err
	}
	defer func() {
		if v := recover(); v != nil {
			f.result.Panicked = true
			f.differ(Difference{Kind: OfFold, Seq: e.Seq, Text: fmt.Sprintf("the fold panicked at event %d: %v", e.Seq, v)})
		}
	}()
	f.first = cmp.Or(f.first, e.Seq)
	before := uint64(f.state.NoticeN)
	notices, rejected := f.state.Evolve(e)
	if rejected != nil {
		f.result.Rejected++
	}
	f.compareOpen(e.Seq)
	if f.pass != nil {
		if f.pass.seq == e.Seq {
			f.result.SnapshotAt = e.Seq
			f.pass.otherState = f.state.Hash() != f.pass.hash
		}
		return notices, nil
	}
	f.compareNotice(e, before)
	for i := range f.with.checkpoints {
		if c := &f.with.checkpoints[i]; c.seq == e.Seq {
			f.compareState(e, c)
		}
	}
	return notices, nil
}

// compareState compares the state after an event with a checkpoint. Either events
// are missing, or they are others, or this build folds the same events to another
// state.
func (f *fold) compareState(e session.Event, c *checkpoint) {
	c.met = true
	was, now := c.record, &f.state.Record
	text := fmt.Sprintf("%s at %d: ", c.of, e.Seq)
	d := Difference{Kind: OfState, Seq: e.Seq}
	var hash codec.Hash
	if !c.hash.IsZero() {
		f.result.SnapshotAt = e.Seq
		hash = f.state.Hash()
		text += fmt.Sprintf("its state is %s, the fold's is %s; ", c.hash, hash)
		d.Expected, d.Found = c.hash.String(), hash.String()
	}
	// The sequence was reused: a later event has it.
	d.Excused = was.Leaf != now.Leaf && was.Clock != e.Time
	switch {
	case was.Count != now.Count:
		d.Expected, d.Found = fmt.Sprintf("%d events", was.Count), fmt.Sprintf("%d events", now.Count)
		text += fmt.Sprintf("expected %d events up to there, found %d", was.Count, now.Count)
	case was.Chain != now.Chain:
		d.Expected, d.Found = was.Chain.String(), now.Chain.String()
		text += fmt.Sprintf("expected the chain %s of %d events, found %s: one is not what it was", was.Chain, was.Count, now.Chain)
	case was.Install != now.Install:
		d.Expected, d.Found = was.Install.String(), now.Install.String()
		text += fmt.Sprintf("expected the install record %s, found %s", was.Install, now.Install)
	case c.hash == hash:
		f.proven = max(f.proven, was.Clock)
		return
	default:
		text += fmt.Sprintf("the %d events are the same: another build folded them", was.Count)
	}
	if d.Excused {
		f.proven = max(f.proven, was.Clock)
	}
	d.Text = text
	f.differ(d)
}

// compareNotice compares the stored last notice with the numbers of the event's
// notices. before is how many notices precede them.
func (f *fold) compareNotice(e session.Event, before uint64) {
	n := f.with.notice
	if n.Seq != e.Seq {
		return
	}
	f.with.notice = journal.LastSaid{}
	if now := uint64(f.state.NoticeN); n.N > 0 && e.Time <= n.At && (n.N <= before || n.N > now) {
		expected, found := fmt.Sprintf("number %d", n.N), fmt.Sprintf("numbers %d to %d", before+1, now)
		f.differ(Difference{
			Kind: OfNotice, Seq: e.Seq, Expected: expected, Found: found,
			Text: fmt.Sprintf("the notices about the event at %d: expected %s among them, found %s", e.Seq, expected, found),
		})
	}
}

// compareOpen compares each effect once, after the event at seq opened it. Effects
// that are certainly not stored are not encoded.
func (f *fold) compareOpen(seq uint64) {
	var room [8]session.Place
	var spelled [64]byte
	var name uint64 // of the effect at hand, as fingerprints have it
	now, was := room[:0], f.open
	skip := func(p session.Place) bool {
		now = append(now, p)
		// Both lists are in the same order.
		if at := slices.Index(was, p); at >= 0 {
			was = was[at+1:]
			return true
		}
		if p.Class() == session.ClassWake {
			return true // a schedule, which is gone once it has fired
		}
		if f.pass == nil {
			if _, stored := f.with.effects[string(p.Append(spelled[:0]))]; stored {
				return false
			}
		} else if len(f.pass.fingerprints) > 0 {
			if name = f.pass.of.name(p.Append(spelled[:0])); f.pass.fingerprints.named(name) {
				return false
			}
		}
		f.result.EffectsGone++
		return true
	}
	*f.room = f.state.EachOpen(*f.room, skip, func(_ session.Place, e session.Effect) {
		switch {
		case f.pass == nil:
			f.compareEffect(e, seq)
		case f.pass.fingerprints.take(f.pass.of.of(name, e.Payload)):
			f.result.EffectsSame++
		default: // not stored, or other bytes are stored: then their fingerprint is left
			f.result.EffectsGone++
		}
	})
	f.open = append(f.open[:0], now...)
}

func (f *fold) compareEffect(e session.Effect, seq uint64) {
	stored := f.with.effects[e.Name]
	delete(f.with.effects, e.Name)
	if bytes.Equal(stored.Payload, e.Payload) {
		f.result.EffectsSame++
		return
	}
	expected, found := codec.Sum(stored.Payload).String(), codec.Sum(e.Payload).String()
	f.differ(Difference{
		Kind: OfEffect, Seq: seq, Expected: expected, Found: found,
		Text: fmt.Sprintf("effect %s: other bytes are stored than the fold asks for at %d: expected %s, found %s", e.Name, seq, expected, found),
	})
}

// unopened reports stored effects that the fold never opened. If such an effect is
// older than proven, its event was lost from the log's end before that checkpoint,
// and it is excused.
func (f *fold) unopened() {
	if f.state != nil && f.state.IsErased() {
		return // they are withdrawn, and stay for an hour
	}
	for _, name := range slices.Sorted(maps.Keys(f.with.effects)) {
		payload := f.with.effects[name].Payload
		f.differ(Difference{
			Kind: OfEffect, Excused: openedAt(payload) <= f.proven, Seq: f.result.Seq, Expected: codec.Sum(payload).String(),
			Text: fmt.Sprintf("effect %s is stored, and the fold never asks for it", name),
		})
	}
}

// openedAt returns the session's clock when an effect was opened, and 0 if the
// payload has none: it is no session's effect then.
func openedAt(payload []byte) (at int64) {
	var room [32]codec.Entry
	entries, err := codec.Entries(room[:0], payload)
	i := slices.IndexFunc(entries, func(e codec.Entry) bool { return string(e.Key) == "at" })
	if err != nil || i < 0 || codec.Unmarshal(entries[i].Value, &at) != nil {
		return 0
	}
	return at
}

// close fills in the result, except for its hashes.
func (f *fold) close() {
	f.state.SetQuiet(false)
	f.result.State, f.result.Events, f.result.Seq = f.state, f.state.Count, f.state.Seq
}

func (f *fold) takeHashes() { f.result.Hash, f.result.Chain = f.state.Hash(), f.state.Chain }

func (f *fold) differ(d Difference) { f.result.Differences = append(f.result.Differences, d) }
