package delivery

import (
	"bytes"
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/internal/natsio"
)

// Times of a bridge's pull requests.
const (
	pullExpires   = 30 * time.Second
	pullHeartbeat = 2 * time.Second
	pullSilence   = 3 * pullHeartbeat      // then the requests are taken as lost
	pullTick      = 250 * time.Millisecond // how soon a reconnect is noticed
	leasePart     = 3                      // a lease is extended every third of it
)

// puller pulls for one EffectPuller, while that runs.
type puller struct {
	p       *EffectPuller
	slots   int
	carry   func(*EffectDelivery)
	lease   time.Duration
	workers workerPool

	consumer string
	inbox    string
	sub      *nats.Subscription
	msgs     chan *nats.Msg // of all inboxes, one after another
	freed    chan struct{}  // of capacity 1: fewer are held than lowWater
	lowWater atomic.Int64   // below how many held effects more are asked for

	request    uint64
	asked      int // deliveries that open requests may still bring
	draining   bool
	generation uint64    // of the connection that it is attached over
	heard      time.Time // last word of the server on this inbox
	extended   time.Time // when leases were extended
}

func (p *EffectPuller) newPuller(ctx context.Context, slots int, carry func(*EffectDelivery)) (*puller, error) {
	lease, err := p.conf.Lease(p.class, p.target)
	if err != nil {
		return nil, err
	}
	l := &puller{
		p: p, slots: slots, carry: carry, lease: lease,
		freed: make(chan struct{}, 1), extended: time.Now(),
	}
	l.lowWater.Store(math.MaxInt64) // until it has looked
	return l, l.attach(ctx)
}

