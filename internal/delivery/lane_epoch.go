package delivery

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// Fractions of the time that the server keeps a pin (2 s in streams.conf). A request
// is sent at least every third of it, and the server sends a message at least every
// sixth.
const (
	ttlPartKeep    = 3
	ttlPartTick    = 6
	ttlPartStalled = 2 // a process that did not run for that long may have lost the pin
)

// tickMax is how late a reconnect may be noticed, however long pins last.
const tickMax = time.Second

// A request is for at least 1/windowPartPull of the window, so that a slow fold doesn't
// cost a request for each event.
const windowPartPull = 4

// epoch is the time between two resets of a lane that this process owns. It has an
// inbox, a window, and a count of deliveries that must have no gap.
type epoch struct {
	lane   *Lane
	number uint64
	pin    string
	window *window
	owner  LaneOwner
	log    *slog.Logger

	*inbox

	filling  uint64 // the open request that fills the window; 0: none
	asked    int    // messages that it may still deliver
	anySize  bool   // the next request is for one event of any size
	draining bool

	next          uint64 // consumer sequence of the next delivery
	last          uint64 // stream sequence of the last event
	hasPending    bool   // the server had events at the reset
	reconnects    uint64
	begun         time.Time
	requested     time.Time // last request
	filled        time.Time // last request that fills the window
	mismatchSince time.Time // since when the server's count of deliveries differs; zero: it doesn't
	checked       time.Time // last check; zero: none yet
}

// own runs one epoch after another for as long as the pin lasts.
func (l *Lane) own(ctx context.Context, pin string, owner LaneOwner) {
	l.owned.Store(true)
	defer l.owned.Store(false)
	for {
		e, err := l.newEpoch(ctx, pin, owner)
		if err != nil {
			// The reset may have happened or not; only a new pin makes it certain.
			if ctx.Err() == nil {
				l.log.Warn("lane_lost", "error", err.Error())
			}
			return
		}
		switch end := e.run(ctx); end {
		case pullReset:
		case pullLost:
			e.log.Info("lane_lost")
			return
		default:
			l.giveBack(ctx, e)
			return
		}
	}
}

// newEpoch resets the lane and begins an epoch. The former epoch has unsubscribed its
// inbox, so its messages can't be mistaken for this one's.
func (l *Lane) newEpoch(ctx context.Context, pin string, owner LaneOwner) (*epoch, error) {
	reconnects := l.server.Reconnects()
	pending, err := l.resetInTurn(ctx, pin)
	if err != nil {
		return nil, natsio.Typed(err)
	}
	l.epoch++
	e := &epoch{
		lane: l, number: l.epoch, pin: pin, owner: owner,
		log: l.log.With("epoch", l.epoch), next: 1, hasPending: pending > 0, reconnects: reconnects,
	}
	e.window = newWindow(e.ack)
	if e.inbox, err = l.listen(2 * windowEventsMax); err != nil {
		return nil, err
	}
	e.begun = time.Now()
	select {
	case <-l.draining:
		e.drain()
	default:
		owner.Epoch(e.number)
	}
	return e, nil
}

// ack acknowledges a delivery, unless it came over another connection
// (natsio.Conn.Incarnation). Without an ack the server delivers the event again.
func (e *epoch) ack(reply string) {
	if e.lane.server.Reconnects() == e.reconnects {
		_ = e.lane.server.Ack(reply)
	}
}

func (e *epoch) run(ctx context.Context) pullEnd {
	end := pullLoop(ctx, e, e.window.freed, e.lane.draining, min(e.lane.ttl/ttlPartTick, tickMax))
	e.lane.recordFloor(e.window.end(), e.reconnects)
	if end == pullReset || end == pullLost {
		e.stop()
	}
	return end
}

func (e *epoch) arrivals() <-chan *nats.Msg { return e.msgs }

func (e *epoch) drain() {
	e.draining = true
	e.window.close()
}

// fill requests as many events as there is room for, and keeps the pin.
func (e *epoch) fill() pullEnd {
	if e.draining && e.window.settled() {
		return pullDrained
	}
	keep := e.lane.ttl / ttlPartKeep
	events, bytes := e.window.room()
	request := PullRequest{Batch: events, MaxBytes: bytes, Expires: keep, Heartbeat: keep / 2}
	empty := events == windowEventsMax
	if e.anySize {
		request.Batch, request.MaxBytes = 1, 0
	}
	full := events < windowEventsMax/windowPartPull || bytes < windowBytesMax/windowPartPull || e.anySize && !empty
	if !e.draining && !full && e.filling == 0 {
		e.filling, e.asked, e.anySize, e.filled = e.sent+1, request.Batch, false, time.Now()
		request.Group, request.Pin = subjects.LaneGroup, e.pin
		return e.ask(request)
	}
	if time.Since(e.requested) < keep {
		return pullRuns
	}
	return e.ask(keepsPin(e.pin))
}

