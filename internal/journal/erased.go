package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/natsio"
)

// ErrErased says that messages of the session were deleted during the read.
// The same read again begins with the tombstone.
var ErrErased = errors.New("the session was erased meanwhile: read it again")

// Erasure is an entry of the ledger of erased messages (REFOLD_ERASED), as JSON. The
// eraser stores it before it deletes these messages, and once more, as done, after that.
// It begins no erasure before the former one is done, so the last entry explains every
// hole of the log that an eraser made.
type Erasure struct {
	// The session whose events are deleted.
	Session string `json:"session"`
	// Sequence of the tombstone that has taken the place of all events before it. 0 if one
	// event alone is erased, and Redacted stands for it.
	Tombstone uint64    `json:"tombstone"`
	Redacted  *Redacted `json:"redacted,omitempty"`
	// Sequences of the events, in order: the first and the last of each range of the log
	// that has events of this session alone.
	Ranges [][2]uint64 `json:"ranges"`
	// Number of the session's events before the tombstone that stay in the log after this
	// erasure, and are deleted by the next ones.
	Left uint64 `json:"left"`
	// Number of all events that former erasures have deleted from the log.
	Before uint64 `json:"before"`
	// Whether all of them are deleted.
	Done bool `json:"done"`
	// Whether they are deleted plainly: their bytes stay in the server's files until their
	// blocks are rewritten. False if absent.
	Plain bool `json:"plain,omitempty"`
}

// RangesMax bounds the ranges of an Erasure: its message has at most some 350 KB.
const RangesMax = 8192

// Events returns the number of events of an erasure.
func (e *Erasure) Events() (n uint64) {
	for _, r := range e.Ranges {
		n += r[1] - r[0] + 1
	}
	return n
}

// LastErasure returns the last entry of the ledger and its sequence there, from the
// leader; the sequence is 0 if there is none.
func (j *Journal) LastErasure(ctx context.Context) (Erasure, uint64, error) {
	return j.lastErasure(ctx, j.names.ErasedAll())
}

// LastErasureOf is LastErasure for the entries of one session.
func (j *Journal) LastErasureOf(ctx context.Context, sid string) (Erasure, uint64, error) {
	subject, err := j.names.Erased(sid)
	if err != nil {
		return Erasure{}, 0, err
	}
	return j.lastErasure(ctx, subject)
}

func (j *Journal) lastErasure(ctx context.Context, subject string) (e Erasure, seq uint64, err error) {
	m, err := j.lastOn(ctx, j.names.ErasedStream(), subject)
	if hasNoLedger(err) {
		err = nil
	}
	if err == nil && m.seq > 0 {
		err = json.Unmarshal(m.data, &e)
	}
	if err != nil {
		return Erasure{}, 0, fmt.Errorf("read the ledger of erased messages: %w", err)
	}
	return e, m.seq, nil
}

// hasNoLedger reports whether a read failed since there is no ledger: no session-actor that
// knows of it has run yet.
func hasNoLedger(err error) bool {
	return errors.Is(err, jetstream.ErrStreamNotFound) || natsio.CodeOf(err) == natsio.CodeStreamMissing || errors.Is(err, natsio.ErrNoStream)
}

// PutErasure appends an entry to the ledger, whose last one must be at sequence after.
// Otherwise another eraser is at work, and the error is ErrOvertaken. It returns the
// sequence of the entry.
func (j *Journal) PutErasure(ctx context.Context, e Erasure, after uint64) (uint64, error) {
	subject, err := j.names.Erased(e.Session)
	if e.Redacted != nil {
		subject, err = j.names.Redacted(e.Session, e.Redacted.Seq)
	}
	if err != nil {
		return 0, err
	}
	data, err := json.Marshal(e)
	if err != nil {
		return 0, err
	}
	var ack *jetstream.PubAck
	err = j.conn.Repeat(ctx, subject, func(ctx context.Context) (err error) {
		ack, err = j.conn.JS.Publish(ctx, subject, data, jetstream.WithExpectLastSequence(after))
		return err
	})
	if natsio.IsConflict(err) {
		// The answer to an earlier attempt may have been lost.
		if last, seq, err := j.LastErasure(ctx); err == nil && seq == after+1 && last.Session == e.Session && last.Done == e.Done && last.Before == e.Before && last.Left == e.Left {
			return seq, nil
		}
		err = ErrOvertaken
	}
	if err != nil {
		return 0, fmt.Errorf("write the ledger of erased messages: %w", err)
	}
	return ack.Sequence, nil
}

