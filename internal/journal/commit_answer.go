package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// acked is what the server says to a pending publish.
type acked struct {
	seq       uint64 // of the message; of a batch: of its last one
	duplicate bool
	err       error // whatever it is, but no error that the write itself made
}

// readAnswer reads a publish acknowledgement of a stream.
func readAnswer(m *nats.Msg, stream string) acked {
	if len(m.Data) == 0 && m.Header.Get(subjects.HeaderStatus) == natsio.StatusNoResponders {
		return acked{err: jetstream.ErrNoStreamResponse}
	}
	if seq, usual := readUsual(m.Data, stream); usual {
		return acked{seq: seq}
	}
	var ack struct {
		Stream    string              `json:"stream"`
		Sequence  uint64              `json:"seq"`
		Duplicate bool                `json:"duplicate"`
		Error     *jetstream.APIError `json:"error"`
	}
	switch err := json.Unmarshal(m.Data, &ack); {
	case err != nil:
		return acked{err: fmt.Errorf("the acknowledgement does not parse: %w", err)}
	case ack.Error != nil:
		return acked{err: ack.Error}
	case ack.Stream == "" || ack.Sequence == 0:
		return acked{err: fmt.Errorf("the acknowledgement %q names no message", m.Data)}
	}
	return acked{seq: ack.Sequence, duplicate: ack.Duplicate}
}

// readUsual reads the usual acknowledgement, without reflection:
// {"stream":"NAME","seq":12}
func readUsual(data []byte, stream string) (seq uint64, ok bool) {
	rest, one := bytes.CutPrefix(data, []byte(`{"stream":"`))
	rest, two := bytes.CutPrefix(rest, []byte(stream))
	rest, three := bytes.CutPrefix(rest, []byte(`","seq":`))
	digits, end := bytes.CutSuffix(rest, []byte("}"))
	if !one || !two || !three || !end {
		return 0, false
	}
	seq, err := strconv.ParseUint(string(digits), 10, 64)
	return seq, err == nil && seq > 0
}

// hear takes an answer of the server.
func (s *committerLoop) hear(m *nats.Msg) {
	number, err := strconv.ParseUint(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:], 10, 64)
	p := s.pending.at(number)
	if err != nil || p == nil {
		return // it was sent again since; that answer counts
	}
	if len(m.Data) == 0 && m.Header.Get(subjects.HeaderStatus) == "" {
		return // the server has the first message of a batch
	}
	a := readAnswer(m, s.stream)
	if a.err == nil && a.seq <= p.last {
		// It may be what was said to another one of this slot. Under a new number
		// what is said is about this one.
		f := s.finish(number, 0)
		s.requeue(f.all())
		return
	}
	s.answered(number, a)
}

// answered gives the writes of a pending publish their outcomes, or sees to it that
// they get one.
func (s *committerLoop) answered(number uint64, a acked) {
	stored := uint64(0)
	if a.err == nil {
		s.wait = 0
		if !a.duplicate {
			stored = a.seq
		}
	}
	f := s.finish(number, stored)
	w := f.one
	switch {
	case a.err == nil && w != nil:
		w.seq, w.duplicate = a.seq, a.duplicate
		s.settle(w)
	case a.err == nil:
		for i, w := range f.batch {
			w.seq, w.duplicate = a.seq-uint64(len(f.batch)-1-i), a.duplicate
			s.settle(w)
		}
	case w == nil:
		s.rejected(f.batch, a.err)
	case w.fenced && natsio.IsConflict(a.err), errors.Is(a.err, jetstream.ErrNoStreamResponse):
		s.look(f.all(), a.err)
	case natsio.IsTransient(a.err):
		s.unknown(f.all())
	default:
		w.err = s.failed(w, a.err)
		s.settle(w)
	}
}

// unknown sends writes again, a little later.
func (s *committerLoop) unknown(writes []*write) {
	s.requeue(writes)
	s.pause()
}

