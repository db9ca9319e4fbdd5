package delivery

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
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

	*inbox
	consumer string
	arrived  chan *nats.Msg // the messages of the current inbox and former ones
	held     atomic.Int64   // accepted deliveries
	freed    chan struct{}  // of capacity 1: held is below lowWater
	lowWater atomic.Int64   // the puller requests more when held is below

	pin *pin // nil: the consumer pins no client

	asked       int  // deliveries that open requests may still get
	attached    bool // the requests are not void
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
	msgs := l.arrived
	if msgs == nil || incarnation != l.incarnation {
		// Room for deliveries, and a few statuses of each request.
		msgs = make(chan *nats.Msg, 4*l.slots+64)
	}
	prefix := nc.NewInbox()
	sub, err := nc.ChanSubscribe(prefix+".*", msgs)
	if err != nil {
		return natsio.Typed(err)
	}
	l.detach()
	l.inbox = &inbox{prefix: prefix, msgs: msgs, stop: func() { _ = sub.Drain() }, pull: func(reply string, r PullRequest) error {
		return l.source.pull(l.stream, consumer, reply, r)
	}}
	l.consumer, l.arrived, l.incarnation = consumer, msgs, incarnation
	l.asked, l.heard, l.attached = 0, time.Now(), true
	return nil
}

// detach drains the subscription of inbox.
func (l *puller) detach() {
	if l.inbox != nil {
		l.stop()
	}
}

// run pulls until ctx ends, or, after draining is closed, until no delivery is held.
func (l *puller) run(ctx context.Context, draining <-chan struct{}) {
	defer l.detach()
	if pullLoop(ctx, l, l.freed, draining, pullTick) == pullDrained {
		l.handBack(ctx)
	}
}

func (l *puller) arrivals() <-chan *nats.Msg { return l.msgs }

func (l *puller) drain() {
	l.draining = true
	l.lowWater.Store(math.MaxInt64) // any delivery that ends may be the last
	l.detach()                      // messages that still arrive are returned
	if l.pin != nil {
		l.pin.giveBack()
	}
}

// fill requests deliveries for the free slots, once open requests cover less than half
// of them. A request for each slot as it becomes free would cost the server as much as
// the delivery.
func (l *puller) fill() pullEnd {
	switch {
	case l.draining && l.held.Load() == 0:
		return pullDrained
	case l.draining || !l.attached:
		return pullRuns
	}
	l.lowWater.Store(int64(l.slots - 2*l.asked)) // before held is read, so that no delivery that ends now is missed
	slots := l.slots - int(l.held.Load())
	free := slots - l.asked
	if free <= 0 || 2*l.asked >= slots {
		l.keepPin()
		return pullRuns
	}
	r := PullRequest{Batch: free, Expires: pullExpires, Heartbeat: pullHeartbeat}
	if l.pin != nil {
		r.Group, r.Pin, l.pin.asked = subjects.WebhookGroup, l.pin.id, time.Now()
	}
	if err := l.ask(r); err == nil {
		l.asked += free
	}
	return pullRuns
}

// check extends leases, and attaches again when the requests are lost.
func (l *puller) check(ctx context.Context, now time.Time) pullEnd {
	if now.Sub(l.extended) >= l.lease/leasePart {
		l.extended = now
		l.of.extend()
	}
	lost := l.source.conn.Incarnation() != l.incarnation || l.asked > 0 && len(l.msgs) == 0 && now.Sub(l.heard) > pullSilence
	if l.draining || l.attached && !lost || !l.source.conn.IsConnected() {
		if l.pin != nil && l.attached && !lost {
			l.pin.check(ctx)
		}
		return pullRuns
	}
	// attach must not delay the next extension.
	ctx, cancel := context.WithTimeout(ctx, l.lease/leasePart)
	defer cancel()
	err := l.attach(ctx)
	switch {
	case err == nil:
		l.waits = ""
		l.of.logAttached(l.consumer)
	case ctx.Err() == nil && (err.Error() != l.waits || now.Sub(l.warned) >= warnEvery):
		l.waits, l.warned = err.Error(), now
		l.of.logWaiting(err)
	}
	l.attached = err == nil
	return pullRuns
}

func (l *puller) receive(m *nats.Msg) pullEnd {
	l.heard = time.Now()
	if status, ok := l.status(m); ok {
		l.receiveStatus(status)
	} else if at, ok := natsio.ReadAckReply(m); ok {
		l.asked = max(l.asked-1, 0)
		l.readPin(m)
		l.of.accept(m, at, token{m.Reply, l.incarnation})
	}
	return pullRuns
}

func (l *puller) receiveStatus(s pullStatus) {
	switch s.code {
	case statusHeartbeat:
	case statusTimeout:
		if l.pin != nil && s.request == l.pin.kept {
			return
		}
		l.asked = max(l.asked-s.left, 0)
	case statusWrongPin:
		l.losePin()
	default:
		l.of.logRefused(s.fault())
		l.attached = false
	}
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
