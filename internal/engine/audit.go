package engine

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
)

// audit compares a session's events, folded from the first on, with what they
// were folded to before. What was stored of events that the log's end lost in a
// power failure, and whose sequences other events have now, says nothing: the
// session goes on from what the log has.
type audit struct {
	checkpoints []checkpoint
	said        journal.LastSaid
	effects     map[string]journal.StoredEffect // by name: stored, and not compared yet
	asked       map[string]bool                 // open effects that were seen
	proven      int64                           // the clock up to which a checkpoint has shown that all is there
	heard       bool                            // the event that the last notice is about was seen
	other       error                           // an effect has other bytes: what a checkpoint tells is said rather
}

// checkpoint is how far a session was folded, and to what.
type checkpoint struct {
	of   string
	head *session.Record
	met  bool
}

func (x *audit) expect(of string, head *session.Record) {
	x.checkpoints = append(x.checkpoints, checkpoint{of: of, head: head})
}

// recordOf returns the state of a snapshot.
func recordOf(data []byte) (*session.Record, error) {
	snap, err := session.ParseSnapshot(data)
	if err != nil {
		return nil, err
	}
	record := &session.Record{}
	return record, codec.Unmarshal(snap.State, record)
}

// see compares the state after an event, before which said notices were said.
func (x *audit) see(e session.Event, state *session.State, said uint64) error {
	for i := range x.checkpoints {
		if m := &x.checkpoints[i]; m.head.Seq == e.Seq {
			if err := m.meet(e, state); err != nil {
				return err
			}
			x.proven = max(x.proven, m.head.Clock)
		}
	}
	if x.said.Seq == e.Seq && !x.heard {
		x.heard = true
		if n := x.said.N; e.Time <= x.said.At && (n <= said || n > uint64(state.NoticeN)) {
			return &damageError{
				fmt.Sprintf("the notices about the event at %d", e.Seq),
				fmt.Sprintf("number %d among them", n), fmt.Sprintf("numbers %d to %d", said+1, state.NoticeN),
			}
		}
	}
	if err := x.compareEffects(e, state); err != nil && x.other == nil {
		x.other = err
	}
	return nil
}

// meet compares the state at a checkpoint.
func (m *checkpoint) meet(e session.Event, state *session.State) error {
	m.met = true
	head, at := m.head, fmt.Sprintf("%s at %d", m.of, e.Seq)
	switch {
	case head.Leaf != state.Leaf && e.Time != head.Clock:
		return nil // another event, stored later: the sequence was given out again
	case head.Leaf != state.Leaf:
		return &damageError{at + " names its last event", "the hash " + head.Leaf.String(), state.Leaf.String()}
	case head.Count != state.Count:
		return &damageError{at + " is of more or fewer events", fmt.Sprintf("%d", head.Count), fmt.Sprintf("%d", state.Count)}
	case head.Chain != state.Chain:
		return &damageError{
			fmt.Sprintf("%s is of other events, or in another order", at),
			fmt.Sprintf("the chain %s of %d events", head.Chain, head.Count), state.Chain.String(),
		}
	case head.Install != state.Install:
		return &damageError{at + " pins an install record", head.Install.String(), state.Install.String()}
	}
	return nil
}

// compareEffects compares the effects that an event opened with those that are
// stored.
func (x *audit) compareEffects(e session.Event, state *session.State) error {
	var open []string
	effects := state.OpenExcept(func(name string) bool {
		open = append(open, name)
		_, stored := x.effects[name]
		return x.asked[name] || !stored
	})
	clear(x.asked)
	for _, name := range open {
		x.asked[name] = true
	}
	for _, effect := range effects {
		stored := x.effects[effect.Name]
		delete(x.effects, effect.Name)
		if !bytes.Equal(stored.Payload, effect.Payload) {
			return &damageError{
				fmt.Sprintf("effect %s, asked at %d", effect.Name, e.Seq),
				"the bytes that are stored, of the hash " + codec.Sum(stored.Payload).String(), codec.Sum(effect.Payload).String(),
			}
		}
	}
	return nil
}

// end says what was expected and not met, of a log that ends at last. has
// reports whether there is an event at a sequence, whoever's.
func (x *audit) end(last uint64, has func(seq uint64) (bool, error)) error {
	var seqs []uint64
	whose := map[uint64]string{}
	for _, m := range x.checkpoints {
		if !m.met {
			seqs = append(seqs, m.head.Seq)
			whose[m.head.Seq] = m.of
		}
	}
	if x.said.N > 0 && !x.heard {
		seqs = append(seqs, x.said.Seq)
		whose[x.said.Seq] = fmt.Sprintf("its notice %d", x.said.N)
	}
	slices.Sort(seqs)
	for _, seq := range slices.Compact(seqs) {
		if seq > last {
			continue // the log's end was lost
		}
		found, err := has(seq)
		if err != nil {
			return err
		}
		if !found {
			return &damageError{whose[seq] + " is about an event", fmt.Sprintf("one at %d", seq), "none there"}
		}
	}
	if x.other != nil {
		return x.other
	}
	return x.strange()
}

// strange tells of an effect that was asked and that no event leads to.
func (x *audit) strange() error {
	var names []string
	for name, e := range x.effects {
		if askedAt(e.Payload) > x.proven {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	name := slices.Min(names)
	return &damageError{
		fmt.Sprintf("effect %s is stored", name),
		"the events that lead to it, up to the clock " + fmt.Sprint(askedAt(x.effects[name].Payload)), "others, which don't",
	}
}

// askedAt returns the session's clock when an effect was asked; 0 if its bytes
// don't tell, since then it is none of a session's.
func askedAt(payload []byte) (at int64) {
	var room [32]codec.Entry
	entries, err := codec.Entries(room[:0], payload)
	i := slices.IndexFunc(entries, func(e codec.Entry) bool { return string(e.Key) == "at" })
	if err != nil || i < 0 || codec.Unmarshal(entries[i].Value, &at) != nil {
		return 0
	}
	return at
}
