package journal

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/natsio"
)

// Redacted stands in the ledger for an event whose text was removed. Readers of the log
// yield it in the event's place, from the moment that the ledger has it.
type Redacted struct {
	Seq  uint64       `json:"seq"`
	Door session.Door `json:"door"`
	Time int64        `json:"time"` // Unix milliseconds
	// BLAKE2b-256 of the event, as session.LeafOf computes it.
	Leaf string `json:"leaf"`
	// SHA-256 of what the submission of a RunRequested must repeat; else absent.
	Content string `json:"content,omitempty"`
	// What the event has without its text (session.Redact), compressed with gzip.
	Payload []byte `json:"payload"`

	sid string
}

// redactedBytesMax is the largest payload of an event without its text.
const redactedBytesMax = 2 * session.EventBytesMax

// RedactedOf returns the entry of an event without its text.
func RedactedOf(e session.Event) (*Redacted, error) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(e.Payload); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	r := &Redacted{Seq: e.Seq, Door: e.Door, Time: e.Time, Leaf: e.Original.Leaf.String(), Payload: packed.Bytes()}
	if e.Original.Content != (codec.Hash{}) {
		r.Content = e.Original.Content.String()
	}
	return r, nil
}

// event returns the event without its text.
func (r *Redacted) event() (e session.Event, err error) {
	e = session.Event{Session: r.sid, Door: r.Door, Seq: r.Seq, Time: r.Time, Original: new(session.Original)}
	if e.Original.Leaf, err = codec.ParseHash(r.Leaf); err == nil && r.Content != "" {
		e.Original.Content, err = codec.ParseHash(r.Content)
	}
	if err == nil {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(r.Payload)); err == nil {
			e.Payload, err = io.ReadAll(io.LimitReader(z, redactedBytesMax))
		}
	}
	if err != nil {
		return session.Event{}, fmt.Errorf("event %d in the ledger of erased messages: %w", r.Seq, err)
	}
	return e, nil
}

// redactions are the events whose text was removed that a process knows, by their
// sequences. They are few, and read from the leader again when the ledger has more.
type redactions struct {
	mu      sync.Mutex
	next    uint64      // of the ledger: entries from there on are not read
	known   []*Redacted // by sequence
	missing uint64      // messages that the log lacked when count read them
}

// read reads the entries that the ledger has got since the last read.
func (r *redactions) read(ctx context.Context, j *Journal) error {
	last, err := j.lastOn(ctx, j.names.ErasedStream(), j.names.RedactedAll())
	if hasNoLedger(err) {
		return nil
	}
	if err != nil || last.seq < max(r.next, 1) {
		return err
	}
	for m, err := range j.read(ctx, j.names.ErasedStream(), j.names.RedactedAll(), r.next, last.seq, true) {
		var e Erasure
		if err == nil {
			err = json.Unmarshal(m.data, &e)
		}
		if err != nil {
			return fmt.Errorf("read the ledger of erased messages: %w", err)
		}
		r.next = m.seq + 1
		if e.Redacted == nil {
			continue
		}
		e.Redacted.sid = e.Session
		if at, found := r.search(e.Redacted.Seq); !found {
			r.known = slices.Insert(r.known, at, e.Redacted)
		}
	}
	return nil
}

func (r *redactions) search(seq uint64) (int, bool) {
	return slices.BinarySearchFunc(r.known, seq, func(k *Redacted, seq uint64) int { return cmp.Compare(k.Seq, seq) })
}

// of returns the redacted events of a part of the log, in order.
func (r *redactions) of(ctx context.Context, j *Journal, p part) (events []session.Event, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.read(ctx, j); err != nil {
		return nil, err
	}
	at, _ := r.search(p.from)
	for ; at < len(r.known) && (p.to == 0 || r.known[at].Seq <= p.to); at++ {
		k := r.known[at]
		if k.sid != p.sid || p.door != "" && k.Door != p.door {
			continue
		}
		e, err := k.event()
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// at returns the redacted event at a sequence. If there is none, the error is ErrNotFound.
func (r *redactions) at(ctx context.Context, j *Journal, seq uint64) (session.Event, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.read(ctx, j); err != nil {
		return session.Event{}, err
	}
	at, found := r.search(seq)
	if !found {
		return session.Event{}, natsio.ErrNotFound
	}
	return r.known[at].event()
}

// all returns all redacted events.
func (r *redactions) all(ctx context.Context, j *Journal) ([]*Redacted, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.read(ctx, j)
	return slices.Clone(r.known), err
}

// count returns how many events of a session are redacted, given how many messages the log
// lacks. It reads the ledger only if that is another number than before.
func (r *redactions) count(ctx context.Context, j *Journal, sid string, missing uint64) (n uint64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if missing != r.missing {
		if err := r.read(ctx, j); err != nil {
			return 0, err
		}
		r.missing = missing
	}
	for _, k := range r.known {
		if k.sid == sid {
			n++
		}
	}
	return n, nil
}

// part is a part of the log that is read: the events of a session, through one door if
// door is not empty, from one sequence to another one (0: no end), and at most `most` of
// them if some is set.
type part struct {
	sid      string
	door     session.Door
	from, to uint64
	most     uint64
	some     bool
}

// withRedacted yields the events of a read of a part of the log, and between them those
// whose text was removed. It asks the ledger once, and not if the only event is the one at
// p.to: the latest event of a session, as its lane has acknowledged it, is never redacted,
// and stands before it.
func (j *Journal) withRedacted(ctx context.Context, p part, events iter.Seq2[session.Event, error]) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		if p.some && p.most == 0 {
			return
		}
		var redacted []session.Event
		given, looked := uint64(0), p.from <= 1 // a session has always an event that is not redacted
		give := func(e session.Event, err error) bool {
			given++
			return yield(e, err) && (!p.some || given < p.most)
		}
		giveUpTo := func(seq uint64) bool {
			for ; len(redacted) > 0 && redacted[0].Seq <= seq; redacted = redacted[1:] {
				if !give(redacted[0], nil) {
					return false
				}
			}
			return true
		}
		for e, err := range events {
			if given == 0 && err == nil && e.Seq != p.to {
				looked = true
				redacted, err = j.redacted.of(ctx, j, p)
			}
			if err != nil {
				yield(session.Event{}, err)
				return
			}
			is := slices.ContainsFunc(redacted, func(r session.Event) bool { return r.Seq == e.Seq }) // it is being erased
			if !giveUpTo(e.Seq) || !is && !give(e, nil) {
				return
			}
		}
		if given == 0 && !looked {
			var err error
			if redacted, err = j.redacted.of(ctx, j, p); err != nil {
				yield(session.Event{}, err)
				return
			}
		}
		giveUpTo(p.end())
	}
}

// end returns the last sequence of the part.
func (p *part) end() uint64 {
	if p.to == 0 {
		return 1<<64 - 1
	}
	return p.to
}
