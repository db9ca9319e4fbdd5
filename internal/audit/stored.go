package audit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
)

// Log is what an audit of one session reads: a *bus.Bus.
type Log interface {
	ReadSession(ctx context.Context, sid string, from, to uint64, leader bool) iter.Seq2[session.Event, error]
	LastSeq(ctx context.Context) (uint64, error)
	EventAt(ctx context.Context, seq uint64) (session.Event, error)
	GetSnapshot(ctx context.Context, sid string) (data []byte, found bool, err error)
	StoredOutputs(ctx context.Context, sid string) (journal.StoredOutputs, error)
}

// Pinned returns the install record of the session whose first event is at seq.
type Pinned func(ctx context.Context, seq uint64) (*session.Install, error)

// Stored is what earlier folds of a session have stored. The zero value has
// nothing.
type Stored struct {
	checkpoints []checkpoint
	unreadable  error                           // why its snapshot can't be used; nil: it has none, or a readable one
	effects     map[string]journal.StoredEffect // not compared yet, by name
	notice      journal.LastSaid                // Seq is 0: none, or it was compared
}

// checkpoint is a state of a session at one of its events.
type checkpoint struct {
	of     string // what it was read from, for texts
	seq    uint64 // of the last event
	record *session.Record
	hash   codec.Hash // of the state, if it is a snapshot's
	met    bool
}

// Read reads what is stored of a session.
func Read(ctx context.Context, from Log, sid string) (*Stored, error) {
	s := &Stored{effects: map[string]journal.StoredEffect{}}
	data, found, err := from.GetSnapshot(ctx, sid)
	if err != nil {
		return nil, fmt.Errorf("read the snapshot of %s: %w", sid, err)
	}
	if found {
		s.ExpectSnapshot(sid, data)
	}
	outputs, err := from.StoredOutputs(ctx, sid)
	if err != nil {
		return nil, err
	}
	s.notice = outputs.Notice
	for _, e := range outputs.Effects {
		s.effects[e.Name.Effect] = e
	}
	return s, nil
}

// ExpectSnapshot expects the state of a snapshot.
func (s *Stored) ExpectSnapshot(sid string, data []byte) {
	snap, err := session.ParseSnapshot(data)
	record := &session.Record{}
	if err == nil {
		err = codec.Unmarshal(snap.State, record)
	}
	if err == nil && record.Session != sid {
		err = fmt.Errorf("snapshot at %d: it is of session %s", snap.Seq, record.Session)
	}
	if s.unreadable = err; err == nil {
		s.checkpoints = append(s.checkpoints, checkpoint{of: "snapshot", seq: snap.Seq, record: record, hash: snap.Hash})
	}
}

// ExpectState expects a state that is held in memory. The caller must not change it
// before the audit has ended.
func (s *Stored) ExpectState(state *session.State) {
	s.checkpoints = append(s.checkpoints, checkpoint{of: "its state in memory", seq: state.Seq, record: &state.Record})
}

// forgetBefore expects nothing of the events of an erased session before its tombstone at
// first, which the eraser deletes.
func (s *Stored) forgetBefore(first uint64) {
	if s.notice.Seq < first {
		s.notice = journal.LastSaid{}
	}
	s.checkpoints = slices.DeleteFunc(s.checkpoints, func(c checkpoint) bool { return c.seq < first })
}

// unmet reports stored outputs of events that the session does not have. The log
// ends at last.
func (f *fold) unmet(ctx context.Context, from Log, last uint64) error {
	hole := func(seq uint64) (bool, error) {
		if seq > last {
			return false, nil // the log's end was lost
		}
		_, err := from.EventAt(ctx, seq)
		if errors.Is(err, natsio.ErrNotFound) {
			return true, nil
		}
		return false, err // nil: the sequence was reused
	}
	with := f.with
	if f.state != nil && f.state.IsErased() {
		with.forgetBefore(f.first)
	}
	if n := with.notice; n.Seq > 0 {
		is, err := hole(n.Seq)
		if err != nil {
			return err
		}
		if is {
			f.differ(Difference{Kind: OfNotice, Seq: n.Seq, Text: fmt.Sprintf("its notice %d is about an event: expected one at %d, found none there", n.N, n.Seq)})
		}
	}
	if with.unreadable != nil {
		f.differ(Difference{Kind: OfState, Excused: true, Text: with.unreadable.Error()})
	}
	for _, c := range with.checkpoints {
		if c.met {
			continue
		}
		is, err := hole(c.seq)
		if err != nil {
			return err
		}
		f.differ(Difference{
			Kind: OfState, Excused: !is, Seq: c.seq, Expected: c.record.Leaf.String(),
			Text: fmt.Sprintf("%s at %d: the session has no event there; expected one with the leaf %s, found none", c.of, c.seq, c.record.Leaf),
		})
	}
	return nil
}
