package delivery

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// Parts of the time that the server keeps a pin (2 s in streams.conf). A
// request is sent at least every third of it, and the server says something
// at least every sixth.
const (
	ttlPartKeep  = 3
	ttlPartTick  = 6
	ttlPartStood = 2 // a process that did nothing for that long may have lost the pin
)

// tickMax is how late a reconnect may be noticed, however long pins last.
const tickMax = time.Second

// windowPartPull: a request asks for at least this part of the window, so that
// a slow fold doesn't cost a request an event.
const windowPartPull = 4

// epochEnd is why an epoch ended.
type epochEnd string

const (
	epochRuns    epochEnd = ""
	epochReset   epochEnd = "reset"   // begin another one under the same pin
	epochLost    epochEnd = "lost"    // the pin is another's, or may be
	epochDrained epochEnd = "drained" // all that was given is acked
	epochStopped epochEnd = "stopped" // the context ended
)

// epoch is the time between two resets of a lane that this process owns: an
// inbox, a window, and a count of deliveries that must have no gap.
type epoch struct {
	lane   *Lane
	number uint64
	pin    string
	window *window
	queue  chan Delivery // to the owner; has room for the whole window
	log    *slog.Logger

	inbox    string
	msgs     <-chan *nats.Msg
	unlisten func() // nothing more comes on the inbox

	request  uint64 // number of the last request
	filling  uint64 // the request that is to fill the window; 0: none is open
	asked    int    // how many it may still bring
	whole    bool   // next, ask for one event of whatever size
	draining bool

	next       uint64 // consumer sequence that must come next
	last       uint64 // stream sequence of the last event
	waits      bool   // the server has events for us
	reconnects uint64
	begun      time.Time
	sent       time.Time // last request
	filled     time.Time // last request that is to fill the window
	differs    time.Time // since when the server counts otherwise; zero: it doesn't
	checked    time.Time // last check; zero: none yet
}

// own holds the lane for as long as the pin lasts: one epoch after another.
func (l *Lane) own(ctx context.Context, pin string, owner LaneOwner) {
	l.owned.Store(true)
	defer l.owned.Store(false)
	for {
		e, err := l.newEpoch(ctx, pin, owner)
		if err != nil {
			// The reset may have happened or not. What is sure is a new pin.
			if ctx.Err() == nil {
				l.log.Warn("lane_lost", "error", err.Error())
			}
			return
		}
		switch end := e.run(ctx); end {
		case epochReset:
		case epochLost:
			e.log.Info("lane_lost")
			return
		default:
			l.giveBack(ctx, e)
			return
		}
	}
}

// newEpoch resets the lane and begins an epoch. The former epoch's inbox has no
// interest by now, so what was on its way to it is never taken for ours.
func (l *Lane) newEpoch(ctx context.Context, pin string, owner LaneOwner) (*epoch, error) {
	reconnects := l.server.Reconnects()
	pending, err := l.resetInTurn(ctx, pin)
	if err != nil {
		return nil, natsio.Typed(err)
	}
	l.epoch++
	e := &epoch{
		lane: l, number: l.epoch, pin: pin, queue: make(chan Delivery, windowEventsMax),
		log: l.log.With("epoch", l.epoch), next: 1, waits: pending > 0, reconnects: reconnects,
	}
	e.window = newWindow(e.ack)
	if e.inbox, e.msgs, e.unlisten, err = l.server.Listen(2 * windowEventsMax); err != nil {
		return nil, natsio.Typed(err)
	}
	e.begun = time.Now()
	select {
	case <-l.draining: // nothing of it is given, however fast deliver is
		e.draining = true
		e.window.close()
	default:
	}
	before := l.last
	l.last = make(chan struct{})
	go e.deliver(owner, before, l.last)
	return e, nil
}

