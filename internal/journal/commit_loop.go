package journal

import (
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// committerLoop is the state of a committer's goroutine.
type committerLoop struct {
	*committer
	inbox       string
	answers     chan *nats.Msg
	pending     pendings
	outstanding int      // writes sent and not answered
	message     nats.Msg // reused for every write: the connection keeps no reference

	taken  []*write            // taken from the queue, in order; some are held back
	ready  []*write            // in order; to be sent
	orders map[string][]*write // orders with a write that is pending or looked up; later writes of each
	unsent []*pending          // could not be sent
	wait   time.Duration       // current backoff; 0: none
	until  time.Time           // nothing is sent before
	next   time.Time           // no group is sent before
	early  bool                // writes are ready, and next is in the future

	lookups   chan lookup // results
	lookingUp int
	noBatch   time.Time // no batch before: the server has no room for one, or the stream allows none
	denied    chan *natsio.PermissionError
	reset     chan struct{}
	timeouts  *time.Ticker
}

func newCommitterLoop(c *committer) *committerLoop {
	return &committerLoop{
		committer: c, pending: pendings{open: make(map[uint64]*pending)}, message: nats.Msg{Header: make(nats.Header)},
		orders: make(map[string][]*write), lookups: make(chan lookup, 16),
		denied: make(chan *natsio.PermissionError, 16), reset: make(chan struct{}, 1),
	}
}

// run sends the queue until the committer is closed.
func (c *committer) run() {
	s := newCommitterLoop(c)
	var sub *nats.Subscription
	var err error
	if s.inbox, sub, s.answers, err = c.journal.conn.SubscribeReplies(2 * writesMax); err != nil {
		c.close() // the connection is closed
		return
	}
	defer sub.Unsubscribe()
	defer c.journal.conn.Listen(s.denied, s.reset)()
	s.timeouts = time.NewTicker(natsio.RequestTimeout / 5)
	defer s.timeouts.Stop()
	for {
		s.yield()
		s.send()
		select {
		case <-c.ended.Done():
			return
		case <-s.queued():
		case m := <-s.answers:
			s.receive(m)
			for range len(s.answers) { // this is the only receiver
				s.receive(<-s.answers)
			}
		case l := <-s.lookups:
			s.finishLookup(l)
		case p := <-s.denied:
			s.deny(p)
		case <-s.reset:
			// The server may have another sync_interval now.
			s.pace = pace{}
			s.wait, s.until = 0, time.Time{} // the backoff was for the lost connection
			s.retryUnanswered(0)
		case <-s.pausing():
			s.until = time.Time{}
		case <-s.timeouts.C:
			s.dropEnded()
			s.retryUnanswered(natsio.RequestTimeout)
		}
	}
}

// queued returns the channel that signals new writes; nil while a group is pending,
// since nothing is sent before its answer.
func (s *committerLoop) queued() <-chan struct{} {
	if s.waits() {
		return nil
	}
	return s.work
}

// yieldRounds is how often yield yields. One yield is not enough: callers released by
// the last batch release others in turn. With 1,000 runs in flight a group of effects
// held 135 messages after three rounds, 170 after twelve, and no more after any number.
const yieldRounds = 12

// yield lets other runnable goroutines run first where messages go in groups: their
// writes join the next group, which under load is a fifth to a half larger. If no
// goroutine is runnable, yield returns at once.
func (s *committerLoop) yield() {
	if s.outstanding > 0 || s.pace.fast || time.Now().Before(s.next) {
		return
	}
	for range yieldRounds {
		runtime.Gosched()
	}
}

// pausing returns a channel that signals the end of a backoff, or of the gap before a
// ready group; nil if neither is awaited.
func (s *committerLoop) pausing() <-chan time.Time {
	until := s.until
	if until.IsZero() && s.early {
		until = s.next
	}
	if until.IsZero() {
		return nil
	}
	return time.After(time.Until(until))
}

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
	s.outstanding += len(writes)
	p := s.pending.add(s.inbox, writes...)
	p.nth = s.outstanding
	return p
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

// finish removes a pending publish that has its answer. A sample ends with its last
// answer, and without a result if the server has not stored all of its messages: a
// refusal needs no sync.
func (s *committerLoop) finish(p *pending, stored bool) {
	delete(s.pending.open, p.number)
	s.outstanding -= len(p.writes)
	if !stored {
		s.pace.sample = 0
	}
	if s.pace.sample > 0 && s.outstanding == 0 {
		s.pace.end(time.Now(), s.slowFrom)
	}
	if len(p.writes) == 1 {
		s.free(p.writes[0].order)
	}
}

// occupy makes later writes of an order wait until free.
func (s *committerLoop) occupy(order string) {
	if _, busy := s.orders[order]; order != "" && !busy {
		s.orders[order] = nil
	}
}

// free makes the later writes of an order ready.
func (s *committerLoop) free(order string) {
	later := s.orders[order]
	delete(s.orders, order)
	s.requeue(later)
}

// settle records that a write has its outcome. After a failure, later writes of its
// order and caller are not sent.
func (s *committerLoop) settle(w *write) {
	if w.of.left--; w.of.left == 0 {
		s.release(w.of) // first: the caller may need room at once
		close(w.of.done)
		if w.of.next != nil {
			w.of.next.signal()
		}
		if w.of.then != nil {
			w.of.then()
		}
	}
	if w.err == nil || w.order == "" {
		return
	}
	var after []*write
	s.ready = slices.DeleteFunc(s.ready, func(o *write) bool {
		follows := o.order == w.order && o.of == w.of
		if follows {
			o.err = errOrder
			after = append(after, o)
		}
		return follows
	})
	for _, o := range after {
		o.order = "" // no recursion: after has them all
		s.settle(o)
	}
}

// requeue puts writes first among the ready ones.
func (s *committerLoop) requeue(writes []*write) { s.ready = slices.Insert(s.ready, 0, writes...) }

// pause stops sending for a while, with exponential backoff until a write succeeds.
func (s *committerLoop) pause() {
	if !s.until.IsZero() {
		return
	}
	s.wait = min(max(2*s.wait, natsio.RetryWaitMin), natsio.RetryWaitMax)
	s.until = time.Now().Add(s.wait)
}

// retryUnanswered sends again, under the same names, the writes without an answer for
// d: they may be stored or not.
func (s *committerLoop) retryUnanswered(d time.Duration) {
	for _, p := range slices.Backward(s.pending.sentBy(time.Now().Add(-d))) {
		s.answered(p, acked{err: nats.ErrTimeout})
	}
}

// deny fails the writes that the server denied. Other writes of the same batch are
// sent again.
func (s *committerLoop) deny(p *natsio.PermissionError) {
	for _, pub := range s.pending.sentBy(time.Now()) {
		if !slices.ContainsFunc(pub.writes, func(w *write) bool { return s.journal.conn.Concerns(p, w.subject) }) {
			continue
		}
		s.finish(pub, false)
		var others []*write
		for _, w := range pub.writes {
			if p.Op == "publish" && w.subject != p.Subject {
				w.alone = true
				others = append(others, w)
				continue
			}
			w.err = p
			s.settle(w)
		}
		s.requeue(others)
	}
}
