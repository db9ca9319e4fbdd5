package delivery

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/internal/natsio"
)

// Times of pull requests.
const (
	pullExpires   = 30 * time.Second
	pullHeartbeat = 2 * time.Second
	pullSilence   = 3 * pullHeartbeat      // after which requests count as lost
	pullTick      = 250 * time.Millisecond // how soon a reconnect is noticed
	warnEvery     = time.Minute            // between two lines about the same cause
	leasePart     = 3                      // a lease is extended every third of it
)

// pulled has the parts of a puller that differ between effects and wakes. The puller's
// goroutine calls its methods.
type pulled interface {
	// ensure creates or updates the consumer, and returns its name.
	ensure(ctx context.Context) (consumer string, err error)
	// accept starts the work on a delivery if puller.begin returns true, and calls
	// puller.ended after it. Otherwise it returns the delivery to the server.
	accept(m *nats.Msg, at natsio.AckReply, of token)
	// extend extends the leases of the accepted deliveries.
	extend()
	logWaiting(err error)        // the consumer is not available
	logRefused(err error)        // the server refuses requests
	logAttached(consumer string) // the consumer is available again
}

// puller requests as many deliveries of a consumer as there are free slots.
type puller struct {
	source *Source
	stream string
	of     pulled
	slots  int
	lease  time.Duration

	consumer string
	inbox    string
	sub      *nats.Subscription
	msgs     chan *nats.Msg // of the current inbox and former ones
	held     atomic.Int64   // accepted deliveries
	freed    chan struct{}  // of capacity 1: held is below lowWater
	lowWater atomic.Int64   // the puller requests more when held is below

	request     uint64
	asked       int // deliveries that open requests may still get
	draining    bool
	incarnation uint64    // of the connection of inbox
	heard       time.Time // last message on inbox
	extended    time.Time // last extension of leases
	waits       string    // why the consumer is not available, as logged; empty: it is
	warned      time.Time // when that was logged
}

func newPuller(ctx context.Context, s *Source, stream string, of pulled, slots int, lease time.Duration) (*puller, error) {
	l := &puller{
		source: s, stream: stream, of: of, slots: slots, lease: lease,
		freed: make(chan struct{}, 1), extended: time.Now(),
	}
	l.lowWater.Store(math.MaxInt64) // until the first fill
	return l, l.attach(ctx)
}

// attach ensures the consumer and subscribes to a new inbox, without open requests.
// Messages on their way to the former inbox still arrive, except those of a former
// connection: they can't be answered, and the server delivers them again.
func (l *puller) attach(ctx context.Context) error {
	nc, incarnation := l.source.conn.NC, l.source.conn.Incarnation()
	consumer, err := l.of.ensure(ctx)
	if err != nil {
		return err
	}
	msgs := l.msgs
	if msgs == nil || incarnation != l.incarnation {
		// Room for deliveries, and a few statuses of each request.
		msgs = make(chan *nats.Msg, 4*l.slots+64)
	}
	inbox := nc.NewInbox()
	sub, err := nc.ChanSubscribe(inbox+".*", msgs)
	if err != nil {
		return natsio.Typed(err)
	}
	l.detach()
	l.consumer, l.inbox, l.sub, l.msgs, l.incarnation = consumer, inbox, sub, msgs, incarnation
	l.asked, l.heard = 0, time.Now()
	return nil
}

// detach drains the subscription of inbox.
func (l *puller) detach() {
	if l.sub != nil {
		_ = l.sub.Drain() // fails on a closed connection only
		l.sub = nil
	}
}

// run pulls until ctx ends, or, after draining is closed, until no delivery is held.
func (l *puller) run(ctx context.Context, draining <-chan struct{}) {
	defer l.detach()
	pulling, cancel := untilDone(ctx, draining)
	defer cancel()
	tick := time.NewTicker(pullTick)
	defer tick.Stop()
	attached := true
	for !l.draining || l.held.Load() > 0 {
		if attached && !l.draining {
			l.fill()
		}
		select {
		case <-ctx.Done():
			return
		case m := <-l.msgs:
			attached = l.receive(m) && attached
			for range len(l.msgs) {
				attached = l.receive(<-l.msgs) && attached
			}
		case <-l.freed:
		case <-draining:
			draining, l.draining = nil, true
			l.lowWater.Store(math.MaxInt64) // any delivery that ends may be the last
			l.detach()                      // messages that still arrive are returned
		case <-tick.C:
			attached = l.check(pulling, time.Now(), attached)
		}
	}
	l.handBack(ctx)
}