// tombstones returns the sequence of the latest tombstone in the ledger of each session,
// and the ranges of the log that the ledger explains, in no order.
func (j *Journal) tombstones(ctx context.Context) (of map[string]uint64, explained []Hole, err error) {
	of = map[string]uint64{}
	_, err = j.scan(ctx, j.names.ErasedStream(), 1, func(m stored) error {
		var e Erasure
		if err := json.Unmarshal(m.data, &e); err != nil {
			return fmt.Errorf("entry %d: %w", m.seq, err)
		}
		of[e.Session] = max(of[e.Session], e.Tombstone)
		if !e.Done {
			for _, r := range e.Ranges {
				explained = append(explained, Hole{r[0], r[1]})
			}
		}
		return nil
	})
	if hasNoLedger(err) {
		return of, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the ledger of erased messages: %w", err)
	}
	return of, explained, nil
}

// ErasedSince calls fn with the session of every entry of the ledger from a sequence on, and
// returns the sequence from which the next call continues. It needs no consumer, which
// workers may not create. Any replica answers: the newest entries may come with a later call.
func (j *Journal) ErasedSince(ctx context.Context, from uint64, fn func(sid string)) (next uint64, err error) {
	next = max(from, 1)
	for m, err := range j.read(ctx, j.names.ErasedStream(), j.names.ErasedAll(), next, 0, false) {
		if err != nil {
			return from, fmt.Errorf("read the ledger of erased messages: %w", err)
		}
		if sid, err := j.names.ParseErased(m.subject); err == nil {
			fn(sid)
		}
		next = m.seq + 1
	}
	return next, nil
}

// lost returns how many messages of the log are missing that the ledger does not explain,
// as of its state. It asks for nothing if none is missing, or as many as when the last
// erasure was done.
func (j *Journal) lost(ctx context.Context, state jetstream.StreamState) (lost uint64, open *Erasure, err error) {
	missing := state.LastSeq - min(state.LastSeq, state.Msgs)
	if missing == j.erased.Load() {
		return 0, nil, nil
	}
	last, seq, err := j.LastErasure(ctx)
	switch {
	case err != nil:
		return 0, nil, err
	case seq == 0:
		return missing, nil, nil
	case last.Done:
		all := last.Before + last.Events()
		if missing == all {
			j.erased.Store(all)
		}
		return missing - min(missing, all), nil, nil
	}
	if missing, err = j.lostDuring(ctx, &last); err != nil {
		return 0, nil, err
	}
	return missing, &last, nil
}

// lostDuring is lost while an erasure is under way: the server's number of the session's
// messages tells how many of them are deleted by now.
func (j *Journal) lostDuring(ctx context.Context, e *Erasure) (uint64, error) {
	if e.Redacted != nil {
		return j.lostDuringOne(ctx, e)
	}
	filter, err := j.names.Session(e.Session)
	if err != nil {
		return 0, err
	}
	state, err := j.state(ctx, j.names.LogStream(), filter)
	if err != nil {
		return 0, err
	}
	there := uint64(0)
	for _, n := range state.Subjects {
		there += n
	}
	for m, err := range j.read(ctx, j.names.LogStream(), filter, e.Tombstone, state.LastSeq, true) {
		if err != nil {
			return 0, err
		}
		if m.seq >= e.Tombstone {
			there--
		}
	}
	explained := e.Before + e.Events() - min(e.Events(), there-min(there, e.Left))
	missing := state.LastSeq - min(state.LastSeq, state.Msgs)
	return missing - min(missing, explained), nil
}

// lostDuringOne is lostDuring for the erasure of one event.
func (j *Journal) lostDuringOne(ctx context.Context, e *Erasure) (uint64, error) {
	explained := e.Before
	_, err := j.leaderGet(ctx, j.names.LogStream(), getRequest{Seq: e.Redacted.Seq})
	switch {
	case errors.Is(err, natsio.ErrNotFound):
		explained++
	case err != nil:
		return 0, err
	}
	state, err := j.state(ctx, j.names.LogStream(), "")
	if err != nil {
		return 0, err
	}
	missing := state.LastSeq - min(state.LastSeq, state.Msgs)
	return missing - min(missing, explained), nil
}
