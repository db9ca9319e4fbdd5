package delivery

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

// EffectPuller pulls the effects of one class and target from the durable consumer
// that all their bridges share.
type EffectPuller struct {
	source *Source
	conf   *streams.Conf
	class  session.Class
	target string
	log    *slog.Logger

	carry   func(*EffectDelivery)
	puller  *puller
	workers workerPool

	once
	mu   sync.Mutex
	held map[string]*leased // by subject: an effect is carried out once at a time
}

// Effects returns the puller of a class and target.
func (s *Source) Effects(conf *streams.Conf, class session.Class, target string) *EffectPuller {
	return &EffectPuller{
		source: s, conf: conf, class: class, target: target,
		log:     s.conn.Log.With("class", string(class), "target", target),
		workers: make(workerPool), held: make(map[string]*leased), once: once{draining: make(chan struct{})},
	}
}

// Run creates or updates the consumer, pulls effects, and calls carry for each in its
// own goroutine, at most slots at once. It requests no more effects than there are free
// slots. A slot is occupied until carry returns or calls Done; until then the lease is
// extended. If the effect is redelivered in that time (the server forgot the lease),
// carry is not called again; later it is.
//
// Run survives restarts of the server and the deletion of the consumer. It returns nil
// at once when ctx ends, or when Drain is done. It returns an error only if the consumer
// can't be created at the start.
func (p *EffectPuller) Run(ctx context.Context, slots int, carry func(*EffectDelivery)) error {
	if slots < 1 {
		return fmt.Errorf("pull effects of %s/%s: %d slots: want at least 1", p.class, p.target, slots)
	}
	done, err := p.begin()
	if err != nil {
		return err
	}
	defer close(done)
	l, err := p.newPuller(ctx, slots, carry)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("pull effects of %s/%s: %w", p.class, p.target, err)
	}
	defer close(p.workers)
	l.run(ctx, p.draining)
	return nil
}

func (p *EffectPuller) newPuller(ctx context.Context, slots int, carry func(*EffectDelivery)) (*puller, error) {
	lease, err := p.conf.Lease(p.class, p.target)
	if err != nil {
		return nil, err
	}
	p.carry = carry
	p.puller, err = newPuller(ctx, p.source, p.source.names.EffectsStream(), p, slots, lease)
	return p.puller, err
}

func (p *EffectPuller) ensure(ctx context.Context) (consumer string, err error) {
	return p.source.streams.EnsureBridge(ctx, p.conf, p.class, p.target)
}

func (p *EffectPuller) logWaiting(err error) { p.log.Warn("effects_waiting", "error", err.Error()) }

func (p *EffectPuller) logRefused(err error) {
	p.log.Warn("effects_pull_refused", "error", err.Error())
}

func (p *EffectPuller) logAttached(consumer string) {
	p.log.Info("effects_attached", "consumer", consumer)
}

// EffectDelivery is one effect for a bridge to carry out.
type EffectDelivery struct {
	subjects.EffectName        // class, target, session, effect
	Subject             string // as published
	Payload             []byte // owned by the receiver
	TraceParent         string // W3C trace context, or empty
	Seq                 uint64 // of the effects stream
	Again               bool   // the server remembers an earlier delivery

	held leased
	of   *EffectPuller
	done atomic.Bool
}

type carryOut EffectDelivery

// Run carries an effect out.
func (o *carryOut) Run() {
	d := (*EffectDelivery)(o)
	d.of.carry(d)
	d.Done()
}

// leased is a delivery that this process works on: its lease is extended until it has its
// answer.
type leased struct {
	source  *Source
	payload []byte

	mu     sync.Mutex
	token  token  // of the latest delivery
	answer []byte // nil while it is worked on
}

// Ack acknowledges the settled effect. It returns at once. The effect is not delivered
// again, unless the ack is lost or the server forgets it.
func (d *EffectDelivery) Ack() { d.held.end(ackDone) }

// Nak returns the effect: the server delivers it to any bridge after delay. It returns
// at once.
func (d *EffectDelivery) Nak(delay time.Duration) {
	d.held.end(nakFor(delay))
}

// Done frees the delivery's slot for a carry that may never return; the return of carry
// frees it too. Further calls do nothing.
func (d *EffectDelivery) Done() {
	if d.done.Swap(true) {
		return
	}
	d.of.release(d)
	d.of.puller.ended()
}

// end sends the final answer, and repeats it for redeliveries.
func (h *leased) end(answer []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = answer
	h.send(answer)
}

// extend extends the lease, unless the delivery has its answer: after a nak it would
// delay the redelivery.
func (h *leased) extend() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.answer == nil {
		h.send(ackProgress)
	}
}

// redelivered answers a redelivery: the server has begun another lease, or has
// forgotten the answer.
func (h *leased) redelivered(t token) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.token = t
	answer := h.answer
	if answer == nil {
		answer = ackProgress
	}
	h.send(answer)
}

// send may fail; the server redelivers the effect then.
func (h *leased) send(body []byte) { _ = h.source.respond(h.token, body) }

// accept carries an effect out, or returns it to the server.
func (p *EffectPuller) accept(m *nats.Msg, at natsio.AckReply, of token) {
	if p.source.conn.Ignores(m) {
		_ = p.source.respond(of, ackDone)
		return
	}
	name, err := p.source.names.ParseEffect(m.Subject)
	if err != nil {
		p.log.Warn("effect_skipped", "seq", at.Seq, "error", err.Error())
		_ = p.source.respond(of, ackDone) // else it is redelivered, and skipped again
		return
	}
	d := &EffectDelivery{
		EffectName: name, Subject: m.Subject, Payload: m.Data,
		TraceParent: natsio.TraceParentOf(m.Header), Seq: at.Seq, Again: at.Count > 1,
		of: p, held: leased{source: p.source, payload: m.Data, token: of},
	}
	if other := p.hold(d); other != nil {
		other.redelivered(of)
		return
	}
	if !p.puller.begin() {
		p.release(d)
		d.Nak(0)
		return
	}
	p.workers.Go((*carryOut)(d))
}

// hold records that an effect is being carried out. If it already is, hold returns that
// one. An effect of the same name with other bytes replaces the held one: the stream
// holds one message of a name, so it has lost the former, and its tokens are void.
func (p *EffectPuller) hold(d *EffectDelivery) (other *leased) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if other, known := p.held[d.Subject]; known && bytes.Equal(other.payload, d.Payload) {
		return other
	}
	p.held[d.Subject] = &d.held
	return nil
}

func (p *EffectPuller) release(d *EffectDelivery) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[d.Subject] == &d.held {
		delete(p.held, d.Subject)
	}
}

func (p *EffectPuller) extend() {
	p.mu.Lock()
	all := make([]*leased, 0, len(p.held))
	for _, h := range p.held {
		all = append(all, h)
	}
	p.mu.Unlock()
	for _, h := range all {
		h.extend()
	}
}