// fill requests deliveries for the free slots, once open requests cover less than half
// of them. A request for each slot as it becomes free would cost the server as much as
// the delivery.
func (l *puller) fill() {
	l.lowWater.Store(int64(l.slots - 2*l.asked)) // before held is read, so that no delivery that ends now is missed
	slots := l.slots - int(l.held.Load())
	free := slots - l.asked
	if free <= 0 || 2*l.asked >= slots {
		return
	}
	l.request++
	err := l.source.pull(l.stream, l.consumer, natsio.ReplySubject(l.inbox, l.request), PullRequest{
		Batch: free, Expires: pullExpires, Heartbeat: pullHeartbeat,
	})
	if err == nil {
		l.asked += free
	}
}

// check extends leases, and attaches again when the requests are lost. It reports
// whether the puller is attached.
func (l *puller) check(ctx context.Context, now time.Time, attached bool) bool {
	if now.Sub(l.extended) >= l.lease/leasePart {
		l.extended = now
		l.of.extend()
	}
	lost := l.source.conn.Incarnation() != l.incarnation || l.asked > 0 && len(l.msgs) == 0 && now.Sub(l.heard) > pullSilence
	if l.draining || attached && !lost || !l.source.conn.IsConnected() {
		return attached
	}
	// attach must not delay the next extension.
	ctx, cancel := context.WithTimeout(ctx, l.lease/leasePart)
	defer cancel()
	if err := l.attach(ctx); err != nil {
		if ctx.Err() == nil && (err.Error() != l.waits || now.Sub(l.warned) >= warnEvery) {
			l.waits, l.warned = err.Error(), now
			l.of.logWaiting(err)
		}
		return false
	}
	l.waits = ""
	l.of.logAttached(l.consumer)
	return true
}

// receive handles a message. It returns false if the requests are void.
func (l *puller) receive(m *nats.Msg) bool {
	l.heard = time.Now()
	if status, ok := readStatus(l.inbox, m); ok {
		return l.receiveStatus(status)
	}
	at, ok := natsio.ReadAckReply(m)
	if !ok {
		return true
	}
	if l.asked > 0 {
		l.asked--
	}
	l.of.accept(m, at, token{m.Reply, l.incarnation})
	return true
}

func (l *puller) receiveStatus(s pullStatus) bool {
	switch s.code {
	case statusHeartbeat:
		return true
	case statusTimeout:
		l.asked = max(l.asked-s.left, 0)
		return true
	}
	l.of.logRefused(s.fault())
	return false
}

// begin occupies a slot for a delivery, and reports whether one was free.
func (l *puller) begin() bool {
	if l.draining || l.held.Load() >= int64(l.slots) {
		return false
	}
	l.held.Add(1)
	return true
}

// ended frees the slot of a delivery. It wakes the puller only below lowWater: while
// open requests cover enough slots, a free one changes nothing. It may be called from
// any goroutine.
func (l *puller) ended() {
	if l.held.Add(-1) >= l.lowWater.Load() {
		return
	}
	select {
	case l.freed <- struct{}{}:
	default:
	}
}

// handBack drains the inbox and returns its deliveries, so that they need not wait for
// the end of their leases.
func (l *puller) handBack(ctx context.Context) {
	l.detach()
	ctx, cancel := context.WithTimeout(ctx, pullHeartbeat)
	defer cancel()
	_ = l.source.conn.NC.FlushWithContext(ctx) // after a failure the leases expire
	for {
		select {
		case m := <-l.msgs:
			l.receive(m)
		default:
			return
		}
	}
}
