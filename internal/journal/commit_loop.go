package journal

import (
	"fmt"
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
	pending     pendingPublishes
	message     messageBuffer
	outstanding int // writes sent and not answered

	settled, settledBytes int // writes that have their outcome since makeRoom

	ready  []*write            // taken from the queue, in order; to be sent
	busy   map[string]bool     // orders of which one is pending or looked up
	held   map[string][]*write // those of busy orders that were next, not looked at until they are free
	unsent []uint64            // numbers of those that could not be sent
	wait   time.Duration       // backoff after a trouble; 0: none
	until  time.Time           // nothing is sent before
	next   time.Time           // no group is sent before
	early  bool                // something is ready, and it is not

	looked   chan lookup // what lookups came to
	looking  int
	noBatch  time.Time // no batch before: all slots are taken, or the stream takes none
	denied   chan *natsio.PermissionError
	reset    chan struct{}
	timeouts *time.Ticker
}

// lookup is what became of writes whose outcome had to be looked up.
type lookup struct {
	done  []*write // have their outcome
	again []*write // go out again
	pause bool     // a little later
}

// run sends what is queued, until the committer is closed.
func (c *committer) run() {
	s := &committerLoop{
		committer: c, busy: make(map[string]bool), held: make(map[string][]*write), looked: make(chan lookup, 16),
		denied: make(chan *natsio.PermissionError, 16), reset: make(chan struct{}, 1), timeouts: time.NewTicker(natsio.RequestTimeout / 5),
	}
	defer s.timeouts.Stop()
	var sub *nats.Subscription
	for {
		var err error
		if s.inbox, sub, s.answers, err = c.journal.conn.SubscribeReplies(2 * commitWritesMax); err == nil {
			break
		}
		select { // the connection is closed, or about to be
		case <-c.end:
			return
		case <-time.After(natsio.RetryWaitMax):
		}
	}
	defer natsio.Unsubscribe(sub)
	defer c.journal.conn.Listen(s.denied, s.reset)()
	for {
		s.makeRoom()
		s.yield()
		s.send()
		select {
		case <-c.end:
			return
		case <-c.work:
		case m := <-s.answers:
			s.hear(m)
			for range len(s.answers) { // nobody else takes any
				s.hear(<-s.answers)
			}
		case l := <-s.looked:
			s.take(l)
		case p := <-s.denied:
			s.deny(p)
		case <-s.reset:
			s.wait, s.until = 0, time.Time{} // without a connection nothing could be sent
			s.again(0)
		case <-s.pausing():
			s.until = time.Time{}
		case <-s.timeouts.C:
			s.dropEnded()
			s.again(natsio.RequestTimeout)
		}
	}
}

// yieldRounds is how often others go first. One yield is not enough: callers released
// by the last batch release others in turn. With 1,000 runs in flight groups of effects
// held 135 messages after three rounds, 170 after twelve, and no more after any number.
const yieldRounds = 12

// yield lets everybody else who could run now go first, where a sync costs
// more than that: what they have to store goes with the next group, which under
// load holds a fifth to a half more. Where nobody could run, nothing is waited
// for.
func (s *committerLoop) yield() {
	if s.outstanding > 0 || !s.pace.groups || time.Now().Before(s.next) {
		return
	}
	for range yieldRounds {
		runtime.Gosched()
	}
}

// pausing returns a channel that tells the end of a backoff, or when a group that
// is ready may be sent; nil if nothing waits for that.
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

// send sends what may be sent now.
func (s *committerLoop) send() {
	s.mu.Lock()
	s.ready = append(s.ready, s.queue...)
	clear(s.queue)
	s.queue = s.queue[:0]
	s.awaitingAck, s.early = s.waits(), false
	s.mu.Unlock()
	if !s.until.IsZero() || len(s.ready) == 0 {
		return
	}
	s.sendReady()
	for _, number := range slices.Backward(s.unsent) {
		s.answered(number, acked{err: s.pending.at(number).err})
	}
	s.unsent = s.unsent[:0]
	s.mu.Lock()
	s.awaitingAck = s.waits()
	s.mu.Unlock()
}

// waits reports whether a group is pending, or a burst that is measured, so that
// nothing is sent before its answer, whatever is queued.
func (s *committerLoop) waits() bool { return s.outstanding > 0 && (s.pace.groups || s.pace.sent > 0) }

// sendReady sends what may be sent of all that is ready. Where each sync costs,
// what comes while a group is pending is the next group; else nothing waits
// for anything but what its order demands.
func (s *committerLoop) sendReady() {
	if s.early = s.waitsForGap(); s.early {
		return
	}
	if !s.pace.groups {
		s.sendSingles()
		return
	}
	if s.outstanding > 0 || s.looking > 0 {
		return
	}
	alone := slices.ContainsFunc(s.ready, func(w *write) bool { return w.alone })
	if alone || len(s.ready) < batchLeast || time.Now().Before(s.noBatch) {
		s.sendEach(alone, commitWritesMax)
		return
	}
	n, bytes := 0, 0
	for n < len(s.ready) && n < batchMost && bytes < batchBytesMost {
		bytes += s.ready[n].bytes()
		n++
	}
	group := slices.Clone(s.ready[:n])
	s.ready = slices.Delete(s.ready, 0, n)
	s.sendBatch(group)
}