// attach makes sure of the consumer and takes a new inbox, with no request
// open. What is under way to the former inbox still arrives, unless another
// connection delivers it: that could not be answered, and comes again.
func (l *puller) attach(ctx context.Context) error {
	s := l.p.source
	generation := s.conn.Generation()
	consumer, err := s.streams.EnsureBridge(ctx, l.p.conf, l.p.class, l.p.target)
	if err != nil {
		return err
	}
	msgs := l.msgs
	if msgs == nil || generation != l.generation {
		// Deliveries, and a few words on each request that brought them.
		msgs = make(chan *nats.Msg, 4*l.slots+64)
	}
	inbox := s.conn.NC.NewInbox()
	sub, err := s.conn.NC.ChanSubscribe(inbox+".*", msgs)
	if err != nil {
		return natsio.Typed(err)
	}
	l.detach()
	l.consumer, l.inbox, l.sub, l.msgs, l.generation = consumer, inbox, sub, msgs, generation
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

// run pulls until ctx ends, or until everything is given back after Drain.
func (l *puller) run(ctx context.Context) {
	defer l.workers.End()
	defer l.detach()
	pulling, cancel := untilDone(ctx, l.p.draining)
	defer cancel()
	tick := time.NewTicker(pullTick)
	defer tick.Stop()
	draining := l.p.draining
	attached := true
	for !l.draining || l.p.holding() > 0 {
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

// fill asks for as many effects as there are free slots, when what is asked
// for is less than half of that: a request for each slot as it becomes free would
// cost the server as much as the delivery.
func (l *puller) fill() {
	l.lowWater.Store(int64(l.slots - 2*l.asked)) // before it is looked: who ends one then sees it, or is seen
	slots := l.slots - l.p.holding()
	free := slots - l.asked
	if free <= 0 || 2*l.asked >= slots {
		return
	}
	l.request++
	err := l.p.source.pull(l.p.source.names.EffectsStream(), l.consumer, natsio.ReplySubject(l.inbox, l.request), pullRequest{
		Batch: free, Expires: pullExpires, Heartbeat: pullHeartbeat,
	})
	if err == nil {
		l.asked += free
	}
}

// check extends leases, and attaches anew when the requests are lost. It
// returns whether the puller is attached.
func (l *puller) check(ctx context.Context, now time.Time, attached bool) bool {
	if now.Sub(l.extended) >= l.lease/leasePart {
		l.extended = now
		l.p.extend()
	}
	lost := l.p.source.conn.Generation() != l.generation || l.asked > 0 && len(l.msgs) == 0 && now.Sub(l.heard) > pullSilence
	if l.draining || attached && !lost || !l.p.source.conn.NC.IsConnected() {
		return attached
	}
	// It must not keep the next extension waiting.
	ctx, cancel := context.WithTimeout(ctx, l.lease/leasePart)
	defer cancel()
	if err := l.attach(ctx); err != nil {
		if ctx.Err() == nil {
			l.p.log.Warn("effects_waiting", "error", err.Error())
		}
		return false
	}
	l.p.log.Info("effects_attached", "consumer", l.consumer)
	return true
}

// receive takes a message. It returns false if the requests are void.
func (l *puller) receive(m *nats.Msg) bool {
	l.heard = time.Now()
	if status, ok := readStatus(l.inbox, m); ok {
		return l.hear(status)
	}
	at, err := natsio.ReadAckReply(m)
	if err != nil {
		if !errors.Is(err, natsio.ErrNoDelivery) {
			l.p.log.Warn("effect_delivery_unreadable", "reply", m.Reply, "error", err.Error())
		}
		return true
	}
	if l.asked > 0 {
		l.asked--
	}
	l.take(m, at)
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
	l.p.log.Warn("effects_pull_refused", "error", s.fault().Error())
	return false
}

// take gives an effect to carry, or back to the server.
func (l *puller) take(m *nats.Msg, at natsio.AckReply) {
	p, of := l.p, token{m.Reply, l.generation}
	name, err := p.source.names.ParseEffect(m.Subject)
	if err != nil {
		p.skipped.Add(1)
		p.log.Warn("effect_skipped", "seq", at.Seq, "error", err.Error())
		_ = p.source.respond(of, ackDone) // else it is skipped again
		return
	}
	d := &EffectDelivery{
		EffectName: name, Subject: m.Subject, Payload: m.Data,
		TraceParent: natsio.TraceParentOf(m.Header), Seq: at.Seq, NumDelivered: at.Count,
		puller: l, held: heldEffect{source: p.source, payload: m.Data, token: of},
	}
	other, holding := p.hold(d)
	if other != nil {
		other.again(of)
		return
	}
	if l.draining || holding > l.slots {
		p.release(d)
		d.Nak(0)
		return
	}
	l.workers.Go((*carryOut)(d))
}

// ended notes that an effect is no longer held, and wakes the puller if it wants to
// know: where it has asked for enough, a free slot changes nothing.
func (l *puller) ended(d *EffectDelivery) {
	if held := l.p.release(d); int64(held) >= l.lowWater.Load() {
		return
	}
	select {
	case l.freed <- struct{}{}:
	default:
	}
}

// handBack ends interest and gives back what had been asked for: another
// bridge need not wait for the end of its lease.
func (l *puller) handBack(ctx context.Context) {
	l.detach()
	ctx, cancel := context.WithTimeout(ctx, pullHeartbeat)
	defer cancel()
	_ = l.p.source.conn.NC.FlushWithContext(ctx) // what it does not bring comes again by itself
	for {
		select {
		case m := <-l.msgs:
			l.receive(m)
		default:
			return
		}
	}
}

// hold notes that an effect is being carried out, and returns how many are then;
// other is what has it already. One of the same name and of other bytes is another
// effect: the stream holds one message of a name, so it has lost the former. That
// is not held any more, and its tokens are of nothing.
func (p *EffectPuller) hold(d *EffectDelivery) (other *heldEffect, holding int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if other, known := p.held[d.Subject]; known && bytes.Equal(other.payload, d.Payload) {
		return other, len(p.held)
	}
	p.held[d.Subject] = &d.held
	return nil, len(p.held)
}

// release returns how many are held still.
func (p *EffectPuller) release(d *EffectDelivery) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[d.Subject] == &d.held {
		delete(p.held, d.Subject)
	}
	return len(p.held)
}

func (p *EffectPuller) holding() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.held)
}

// extend extends the leases of all that is held.
func (p *EffectPuller) extend() {
	p.mu.Lock()
	all := make([]*heldEffect, 0, len(p.held))
	for _, h := range p.held {
		all = append(all, h)
	}
	p.mu.Unlock()
	for _, h := range all {
		h.extend()
	}
}