// ack acknowledges a delivery, unless another connection brought it (natsio.Conn.Incarnation).
// What is not acked, since that or the sending failed, comes again.
func (e *epoch) ack(reply string) {
	if e.lane.server.Reconnects() == e.reconnects {
		_ = e.lane.server.Ack(reply)
	}
}

// deliver gives the epoch to the owner. It waits for the former epoch's goroutine,
// which may be inside the owner still; the lane itself waits for neither.
func (e *epoch) deliver(owner LaneOwner, before <-chan struct{}, done chan<- struct{}) {
	defer close(done)
	<-before
	if !e.window.gives() {
		return
	}
	owner.Epoch(e.number)
	for d := range e.queue {
		if e.window.hand(d.number) {
			owner.Deliver(d)
		}
	}
}

// run receives until the epoch ends.
func (e *epoch) run(ctx context.Context) (end epochEnd) {
	defer func() {
		close(e.queue)
		e.lane.ackedUpTo(e.window.end(), e.reconnects)
		if end == epochReset || end == epochLost {
			e.unlisten()
		}
	}()
	tick := time.NewTicker(min(e.lane.ttl/ttlPartTick, tickMax))
	defer tick.Stop()
	draining := e.lane.draining
	for end == epochRuns {
		if err := e.fill(); err != nil {
			e.log.Warn("lane_pull_failed", "error", err.Error())
			return epochLost
		}
		select {
		case <-ctx.Done():
			return epochStopped
		case m := <-e.msgs:
			end = e.receive(m)
			for n := len(e.msgs); n > 0 && end == epochRuns; n-- { // what has come with it; nobody else takes any
				end = e.receive(<-e.msgs)
			}
		case <-e.window.freed:
		case <-draining:
			draining = nil
			e.draining = true
			e.window.close()
		case <-tick.C:
			end = e.check(time.Now())
		}
		if e.draining && e.window.settled() && end == epochRuns {
			end = epochDrained
		}
	}
	return end
}

// fill asks for as many events as there is room for, and keeps the pin.
func (e *epoch) fill() error {
	keep := e.lane.ttl / ttlPartKeep
	events, bytes := e.window.room()
	request := PullRequest{Batch: events, MaxBytes: bytes, Expires: keep, Heartbeat: keep / 2}
	empty := events == windowEventsMax
	if e.whole {
		request.Batch, request.MaxBytes = 1, 0
	}
	full := events < windowEventsMax/windowPartPull || bytes < windowBytesMax/windowPartPull || e.whole && !empty
	if !e.draining && !full && e.filling == 0 {
		e.filling, e.asked, e.whole, e.filled = e.request+1, request.Batch, false, time.Now()
		return e.ask(request)
	}
	if time.Since(e.sent) < keep {
		return nil
	}
	// A request that expires as it arrives keeps the pin and brings nothing.
	return e.ask(PullRequest{Batch: 1, Expires: time.Nanosecond})
}

func (e *epoch) ask(r PullRequest) error {
	e.request++
	e.sent = time.Now()
	r.Group, r.Pin = subjects.LaneGroup, e.pin
	err := e.lane.server.Pull(natsio.ReplySubject(e.inbox, e.request), r)
	if errors.Is(err, nats.ErrReconnectBufExceeded) {
		return nil // there is no connection: when there is, check begins another epoch
	}
	return natsio.Typed(err)
}

// check looks for what no message tells. What has arrived and was not looked
// at, since this process had no time, is not missing.
func (e *epoch) check(now time.Time) epochEnd {
	ttl, idle := e.lane.ttl, len(e.msgs) == 0
	if e.stood(now) {
		return epochRuns
	}
	switch {
	case e.lane.server.Reconnects() != e.reconnects:
		return e.again("the connection was made anew")
	case idle && e.filling != 0 && now.Sub(e.filled) > ttl:
		// It was to expire long before; and no other is sent while it is open.
		return e.again("a request got no answer")
	case idle && e.waits && e.next == 1 && now.Sub(e.begun) > ttl && !e.draining:
		return e.again("the first event did not come")
	case !e.differs.IsZero() && now.Sub(e.differs) > ttl:
		return e.again("deliveries were lost")
	}
	return epochRuns
}

