package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// acked is the server's answer to a pending publish.
type acked struct {
	seq       uint64 // of the message; of a batch: of its last one
	duplicate bool
	domain    string // of the stream
	err       error
}

// readAnswer parses a publish acknowledgement of a stream.
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
		Domain    string              `json:"domain"`
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
	return acked{seq: ack.Sequence, duplicate: ack.Duplicate, domain: ack.Domain}
}

// readUsual parses the usual acknowledgement without reflection:
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

// receive handles an answer of the server.
func (s *committerLoop) receive(m *nats.Msg) {
	number, _ := strconv.ParseUint(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:], 10, 64)
	p := s.pending.open[number]
	if p == nil {
		return // the writes were sent again; the answer to that counts
	}
	if len(m.Data) == 0 && m.Header.Get(subjects.HeaderStatus) == "" {
		return // the server has the first message of a batch
	}
	a := readAnswer(m, s.stream)
	if a.err == nil && s.journal.conn.IsElsewhere(a.domain) {
		return // the stream of this name in another domain has stored it too
	}
	if a.err == nil && a.seq <= p.last {
		// It may answer the previous message on this reply subject. On a new subject
		// every answer is for this message.
		s.finish(p, false)
		s.requeue(p.writes)
		return
	}
	s.answered(p, a)
}

// answered gives the writes of a pending publish their outcomes, or looks them up or
// sends them again.
func (s *committerLoop) answered(p *pending, a acked) {
	s.finish(p, a.err == nil && !a.duplicate)
	w, single := p.writes[0], len(p.writes) == 1
	switch {
	case a.err == nil:
		s.wait = 0
		for i, w := range p.writes {
			w.seq, w.duplicate = a.seq-uint64(len(p.writes)-1-i), a.duplicate
			s.settle(w)
		}
		if single && !a.duplicate {
			s.pending.reuse(p, a.seq)
		}
	case !single:
		s.rejected(p.writes, a.err)
	case w.fenced && natsio.IsConflict(a.err), errors.Is(a.err, jetstream.ErrNoStreamResponse):
		s.lookUp(p.writes, a.err)
	case natsio.IsTransient(a.err):
		s.unknown(p.writes)
	default:
		w.err = natsio.Typed(s.journal.conn.PayloadError(a.err, w.subject, len(w.data)))
		s.settle(w)
	}
}

// unknown sends writes again after a pause.
func (s *committerLoop) unknown(writes []*write) {
	s.requeue(writes)
	s.pause()
}

// rejected handles the rejection of a batch. Nothing of it is stored, or all of it if
// an earlier answer was lost. Names that are taken are looked up, and the rest is sent
// as a batch again. Messages that the server accepts in no batch are sent one by one,
// and get an error each.
func (s *committerLoop) rejected(writes []*write, err error) {
	for _, w := range writes {
		w.rejected++
	}
	switch {
	case natsio.IsConflict(err), errors.Is(err, jetstream.ErrNoStreamResponse):
		s.lookUp(writes, err)
		return
	case natsio.IsTransient(err):
		// A write with an id could be a duplicate now, which fails a batch.
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

// lookup is the result of a lookup of the outcomes of writes.
type lookup struct {
	writes []*write
	pause  bool // writes without an outcome wait before they are sent again
}

// lookUp finds out in the background whether names are taken, by what, and whether the
// stream exists. Until then no other write of these orders is sent.
func (s *committerLoop) lookUp(writes []*write, cause error) {
	s.lookingUp++
	for _, w := range writes {
		s.occupy(w.order)
	}
	go func() {
		l := lookup{writes, s.journal.lookUp(s.stream, writes, cause)}
		select {
		case s.lookups <- l:
		case <-s.ended.Done():
		}
	}()
}

// finishLookup handles the result of a lookup. Writes without an outcome are sent
// again.
func (s *committerLoop) finishLookup(l lookup) {
	s.lookingUp--
	var again []*write
	for _, w := range l.writes {
		s.free(w.order)
		if !w.known() {
			w.alone = w.alone || w.rejected >= rejectedMax
			again = append(again, w)
		}
	}
	s.requeue(again)
	for _, w := range l.writes {
		if w.known() {
			s.settle(w)
		}
	}
	if l.pause {
		s.pause()
	}
}

// lookupsMax is how many names are read concurrently.
const lookupsMax = 32

// lookUp reads from the leader what fenced names hold, and reports whether the writes
// without an outcome must wait before they are sent again. A name that holds nothing, or
// the message to replace, is free: a concurrent write conflicted and was not stored. A
// name that unreadMax conflicts report as taken, and that holds nothing, is unreadable.
func (j *Journal) lookUp(stream string, writes []*write, cause error) (pause bool) {
	ctx, cancel := context.WithTimeout(context.Background(), natsio.RequestTimeout)
	defer cancel()
	if errors.Is(cause, jetstream.ErrNoStreamResponse) {
		if cause = j.whyNoStream(ctx, stream, cause); !natsio.IsTransient(cause) {
			for _, w := range writes {
				w.err = natsio.Typed(cause)
			}
		}
		return natsio.IsTransient(cause)
	}
	room := make(chan struct{}, lookupsMax)
	var reads sync.WaitGroup
	for _, w := range writes {
		if !w.fenced {
			continue
		}
		room <- struct{}{}
		reads.Go(func() {
			defer func() { <-room }()
			m, err := j.leaderGet(ctx, stream, getRequest{LastFor: w.subject})
			switch {
			case errors.Is(err, natsio.ErrNotFound), err != nil && ctx.Err() != nil, err == nil && w.after > 0 && m.seq == w.after:
			case err != nil:
				w.err = err
			default:
				w.seq, w.existing, w.foreign = m.seq, m.data, j.conn.IsForeign(m.header)
			}
		})
	}
	reads.Wait()
	w := writes[0]
	if len(writes) > 1 || w.known() || ctx.Err() != nil {
		return ctx.Err() != nil
	}
	if natsio.IsTaken(cause) {
		if w.unread++; w.unread == unreadMax {
			w.err = &UnreadableError{Stream: stream, Subject: w.subject, Err: cause}
		}
	}
	return !w.known()
}
