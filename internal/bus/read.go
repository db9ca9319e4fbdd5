package bus

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/subjects"
)

// One batch of a direct read: small enough that a client that is slow for a
// moment is not cut off.
const (
	batchMsgsMax  = 512
	batchBytesMax = 4 << 20
)

// errBrokenBatch says that messages of a batch were lost on the way; the rest
// is asked for again.
var errBrokenBatch = errors.New("a batch of messages arrived with gaps")

// read yields the messages of a stream that match filter, with sequences from
// from to to (0: no end), in order and without gaps. Any replica answers, in
// batches; a replica that is behind ends early. With leader, where the
// replicas end the stream's leader is asked whether there is more, so that all
// that was acknowledged before the call is read.
func (b *Bus) read(ctx context.Context, stream, filter string, from, to uint64, leader bool) iter.Seq2[stored, error] {
	return func(yield func(stored, error) bool) {
		r := reading{b: b, stream: stream, filter: filter, next: max(from, 1), to: to, size: batchMsgsMax, yield: yield}
		switch {
		case from == 0:
			r.size = 1 // who reads wants to know the beginning; the answer tells whether there is more
		case from > 1 && filter != "" && filter != ">":
			// Before a batch the server counts what is to come, from where it
			// begins: in mid-stream it loads that block of the log and looks at
			// every message in it. So the first message is asked for alone, and
			// the batch begins behind it, where the session goes on.
			r.size = 0
		}
		for !r.ended && (to == 0 || r.next <= to) {
			if !r.direct(ctx) || r.ended {
				return
			}
			if r.more {
				continue
			}
			if !leader {
				return
			}
			m, err := b.leaderGet(ctx, stream, getRequest{Seq: r.next, NextFor: filter})
			if errors.Is(err, ErrNotFound) {
				return
			}
			if err != nil {
				yield(stored{}, err)
				return
			}
			r.take(m)
		}
	}
}

// reading is how far a read has come.
type reading struct {
	b      *Bus
	stream string
	filter string
	next   uint64 // sequence to go on from
	to     uint64
	yield  func(stored, error) bool
	size   int  // of the next batch; 0: one message, without a batch
	more   bool // the replica had more than the batch
	ended  bool // past to, or the reader has enough
}

// take passes one message on.
func (r *reading) take(m stored) {
	if r.to != 0 && m.seq > r.to {
		r.ended = true
		return
	}
	r.next = m.seq + 1
	if !r.yield(m, nil) {
		r.ended = true
	}
}

// direct reads one batch; false means that an error was yielded.
func (r *reading) direct(ctx context.Context) bool {
	subject := r.b.directSubject(r.stream)
	err := r.b.repeat(ctx, subject, func(ctx context.Context) error {
		err := r.batch(ctx, subject)
		if errors.Is(err, nats.ErrNoResponders) {
			return r.b.whyNoStream(ctx, r.stream, err)
		}
		return err
	})
	if err != nil && !r.ended {
		r.yield(stored{}, err)
		return false
	}
	return true
}

// batch asks for one batch and passes it on. Each message tells the sequence
// of the one before it, and the end tells the last: so a lost one is seen.
func (r *reading) batch(ctx context.Context, subject string) error {
	body, err := json.Marshal(getRequest{Seq: r.next, NextFor: r.filter, Batch: r.size, MaxBytes: batchBytesMax})
	if err != nil {
		return err
	}
	reply, msgs, done, err := r.b.await(r.size + 2)
	if err != nil {
		return err
	}
	defer done()
	alone := r.size == 0
	r.size = batchMsgsMax
	if err := r.b.nc.PublishRequest(subject, reply, body); err != nil {
		return err
	}
	last := uint64(0)
	for {
		var msg *nats.Msg
		select {
		case msg = <-msgs:
		case <-ctx.Done():
			return ctx.Err()
		}
		m, end, err := parseDirect(msg)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			r.more = false
			return nil
		}
		if err != nil {
			return err
		}
		if alone {
			r.more = true // or the batch behind it tells
			r.take(m)
			return nil
		}
		if previous, ok := headerNumber(msg, subjects.HeaderLastSequence); !ok || previous != last {
			return errBrokenBatch
		}
		if end {
			pending, _ := headerNumber(msg, subjects.HeaderNumPending)
			r.more = pending > 0
			if r.more { // and no larger, or the server searches all behind the last one for another
				r.size = int(min(pending, batchMsgsMax))
			}
			return nil
		}
		last = m.seq
		if r.take(m); r.ended {
			return nil
		}
	}
}