func (e *epoch) ask(r PullRequest) pullEnd {
	e.requested = time.Now()
	err := e.inbox.ask(r)
	if err == nil || errors.Is(err, nats.ErrReconnectBufExceeded) {
		return pullRuns // if disconnected: after the reconnect, check ends the epoch
	}
	e.log.Warn("lane_pull_failed", "error", natsio.Typed(err).Error())
	return pullLost
}

// check detects losses that no message reports. Messages that are received but not
// processed yet count as not missing.
func (e *epoch) check(_ context.Context, now time.Time) pullEnd {
	ttl, idle := e.lane.ttl, len(e.msgs) == 0
	if e.stalled(now) {
		return pullRuns
	}
	switch {
	case e.lane.server.Reconnects() != e.reconnects:
		return e.again("the connection was made anew")
	case idle && e.filling != 0 && now.Sub(e.filled) > ttl:
		// It should have expired long ago, and no other is sent while it is open.
		return e.again("a request got no answer")
	case idle && e.hasPending && e.next == 1 && now.Sub(e.begun) > ttl && !e.draining:
		return e.again("the first event did not come")
	case !e.mismatchSince.IsZero() && now.Sub(e.mismatchSince) > ttl:
		return e.again("deliveries were lost")
	}
	return pullRuns
}

// stalled reports whether this process did not run for a while (it was stopped, or had
// no processor), and restarts every timeout. Another process may own the lane by now,
// and a reset would disturb it. So check ignores messages missed during the stall. The
// answers to the requests that are due now show who has the pin.
func (e *epoch) stalled(now time.Time) bool {
	last := e.checked
	e.checked = now
	if last.IsZero() || now.Sub(last) <= e.lane.ttl/ttlPartStalled {
		return false
	}
	e.log.Info("lane_stood_still", "for_ms", now.Sub(last).Milliseconds())
	e.begun, e.filled = now, now
	if !e.mismatchSince.IsZero() {
		e.mismatchSince = now
	}
	return true
}

// again ends the epoch with a reset. During a handover there is no reset, since the
// unacked events go to the next owner.
func (e *epoch) again(why string) pullEnd {
	e.log.Info("lane_reset", "reason", why)
	if e.draining {
		return pullDrained
	}
	return pullReset
}

func (e *epoch) receive(m *nats.Msg) pullEnd {
	if status, ok := e.status(m); ok {
		return e.receiveStatus(status)
	}
	at, ok := natsio.ReadAckReply(m)
	if !ok {
		return pullRuns
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
	e.mismatchSince = time.Time{}
	switch {
	case e.draining:
		return pullRuns // ignored: the lane is reset before it is unpinned
	case at.Seq > e.last:
		e.last = at.Seq
		e.accept(m, at)
		return pullRuns
	case e.window.holds(at.Seq):
		return pullRuns // it takes longer than ack_wait
	default:
		return e.again("an acknowledged event came again")
	}
}

// accept adds a new event to the window and hands it to the owner.
func (e *epoch) accept(m *nats.Msg, at natsio.AckReply) {
	door, sid, err := e.lane.source.names.ParseStored(m.Subject)
	number := e.window.add(heldEvent{seq: at.Seq, reply: m.Reply, bytes: m.Size()})
	if e.lane.source.conn.Ignores(m) {
		e.window.done(number)
		return
	}
	if err != nil {
		e.owner.Skipped(at.Seq, m.Subject)
		e.window.done(number)
		return
	}
	e.owner.Deliver(Delivery{
		Event: session.Event{Session: sid, Door: door, Seq: at.Seq, Time: at.Time.UnixMilli(), Payload: m.Data},
		Epoch: e.number, ConsumerSeq: at.ConsumerSeq, Pending: at.Pending,
		TraceParent: natsio.TraceParentOf(m.Header),
		Handle:      Handle{e.window, number},
	})
}

// receiveStatus handles the server's status of a request.
func (e *epoch) receiveStatus(s pullStatus) pullEnd {
	switch s.code {
	case statusHeartbeat:
		// In a cluster the count includes deliveries that wait for their quorum, so
		// only a lasting mismatch means a loss.
		if s.last == e.next-1 {
			e.mismatchSince = time.Time{}
		} else if e.mismatchSince.IsZero() {
			e.mismatchSince = time.Now()
		}
		return pullRuns
	case statusWrongPin:
		return pullLost
	}
	if s.request != e.filling {
		return pullRuns
	}
	e.filling = 0
	switch err := s.fault(); {
	case err == nil:
	case errors.Is(err, errTooLarge):
		e.anySize = true
	default:
		// Another leader, another consumer, a server that shuts down: each of them
		// ends the pin.
		e.log.Info("lane_pull_refused", "error", err.Error())
		return pullLost
	}
	return pullRuns
}