// stood reports that this process did not run for a while (it was stopped, or
// had no processor), and lets every wait begin again. Another process may have the
// pin by now, and a reset would take from it what it has under way. So nothing is
// concluded from messages that did not come meanwhile. The requests that are due now
// tell who has the pin.
func (e *epoch) stood(now time.Time) bool {
	last := e.checked
	e.checked = now
	if last.IsZero() || now.Sub(last) <= e.lane.ttl/ttlPartStood {
		return false
	}
	e.log.Info("lane_stood_still", "for_ms", now.Sub(last).Milliseconds())
	e.begun, e.filled = now, now
	if !e.differs.IsZero() {
		e.differs = now
	}
	return true
}

// again ends the epoch with a reset, unless the lane is being handed over: then
// what is not acked yet comes to the next owner.
func (e *epoch) again(why string) epochEnd {
	e.log.Info("lane_reset", "reason", why)
	if e.draining {
		return epochDrained
	}
	return epochReset
}

// receive takes a message of the epoch's inbox.
func (e *epoch) receive(m *nats.Msg) epochEnd {
	if strings.HasPrefix(m.Subject, e.inbox) { // an event is not looked at for what it can't say
		if status, ok := readStatus(e.inbox, m); ok {
			return e.hear(status)
		}
	}
	at, ok := natsio.ReadAckReply(m)
	if !ok {
		return epochRuns
	}
	if e.filling != 0 {
		if e.asked--; e.asked == 0 {
			e.filling = 0
		}
	}
	if at.ConsumerSeq != e.next {
		return e.again("a gap in deliveries")
	}
	e.next = at.ConsumerSeq + 1
	e.differs = time.Time{}
	switch {
	case e.draining:
		return epochRuns // not taken: the lane is reset before it is unpinned
	case at.Seq > e.last:
		e.last = at.Seq
		e.take(m, at)
		return epochRuns
	case e.window.holds(at.Seq):
		return epochRuns // it took longer than ack_wait, and is still under way
	default:
		return e.again("an acknowledged event came again")
	}
}

// take holds a new event and queues it for the owner.
func (e *epoch) take(m *nats.Msg, at natsio.AckReply) {
	door, sid, err := e.lane.source.names.ParseStored(m.Subject)
	number := e.window.add(heldEvent{seq: at.Seq, reply: m.Reply, bytes: m.Size()})
	if err != nil {
		e.log.Warn("event_skipped", "seq", at.Seq, "error", err.Error())
		e.window.done(number)
		return
	}
	// The queue has room for all that the window may hold.
	e.queue <- Delivery{
		Event: session.Event{Session: sid, Door: door, Seq: at.Seq, Time: at.Time.UnixMilli(), Payload: m.Data},
		Epoch: e.number, ConsumerSeq: at.ConsumerSeq, Pending: at.Pending,
		TraceParent: natsio.TraceParentOf(m.Header),
		window:      e.window, number: number,
	}
}

// hear takes what the server says about a request.
func (e *epoch) hear(s pullStatus) epochEnd {
	switch s.code {
	case statusHeartbeat:
		// In a cluster the server counts what waits for its quorum, so a
		// difference must last to be one.
		if s.last == e.next-1 {
			e.differs = time.Time{}
		} else if e.differs.IsZero() {
			e.differs = time.Now()
		}
		return epochRuns
	case statusWrongPin:
		return epochLost
	}
	if s.request != e.filling {
		return epochRuns
	}
	e.filling = 0
	switch err := s.fault(); {
	case err == nil:
	case errors.Is(err, errTooLarge):
		e.whole = true
	default:
		// Another leader, another consumer, a server that shuts down: no pin
		// outlives any of these.
		e.log.Info("lane_pull_refused", "error", err.Error())
		return epochLost
	}
	return epochRuns
}
