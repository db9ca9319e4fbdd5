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
	pullSilence   = 3 * pullHeartbeat      // then the requests are taken as lost
	pullTick      = 250 * time.Millisecond // how soon a reconnect is noticed
	leasePart     = 3                      // a lease is extended every third of it
)

// pulled is what a puller pulls: effects, or wakes that are due. Its methods are
// called by the puller's goroutine.
type pulled interface {
	// ensure makes sure of the consumer and returns its name.
	ensure(ctx context.Context) (consumer string, err error)
	// take gets a delivery to work on, if puller.begin allows that, and calls
	// puller.ended then. Else it gives the delivery back.
	take(m *nats.Msg, at natsio.AckReply, of token)
	// extend extends the leases of what is worked on.
	extend()
	waits(err error)          // the consumer can't be had now
	refused(err error)        // the server refuses requests
	attached(consumer string) // after either
}

// puller asks a consumer for as many deliveries as there are free slots.
type puller struct {
	source *Source
	stream string
	of     pulled
	slots  int
	lease  time.Duration

	consumer string
	inbox    string
	sub      *nats.Subscription
	msgs     chan *nats.Msg // of all inboxes, one after another
	held     atomic.Int64   // deliveries that are worked on
	freed    chan struct{}  // of capacity 1: fewer are held than lowWater
	lowWater atomic.Int64   // below how many held deliveries more are asked for

	request     uint64
	asked       int // deliveries that open requests may still bring
	draining    bool
	incarnation uint64    // of the connection that it is attached over
	heard       time.Time // last word of the server on this inbox
	extended    time.Time // when leases were extended
}

func newPuller(ctx context.Context, s *Source, stream string, of pulled, slots int, lease time.Duration) (*puller, error) {
	l := &puller{
		source: s, stream: stream, of: of, slots: slots, lease: lease,
		freed: make(chan struct{}, 1), extended: time.Now(),
	}
	l.lowWater.Store(math.MaxInt64) // until it has looked
	return l, l.attach(ctx)
}

// attach makes sure of the consumer and takes a new inbox, with no request
// open. What is under way to the former inbox still arrives, unless another
// connection delivers it: that could not be answered, and comes again.
func (l *puller) attach(ctx context.Context) error {
	nc, incarnation := l.source.conn.NC, l.source.conn.Incarnation()
	consumer, err := l.of.ensure(ctx)
	if err != nil {
		return err
	}
	msgs := l.msgs
	if msgs == nil || incarnation != l.incarnation {
		// Deliveries, and a few words on each request that brought them.
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

// detach ends interest, after what is under way has arrived.
func (l *puller) detach() {
	if l.sub != nil {
		_ = l.sub.Drain() // fails on a closed connection only
		l.sub = nil
	}
}

// run pulls until ctx ends, or until everything is given back after draining is
// closed.
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
			for range len(l.msgs) { // what has come with it
				attached = l.receive(<-l.msgs) && attached
			}
		case <-l.freed:
		case <-draining:
			draining, l.draining = nil, true
			l.lowWater.Store(math.MaxInt64) // each that ends may be the last
			l.detach()                      // what is under way is given back as it arrives
		case <-tick.C:
			attached = l.check(pulling, time.Now(), attached)
		}
	}
	l.handBack(ctx)
}

// fill asks for as many deliveries as there are free slots, when what is asked
// for is less than half of that: a request for each slot as it becomes free would
// cost the server as much as the delivery.
func (l *puller) fill() {
	l.lowWater.Store(int64(l.slots - 2*l.asked)) // before held is read: a delivery that ends now sees it, or is seen
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

// check extends leases, and attaches again when the requests are lost. It
// returns whether the puller is attached.
func (l *puller) check(ctx context.Context, now time.Time, attached bool) bool {
	if now.Sub(l.extended) >= l.lease/leasePart {
		l.extended = now
		l.of.extend()
	}
	lost := l.source.conn.Incarnation() != l.incarnation || l.asked > 0 && len(l.msgs) == 0 && now.Sub(l.heard) > pullSilence
	if l.draining || attached && !lost || !l.source.conn.IsConnected() {
		return attached
	}
	// It must not keep the next extension waiting.
	ctx, cancel := context.WithTimeout(ctx, l.lease/leasePart)
	defer cancel()
	if err := l.attach(ctx); err != nil {
		if ctx.Err() == nil {
			l.of.waits(err)
		}
		return false
	}
	l.of.attached(l.consumer)
	return true
}

// receive takes a message. It returns false if the requests are void.
func (l *puller) receive(m *nats.Msg) bool {
	l.heard = time.Now()
	if status, ok := readStatus(l.inbox, m); ok {
		return l.hear(status)
	}
	at, ok := natsio.ReadAckReply(m)
	if !ok {
		return true
	}
	if l.asked > 0 {
		l.asked--
	}
	l.of.take(m, at, token{m.Reply, l.incarnation})
	return true
}

func (l *puller) hear(s pullStatus) bool {
	switch s.code {
	case statusHeartbeat:
		return true
	case statusTimeout:
		l.asked = max(l.asked-s.left, 0)
		return true
	}
	l.of.refused(s.fault())
	return false
}

// begin notes that a delivery is worked on, and reports whether it may be.
func (l *puller) begin() bool {
	if l.draining || l.held.Load() >= int64(l.slots) {
		return false
	}
	l.held.Add(1)
	return true
}

// ended notes that a delivery is worked on no more. It wakes the puller if that wants
// to know: where it has asked for enough, a free slot changes nothing. It may be
// called from any goroutine.
func (l *puller) ended() {
	if l.held.Add(-1) >= l.lowWater.Load() {
		return
	}
	select {
	case l.freed <- struct{}{}:
	default:
	}
}

// handBack ends interest and gives back what had been asked for: nobody need
// wait for the end of its lease.
func (l *puller) handBack(ctx context.Context) {
	l.detach()
	ctx, cancel := context.WithTimeout(ctx, pullHeartbeat)
	defer cancel()
	_ = l.source.conn.NC.FlushWithContext(ctx) // what it does not bring comes again by itself
	for {
		select {
		case m := <-l.msgs:
			l.receive(m)
		default:
			return
		}
	}
}
