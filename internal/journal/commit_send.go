package journal

import (
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nuid"

	"github.com/refold/refold/subjects"
)

// send takes the queue, and sends the writes that may be sent now.
func (s *committerLoop) send() {
	s.mu.Lock()
	s.taken = append(s.taken, s.queue...)
	clear(s.queue)
	s.queue = s.queue[:0]
	s.mu.Unlock()
	s.releaseHeld()
	s.early = false
	if !s.until.IsZero() || len(s.ready) == 0 {
		return
	}
	s.sendReady()
	for _, p := range slices.Backward(s.unsent) {
		s.answered(p, acked{err: p.err})
	}
	s.unsent = s.unsent[:0]
}

// waits reports whether nothing is sent before pending writes are answered.
func (s *committerLoop) waits() bool { return s.outstanding > 0 && !s.pace.fast }

// sendReady sends the ready writes that may be sent. If single messages are fast, a
// write waits only for its order. Otherwise writes that arrive while a group is pending
// form the next one.
func (s *committerLoop) sendReady() {
	if s.early = s.waitsForGap(); s.early || s.waits() {
		return
	}
	if s.pace.fast {
		s.sendEach(false, writesMax)
		return
	}
	if s.lookingUp > 0 {
		return
	}
	alone := slices.ContainsFunc(s.ready, func(w *write) bool { return w.alone })
	if alone || len(s.ready) < batchLeast || time.Now().Before(s.noBatch) {
		s.sendSample(alone, writesMax)
		return
	}
	if s.gap == 0 && s.pace.takesSample() {
		s.sendSample(false, sampleMost)
		return
	}
	n, bytes := 0, 0
	for n < len(s.ready) && n < batchMost && bytes < batchBytesMost {
		bytes += s.ready[n].bytes()
		n++
	}
	s.sendBatch(s.ready[:n])
	s.ready = slices.Delete(s.ready, 0, n)
}

// dropEnded ends the unsent writes whose caller has given up, so that other writes get
// their room. Such a write may have been sent before.
func (s *committerLoop) dropEnded() {
	var ended []*write
	isEnded := func(w *write) bool {
		if w.of.ctx.Err() == nil {
			return false
		}
		ended = append(ended, w)
		return true
	}
	s.taken, s.ready = slices.DeleteFunc(s.taken, isEnded), slices.DeleteFunc(s.ready, isEnded)
	for order := range s.orders {
		s.orders[order] = slices.DeleteFunc(s.orders[order], isEnded)
	}
	for _, w := range ended {
		w.err = w.of.unknown()
		w.order = "" // later writes of its order and caller are in ended too
		s.settle(w)
	}
}

// sendSample is sendEach while nothing is pending.
func (s *committerLoop) sendSample(alone bool, most int) {
	now := time.Now()
	if s.sendEach(alone, most); s.outstanding > 0 {
		s.pace.begin(s.outstanding, now)
	}
}

// sendEach sends single messages until most are outstanding. Of one order it sends the
// first, and the next when that has its outcome. With alone it sends only the writes
// that are not sent in batches.
func (s *committerLoop) sendEach(alone bool, most int) {
	ready := s.ready // settle changes s.ready
	s.ready = nil
	rest := ready[:0]
	for _, w := range ready {
		later, busy := s.orders[w.order]
		switch {
		case w.of.ctx.Err() != nil:
			w.err = w.of.unknown() // it may have been sent before
			s.settle(w)
		case busy:
			s.orders[w.order] = append(later, w)
		case alone && !w.alone, s.outstanding >= most:
			rest = append(rest, w)
		default:
			s.occupy(w.order)
			p := s.add(w)
			if p.err = s.publish(w, p.reply); p.err != nil {
				s.unsent = append(s.unsent, p)
			}
		}
	}
	clear(ready[len(rest):])
	s.ready = rest
}

// sendBatch sends messages that are stored together or not at all. The last one has
// a reply subject for the acknowledgement, and the first one for the refusal of a
// server that has no room for a batch.
func (s *committerLoop) sendBatch(group []*write) {
	p, id := s.add(group...), nuid.Next()
	for i, w := range group {
		h, reply := []string{subjects.HeaderBatchID, id, subjects.HeaderBatchSequence, strconv.Itoa(i + 1)}, ""
		if i == 0 || i == len(group)-1 {
			reply = p.reply
		}
		if i == len(group)-1 {
			h = append(h, subjects.HeaderBatchCommit, "1")
		}
		if p.err = s.publish(w, reply, h...); p.err != nil {
			s.unsent = append(s.unsent, p)
			return
		}
	}
}

// add makes writes pending.
func (s *committerLoop) add(writes ...*write) *pending {
	if s.outstanding == 0 {
		s.pace.from = time.Now()
	}
	s.outstanding += len(writes)
	return s.pending.add(s.inbox, writes...)
}

// publish sends one message with its own headers and more (names and values).
func (s *committerLoop) publish(w *write, reply string, more ...string) error {
	m := &s.message
	m.Subject, m.Reply, m.Data = w.subject, reply, w.data
	clear(m.Header)
	if w.fenced {
		m.Header.Set(subjects.HeaderExpectLastSubject, strconv.FormatUint(w.after, 10))
	}
	for _, headers := range [...][]string{w.headers, more} {
		for i := 0; i < len(headers); i += 2 {
			m.Header.Set(headers[i], headers[i+1])
		}
	}
	s.journal.conn.Stamp(m.Header)
	return s.journal.conn.NC.PublishMsg(m)
}
