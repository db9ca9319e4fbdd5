package bus

import (
	"bytes"
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// Times of a bridge's pull requests.
const (
	lineExpires   = 30 * time.Second
	lineHeartbeat = 2 * time.Second
	lineSilence   = 3 * lineHeartbeat      // then the requests are taken as lost
	lineTick      = 250 * time.Millisecond // how soon a reconnect is noticed
	leasePart     = 3                      // a lease is extended every third of it
)

// line is a puller at work.
type line struct {
	p       *EffectPuller
	slots   int
	carry   func(*EffectDelivery)
	lease   time.Duration
	workers workerPool

	consumer string
	inbox    string
	sub      *nats.Subscription
	msgs     chan *nats.Msg // of all inboxes, one after another
	freed    chan struct{}  // of capacity 1: fewer are held than hungry
	hungry   atomic.Int64   // below how many held effects more are asked for

	request  uint64
	asked    int // deliveries that open requests may still bring
	draining bool
	epoch    uint64    // of the connection that it is attached over
	heard    time.Time // last word of the server on this inbox
	extended time.Time // when leases were extended
}

func (p *EffectPuller) newLine(ctx context.Context, slots int, carry func(*EffectDelivery)) (*line, error) {
	template, err := p.conf.bridgeConf(p.class, p.target)
	if err != nil {
		return nil, err
	}
	l := &line{
		p: p, slots: slots, carry: carry, lease: template.cfg.AckWait,
		freed: make(chan struct{}, 1), extended: time.Now(),
	}
	l.hungry.Store(math.MaxInt64) // until it has looked
	return l, l.attach(ctx)
}

// attach makes sure of the consumer and takes a new inbox, with no request
// open. What is under way to the former inbox still arrives, unless another
// connection delivers it: that could not be answered, and comes again.
func (l *line) attach(ctx context.Context) error {
	b := l.p.bus
	epoch := b.Epoch()
	consumer, err := b.EnsureBridge(ctx, l.p.conf, l.p.class, l.p.target)
	if err != nil {
		return err
	}
	msgs := l.msgs
	if msgs == nil || epoch != l.epoch {
		// Deliveries, and a few words on each request that brought them.
		msgs = make(chan *nats.Msg, 4*l.slots+64)
	}
	inbox := b.nc.NewInbox()
	sub, err := b.nc.ChanSubscribe(inbox+".*", msgs)
	if err != nil {
		return typed(err)
	}
	l.detach()
	l.consumer, l.inbox, l.sub, l.msgs, l.epoch = consumer, inbox, sub, msgs, epoch
	l.asked, l.heard = 0, time.Now()
	return nil
}

// detach ends interest, after what is under way has arrived.
func (l *line) detach() {
	if l.sub != nil {
		_ = l.sub.Drain() // fails on a closed connection only
		l.sub = nil
	}
}

// run pulls until ctx ends, or until everything is given back after Drain.
func (l *line) run(ctx context.Context) {
	defer l.workers.End()
	defer l.detach()
	pulling, cancel := untilDone(ctx, l.p.draining)
	defer cancel()
	tick := time.NewTicker(lineTick)
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
			l.hungry.Store(math.MaxInt64) // each that ends may be the last
			l.detach()                    // what is under way is given back as it arrives
		case <-tick.C:
			attached = l.check(pulling, time.Now(), attached)
		}
	}
	l.handBack(ctx)
}

// fill asks for as many effects as there are free slots, when what is asked
// for is less than half of that: a request for each slot as it becomes free would
// cost the server as much as the delivery.
func (l *line) fill() {
	l.hungry.Store(int64(l.slots - 2*l.asked)) // before it is looked: who ends one then sees it, or is seen
	slots := l.slots - l.p.holding()
	free := slots - l.asked
	if free <= 0 || 2*l.asked >= slots {
		return
	}
	l.request++
	err := l.p.bus.pull(l.p.conf.names.EffectsStream(), l.consumer, replySubject(l.inbox, l.request), pullRequest{
		Batch: free, Expires: lineExpires, Heartbeat: lineHeartbeat,
	})
	if err == nil {
		l.asked += free
	}
}

// check extends leases, and attaches anew when the requests are lost. It
// returns whether the line is attached.
func (l *line) check(ctx context.Context, now time.Time, attached bool) bool {
	if now.Sub(l.extended) >= l.lease/leasePart {
		l.extended = now
		l.p.extend()
	}
	lost := l.p.bus.Epoch() != l.epoch || l.asked > 0 && len(l.msgs) == 0 && now.Sub(l.heard) > lineSilence
	if l.draining || attached && !lost || !l.p.bus.nc.IsConnected() {
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
func (l *line) receive(m *nats.Msg) bool {
	l.heard = time.Now()
	if status, ok := readStatus(l.inbox, m); ok {
		return l.hear(status)
	}
	at, err := readDelivery(m)
	if err != nil {
		if !errors.Is(err, errNoDelivery) {
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

func (l *line) hear(s pullStatus) bool {
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
func (l *line) take(m *nats.Msg, at delivered) {
	p, of := l.p, token{m.Reply, l.epoch}
	name, err := p.bus.names.ParseEffect(m.Subject)
	if err != nil {
		p.skipped.Add(1)
		p.log.Warn("effect_skipped", "seq", at.seq, "error", err.Error())
		_ = p.bus.respond(of, ackDone) // else it is skipped again
		return
	}
	d := &EffectDelivery{
		EffectName: name, Subject: m.Subject, Payload: m.Data,
		TraceParent: traceParentOf(m.Header), Seq: at.seq, NumDelivered: at.count,
		line: l, held: heldEffect{bus: p.bus, payload: m.Data, token: of},
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

// ended notes that an effect is no longer held, and wakes the line if it wants to
// know: where it has asked for enough, a free slot changes nothing.
func (l *line) ended(d *EffectDelivery) {
	if held := l.p.release(d); int64(held) >= l.hungry.Load() {
		return
	}
	select {
	case l.freed <- struct{}{}:
	default:
	}
}

// handBack ends interest and gives back what had been asked for: another
// bridge need not wait for the end of its lease.
func (l *line) handBack(ctx context.Context) {
	l.detach()
	ctx, cancel := context.WithTimeout(ctx, lineHeartbeat)
	defer cancel()
	_ = l.p.bus.nc.FlushWithContext(ctx) // what it does not bring comes again by itself
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