// dropEnded ends what nobody waits for any more, so that others have its room.
// It may have been sent before.
func (s *committerLoop) dropEnded() {
	var ended []*write
	over := func(w *write) bool {
		if w.of.ctx.Err() == nil {
			return false
		}
		ended = append(ended, w)
		return true
	}
	s.ready = slices.DeleteFunc(s.ready, over)
	for order := range s.held {
		s.held[order] = slices.DeleteFunc(s.held[order], over)
	}
	for _, w := range ended {
		w.err = fmt.Errorf("%w: %w", ErrUnknownOutcome, w.of.ctx.Err())
		w.order = "" // those after it have the same end
		s.settle(w)
	}
}

// sendSingles sends single messages, the first ones in bursts that are measured.
func (s *committerLoop) sendSingles() {
	switch {
	case s.pace.sent > 0:
	case s.pace.judged || len(s.ready) < paceLeast:
		s.sendEach(false, commitWritesMax)
	case s.outstanding == 0:
		now := time.Now()
		if s.sendEach(false, paceMost); s.outstanding >= paceLeast { // else others wait for some of their order
			s.pace.begin(s.outstanding, now)
		}
	}
}

// sendEach sends single messages, until so many are pending: of one order the
// first, and no other until that is answered. With alone only those that go in no
// batch.
func (s *committerLoop) sendEach(alone bool, most int) {
	ready := s.ready // what is dropped changes s.ready
	s.ready = nil
	rest, now := ready[:0], time.Now()
	for _, w := range ready {
		switch {
		case w.of.ctx.Err() != nil:
			w.err = fmt.Errorf("%w: %w", ErrUnknownOutcome, w.of.ctx.Err()) // it may have been sent before
			s.settle(w)
		case w.order != "" && s.busy[w.order]:
			s.held[w.order] = append(s.held[w.order], w)
		case alone && !w.alone, s.outstanding >= most:
			rest = append(rest, w)
		default:
			if w.order != "" {
				s.busy[w.order] = true
			}
			s.publish(pendingPublish{one: w, sent: now}, func(reply string) error {
				return s.journal.conn.NC.PublishMsg(s.message.of(w, reply))
			})
		}
	}
	clear(ready[len(rest):])
	s.ready = rest
}

// sendBatch sends messages that are stored together or not at all. The last
// asks for an answer; the first does too, since only that one hears that the
// server has no room for a batch.
func (s *committerLoop) sendBatch(group []*write) {
	id := nuid.Next()
	s.publish(pendingPublish{batch: group, sent: time.Now()}, func(reply string) error {
		for i, w := range group {
			m := s.message.of(w, "")
			s.message.set(subjects.HeaderBatchID, id)
			s.message.set(subjects.HeaderBatchSequence, strconv.Itoa(i+1))
			if i == 0 || i == len(group)-1 {
				m.Reply = reply
			}
			if i == len(group)-1 {
				s.message.set(subjects.HeaderBatchCommit, "1")
			}
			if err := s.journal.conn.NC.PublishMsg(m); err != nil {
				return err
			}
		}
		return nil
	})
}

// free lets the next of an order go.
func (s *committerLoop) free(order string) {
	if order == "" || !s.busy[order] {
		return
	}
	delete(s.busy, order)
	s.requeue(s.held[order])
	delete(s.held, order)
}

// settle says that a write has its outcome. What comes after one that failed,
// in its order and of its caller, is not tried.
func (s *committerLoop) settle(w *write) {
	s.settled++
	s.settledBytes += w.bytes()
	if w.of.left--; w.of.left == 0 {
		s.mu.Lock()
		s.giveRoom() // the caller may look for some at once
		first := s.resolve(w.of, nil)
		s.mu.Unlock()
		if first {
			close(w.of.done)
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
		o.order = "" // one level is all
		s.settle(o)
	}
}

// makeRoom lets others have the room of what has its outcome.
func (s *committerLoop) makeRoom() {
	if s.settled == 0 {
		return
	}
	s.mu.Lock()
	s.giveRoom()
	s.mu.Unlock()
}

// giveRoom is makeRoom with the lock held.
func (s *committerLoop) giveRoom() {
	s.writes -= s.settled
	s.size -= s.settledBytes
	s.tellRoom()
	s.settled, s.settledBytes = 0, 0
}

// requeue puts writes before all that waits.
func (s *committerLoop) requeue(writes []*write) { s.ready = slices.Insert(s.ready, 0, writes...) }

// pause sends nothing for a while, longer each time until something works.
func (s *committerLoop) pause() {
	if !s.until.IsZero() {
		return
	}
	s.wait = min(max(2*s.wait, natsio.RetryWaitMin), natsio.RetryWaitMax)
	s.until = time.Now().Add(s.wait)
}

// again sends what has no answer for longer than d once more, under the same
// names: it may be stored or not.
func (s *committerLoop) again(d time.Duration) {
	late := s.pending.sentBy(time.Now().Add(-d))
	for _, number := range slices.Backward(late) {
		s.answered(number, acked{err: nats.ErrTimeout})
	}
}

// deny ends what the server does not allow. What went with it in a batch goes
// out again.
func (s *committerLoop) deny(p *natsio.PermissionError) {
	for _, number := range s.pending.sentBy(time.Now()) {
		all := s.pending.at(number).all()
		if !slices.ContainsFunc(all, func(w *write) bool { return s.journal.conn.Concerns(p, w.subject) }) {
			continue
		}
		s.finish(number, 0)
		var others []*write
		for _, w := range all {
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
