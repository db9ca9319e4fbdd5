package journal

import (
	"runtime"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/internal/natsio"
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
	frees  *committer          // it may send what it held back for writes that have their outcomes now; nil: none may

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
	c.handling.Lock()
	c.loop = s
	for {
		s.yield()
		s.send()
		if s.frees != nil {
			s.frees.sendNow()
			s.frees = nil
		}
		queued, pausing := s.queued(), s.pausing()
		c.handling.Unlock()
		select {
		case <-c.ended.Done():
			return
		case <-queued:
			c.handling.Lock()
		case m := <-s.answers:
			c.handling.Lock()
			s.receive(m)
			for range len(s.answers) { // this is the only receiver
				s.receive(<-s.answers)
			}
		case l := <-s.lookups:
			c.handling.Lock()
			s.finishLookup(l)
		case p := <-s.denied:
			c.handling.Lock()
			s.deny(p)
		case <-s.reset:
			c.handling.Lock()
			// The server may have another sync_interval now.
			s.pace = pace{}
			s.wait, s.until = 0, time.Time{} // the backoff was for the lost connection
			s.retryUnanswered(0)
		case <-pausing:
			c.handling.Lock()
			s.until = time.Time{}
		case <-s.timeouts.C:
			c.handling.Lock()
			s.dropEnded()
			s.retryUnanswered(natsio.RequestTimeout)
		}
	}
}

// sendNow sends what may be sent, in the caller's goroutine. If the committer's own is at
// work, or has to wait for a time, that one does it.
func (c *committer) sendNow() {
	if !c.handling.TryLock() {
		c.signal()
		return
	}
	defer c.handling.Unlock()
	s := c.loop
	if s == nil {
		return // nothing was queued yet
	}
	if s.send(); s.early || !s.until.IsZero() {
		c.signal()
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

// finish removes a pending publish that has its answer. A sample ends with its last
// answer, and without a result if the server has not stored all of its messages: a
// refusal needs no sync.
func (s *committerLoop) finish(p *pending, stored bool) {
	delete(s.pending.open, p.number)
	s.outstanding -= len(p.writes)
	if !stored {
		s.pace.sample = 0
	}
	switch {
	case s.pace.fast && len(p.writes) == 1:
		s.pace.answered(s.outstanding, time.Now(), s.slowFrom)
	case s.pace.sample > 0 && s.outstanding == 0:
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
			s.frees = w.of.next
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
