package journal

import (
	"context"
	"errors"
	"iter"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// Limits of one batch of a direct read. They are small enough that the server does not
// disconnect a briefly slow client.
const (
	batchMsgsMax  = 512
	batchBytesMax = 4 << 20
)

// aloneMax is how many messages are read one by one before a batch.
//
// For a batch the server counts the remaining messages first. At the beginning of a
// stream it knows that number; in the middle it loads that block of the log and scans
// every message in it. For a batch larger than the rest, it also searches the log to its
// end for more. For a single message it searches from the previous one on. So single
// reads are cheaper for a few messages, and for the first ones of a read from the middle.
const aloneMax = 8

// errBrokenBatch means that messages of a batch were lost in transit. The rest is
// requested again.
const errBrokenBatch = natsio.Retryable("a batch of messages arrived with gaps")

// read yields the messages of a stream that match filter, with sequences from from to
// to (0: no end), in order and without gaps. Any replica answers, in batches; the read
// ends early if the replica lags. With leader, the stream's leader is then asked for
// more, so that every message acknowledged before the call is read.
func (j *Journal) read(ctx context.Context, stream, filter string, from, to uint64, leader bool) iter.Seq2[stored, error] {
	return func(yield func(stored, error) bool) {
		r := reading{journal: j, stream: stream, filter: filter, next: max(from, 1), to: to, size: batchMsgsMax, yield: yield}
		switch {
		case filter == ">":
		case from > 1:
			r.alone, r.size = aloneMax, 0
		default:
			r.size = 1 // the answer has the number of remaining messages
		}
		r.run(ctx, leader)
	}
}

// readNext yields at most n messages, as read does without leader, with one request
// each.
func (j *Journal) readNext(ctx context.Context, stream, filter string, from, to uint64, n int) iter.Seq2[stored, error] {
	return func(yield func(stored, error) bool) {
		r := reading{journal: j, stream: stream, filter: filter, next: max(from, 1), to: to, alone: n, known: true, yield: yield}
		if n > 0 {
			r.run(ctx, false)
		}
	}
}

// lasts yields the last message on each of these subjects with a sequence of at most
// to (0: the newest), in the order of the stream. Any replica answers.
func (j *Journal) lasts(ctx context.Context, stream string, subjects []string, to uint64) iter.Seq2[stored, error] {
	return func(yield func(stored, error) bool) {
		r := reading{journal: j, stream: stream, lasts: subjects, next: 1, to: to, size: batchMsgsMax, yield: yield}
		for len(subjects) > 0 && r.direct(ctx) && r.more && !r.ended {
		}
	}
}

type reading struct {
	journal *Journal
	stream  string
	filter  string
	lasts   []string // instead of filter: the last message up to `to` on each of these subjects is read
	next    uint64   // sequence to continue from
	to      uint64
	yield   func(stored, error) bool
	size    int  // of the next batch; 0: a single message, without a batch
	alone   int  // messages still to read singly
	known   bool // no more than alone remain
	more    bool // the replica has more
	ended   bool // past to, or yield returned false
}

// run reads until no message is left, or yield returns false.
func (r *reading) run(ctx context.Context, leader bool) {
	for !r.ended && (r.to == 0 || r.next <= r.to) {
		if !r.direct(ctx) || r.ended {
			return
		}
		if r.more {
			continue
		}
		if !leader {
			return
		}
		m, err := r.afterEnd(ctx)
		if errors.Is(err, natsio.ErrNotFound) {
			return
		}
		if err != nil {
			r.yield(stored{}, err)
			return
		}
		r.deliver(m)
	}
}

// afterEnd returns the next message, which a replica did not have; ErrNotFound: there is
// none. It first asks for the last one, which the leader finds by its subject. To find that
// no other one comes, it would look at every message from here to the end of the block
// (BenchmarkReadSession: 13.2 ms of processor time for a session instead of 0.9).
func (r *reading) afterEnd(ctx context.Context) (stored, error) {
	last, err := r.journal.leaderGet(ctx, r.stream, getRequest{LastFor: r.filter})
	if err == nil && last.seq < r.next {
		err = natsio.ErrNotFound
	}
	if err != nil {
		return stored{}, err
	}
	return r.journal.leaderGet(ctx, r.stream, getRequest{Seq: r.next, NextFor: r.filter})
}

// deliver yields one message, which is a single one if size is 0.
func (r *reading) deliver(m stored) {
	if r.size == 0 {
		r.alone--
		if r.more = r.alone > 0 || !r.known; r.alone <= 0 {
			r.size = batchMsgsMax
		}
	}
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
	subject := r.journal.directSubject(r.stream)
	err := r.journal.conn.Repeat(ctx, subject, func(ctx context.Context) error {
		err := r.batch(ctx, subject)
		if errors.Is(err, nats.ErrNoResponders) {
			return r.journal.whyNoStream(ctx, r.stream, err)
		}
		return err
	})
	if err != nil && !r.ended {
		r.yield(stored{}, err)
		return false
	}
	return true
}

// batch requests one batch and yields its messages. Each message has the sequence of
// the one before it, and the end mark that of the last, so a lost message is detected.
func (r *reading) batch(ctx context.Context, subject string) error {
	request := getRequest{Seq: r.next, NextFor: r.filter, Batch: r.size, MaxBytes: batchBytesMax}
	if r.lasts != nil {
		request.MultiLast, request.UpToSeq = r.lasts, r.to
	}
	reply, msgs, done, err := r.journal.conn.Await(r.size + 2)
	if err != nil {
		return err
	}
	defer done()
	alone := r.size == 0
	if err := r.journal.conn.NC.PublishRequest(subject, reply, request.body()); err != nil {
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
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			r.more = false
			return nil
		case errors.Is(err, errHidden) && r.lasts == nil:
			return r.hidden(ctx)
		case err != nil:
			return err
		}
		if alone {
			r.deliver(m)
			return nil
		}
		if previous, ok := headerNumber(msg, subjects.HeaderLastSequence); !ok || previous != last {
			return errBrokenBatch
		}
		if end {
			pending, _ := headerNumber(msg, subjects.HeaderNumPending)
			r.more = pending > 0
			r.size = int(min(max(pending, 1), batchMsgsMax))
			if r.more && pending <= aloneMax && r.lasts == nil {
				r.size, r.alone, r.known = 0, int(pending), true
			}
			return nil
		}
		last = m.seq
		if r.deliver(m); r.ended {
			return nil
		}
	}
}

// hidden yields the next message from the leader, whose answer has the sequence outside
// of the message. Later messages are requested again.
func (r *reading) hidden(ctx context.Context) error {
	m, err := r.journal.leaderGet(ctx, r.stream, getRequest{Seq: r.next, NextFor: r.filter})
	if errors.Is(err, natsio.ErrNotFound) { // it was the end mark, of a server that formats it differently
		r.more = false
		return nil
	}
	if err == nil {
		r.more = true
		r.deliver(m)
	}
	return err
}