// rejected takes the rejection of a batch, of which nothing is stored (or all
// of it, when the answer was lost). Names that are taken are looked at, and the
// rest goes out as a batch again. What no batch takes goes out one by one, and
// hears what is wrong with it.
func (s *committerLoop) rejected(writes []*write, err error) {
	for _, w := range writes {
		w.rejected++
	}
	switch {
	case natsio.IsConflict(err), errors.Is(err, jetstream.ErrNoStreamResponse):
		s.look(writes, err)
		return
	case natsio.IsTransient(err):
		// What has an id would be called a duplicate in a batch.
		for _, w := range writes {
			w.alone = w.alone || !w.fenced
		}
		s.unknown(writes)
		return
	case natsio.CodeOf(err) == natsio.CodeBatchesOpen, natsio.CodeOf(err) == natsio.CodeNoBatches:
		s.noBatch = time.Now().Add(noBatchFor)
	default:
		for _, w := range writes {
			w.alone = true
		}
	}
	s.requeue(writes)
}

// noBatchFor is how long single messages are sent after the server had no room
// for another batch.
const noBatchFor = time.Second

// failed returns the error of a write that the server refuses for good.
func (s *committerLoop) failed(w *write, err error) error {
	return natsio.Typed(s.journal.conn.PayloadError(err, w.subject, len(w.data)))
}

// look finds out, beside the committer's goroutine, what became of writes:
// whether names are taken, by what, and whether the stream is there at all.
// Until then nothing else of their orders is sent.
func (s *committerLoop) look(writes []*write, cause error) {
	s.looking++
	for _, w := range writes {
		if w.order != "" {
			s.busy[w.order] = true
		}
	}
	go func() {
		l := s.journal.look(s.stream, writes, cause)
		select {
		case s.looked <- l:
		case <-s.end:
		}
	}()
}

// take takes what a look came to.
func (s *committerLoop) take(l lookup) {
	s.looking--
	for _, w := range slices.Concat(l.again, l.done) {
		s.free(w.order)
	}
	for _, w := range l.again {
		w.alone = w.alone || w.rejected >= rejectedMax
	}
	s.requeue(l.again)
	for _, w := range l.done {
		s.settle(w)
	}
	if l.pause {
		s.pause()
	}
}

// looksAtOnce is how many names are read at the same time.
const looksAtOnce = 32

// look reads from the leader what fenced names hold. One that holds nothing, or what is
// to be replaced, is free: another write was in flight and is not stored. But one that is found to be
// taken and to hold nothing several times can't be read.
func (j *Journal) look(stream string, writes []*write, cause error) (l lookup) {
	ctx, cancel := context.WithTimeout(context.Background(), natsio.RequestTimeout)
	defer cancel()
	if errors.Is(cause, jetstream.ErrNoStreamResponse) {
		cause = j.whyNoStream(ctx, stream, cause)
		if natsio.IsTransient(cause) {
			return lookup{again: writes, pause: true}
		}
		for _, w := range writes {
			w.err = natsio.Typed(cause)
		}
		return lookup{done: writes}
	}
	found := make([]bool, len(writes))
	room := make(chan struct{}, looksAtOnce)
	var looking sync.WaitGroup
	for i, w := range writes {
		if !w.fenced {
			continue
		}
		room <- struct{}{}
		looking.Go(func() {
			defer func() { <-room }()
			m, err := j.leaderGet(ctx, stream, getRequest{LastFor: w.subject})
			switch {
			case errors.Is(err, natsio.ErrNotFound), err != nil && ctx.Err() != nil, err == nil && w.after > 0 && m.seq == w.after:
			case err != nil:
				w.err, found[i] = err, true
			default:
				w.seq, w.existing, found[i] = m.seq, m.data, true
			}
		})
	}
	looking.Wait()
	if w := writes[0]; len(writes) == 1 && !found[0] && ctx.Err() == nil && natsio.IsTaken(cause) {
		if w.unread++; w.unread == unreadMax {
			w.err, found[0] = &UnreadableError{Stream: stream, Subject: w.subject, Err: cause}, true
		}
	}
	l.pause = len(writes) == 1 && !found[0] || ctx.Err() != nil
	for i, w := range writes {
		if found[i] {
			l.done = append(l.done, w)
		} else {
			l.again = append(l.again, w)
		}
	}
	return l
}
