package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/streams"
)

// NoticeOwner receives the notices of a webhook. NoticePuller.Run calls its methods from
// one goroutine at a time; they must not block.
type NoticeOwner interface {
	// Deliver queues a message. It may be older than ones that are queued.
	Deliver(d *NoticeDelivery)
	// Settled says whether queued messages may be begun. It is false while another
	// process may hold messages that are older than queued ones, and at the start.
	Settled(is bool)
	// GiveBack is called when another process may deliver, and when Run ends: queued
	// messages are given back. Those that are begun may end.
	GiveBack()
}

// NoticeDelivery is a message of notices about one event.
type NoticeDelivery struct {
	Session string
	Payload []byte    // JSON, a notice a line; owned by the receiver
	Seq     uint64    // in the stream of notices
	Time    time.Time // when it was stored, by the server's clock
	Pending uint64    // messages that were not delivered yet

	held leased
	of   *NoticePuller
}

// Ack says that the message is done. It returns at once. The ack may be lost, and then
// the message is delivered again.
func (d *NoticeDelivery) Ack() {
	d.held.end(ackDone)
	d.of.release(d)
}

// Nak gives the message back: the NATS server delivers it again, to the process that is
// pinned then. It returns at once.
func (d *NoticeDelivery) Nak() {
	d.held.end(nakFor(0))
	d.of.release(d)
}

// NoticePuller pulls the notices of a webhook from the durable consumer that all servers
// share. NATS pins one of them, which gets all deliveries; another one is pinned when it is
// gone.
//
// The order of a session's messages holds across servers by one rule. Deliveries of a
// consumer are numbered. While their numbers have no gap, this process has got all of
// them, and holds all that are not acknowledged. After a gap, another process may hold
// older ones, so nothing is begun until the consumer's count of unacknowledged messages
// is the number that this process holds. What a process held when it died is delivered
// again when its leases end.
type NoticePuller struct {
	source  *Source
	conf    *streams.Conf
	webhook string
	log     *slog.Logger

	owner    NoticeOwner
	puller   *puller
	consumer string
	next     uint64 // number of the next delivery, if none is missed
	settled  bool

	mu   sync.Mutex
	held map[uint64]*NoticeDelivery // by sequence
}

// Notices returns the puller of a webhook.
func (s *Source) Notices(conf *streams.Conf, webhook string) *NoticePuller {
	return &NoticePuller{
		source: s, conf: conf, webhook: webhook, log: s.conn.Log.With("webhook", webhook),
		next: 1, held: make(map[uint64]*NoticeDelivery),
	}
}

// Run creates or updates the consumer, if this user may, and delivers its messages to
// owner until ctx ends. The lease of a delivery is extended until Ack or Nak. It survives
// restarts of the server.
//
// When ctx ends, Run waits until the owner has answered all deliveries, and returns nil.
// It returns an error only if the consumer can't be used at the start. A puller runs once.
func (p *NoticePuller) Run(ctx context.Context, owner NoticeOwner) error {
	lease, unacked, ttl := p.conf.WebhookLimits()
	p.owner, p.settled = owner, true
	l, err := newPuller(ctx, p.source, p.source.names.NoticesStream(), p, unacked, lease)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return fmt.Errorf("pull the notices of webhook %s: %w", p.webhook, err)
	}
	l.pin = &pin{ttl: ttl, giveBack: p.giveBack, check: p.settle}
	p.puller = l
	owner.Settled(true)
	l.run(context.WithoutCancel(ctx), ctx.Done())
	return nil
}

func (p *NoticePuller) ensure(ctx context.Context) (consumer string, err error) {
	p.consumer, err = p.source.streams.EnsureWebhook(ctx, p.conf, p.webhook)
	return p.consumer, err
}

func (p *NoticePuller) logWaiting(err error) { p.log.Warn("webhook_waiting", "error", err.Error()) }

func (p *NoticePuller) logRefused(err error) {
	p.log.Warn("webhook_pull_refused", "error", err.Error())
}

func (p *NoticePuller) logAttached(consumer string) {
	p.log.Info("webhook_attached", "consumer", consumer)
}

// accept hands a message to the owner, unless it has it.
func (p *NoticePuller) accept(m *nats.Msg, at natsio.AckReply, of token) {
	if at.ConsumerSeq != p.next {
		p.unsettle()
	}
	p.next = at.ConsumerSeq + 1
	sid, err := p.source.names.ParseOut(m.Subject)
	if err != nil || p.source.conn.Ignores(m) {
		_ = p.source.respond(of, ackDone)
		return
	}
	if p.puller.draining {
		_ = p.source.respond(of, nakFor(0))
		return
	}
	d := &NoticeDelivery{
		Session: sid, Payload: m.Data, Seq: at.Seq, Time: at.Time, Pending: at.Pending,
		of: p, held: leased{source: p.source, token: of},
	}
	if other := p.hold(d); other != nil {
		other.held.redelivered(of)
		return
	}
	p.puller.held.Add(1)
	p.owner.Deliver(d)
}

// hold records a delivery. If its message is held already, hold returns that.
func (p *NoticePuller) hold(d *NoticeDelivery) (other *NoticeDelivery) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if other := p.held[d.Seq]; other != nil {
		return other
	}
	p.held[d.Seq] = d
	return nil
}

func (p *NoticePuller) release(d *NoticeDelivery) {
	p.mu.Lock()
	delete(p.held, d.Seq)
	p.mu.Unlock()
	p.puller.ended()
}

func (p *NoticePuller) extend() {
	p.mu.Lock()
	all := make([]*NoticeDelivery, 0, len(p.held))
	for _, d := range p.held {
		all = append(all, d)
	}
	p.mu.Unlock()
	for _, d := range all {
		d.held.extend()
	}
}

func (p *NoticePuller) giveBack() {
	p.log.Info("webhook_given_back")
	p.unsettle()
	p.owner.GiveBack()
}

func (p *NoticePuller) unsettle() {
	if p.settled {
		p.settled = false
		p.owner.Settled(false)
	}
}

// settle finds out whether this process holds everything that is not acknowledged.
func (p *NoticePuller) settle(ctx context.Context) {
	if p.settled || p.puller.pin.id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	consumer, err := p.source.conn.JS.Consumer(ctx, p.source.names.NoticesStream(), p.consumer)
	if err != nil {
		return // it is asked again
	}
	p.mu.Lock()
	held := len(p.held)
	p.mu.Unlock()
	if consumer.CachedInfo().NumAckPending == held && len(p.puller.msgs) == 0 {
		p.settled = true
		p.owner.Settled(true)
		p.log.Info("webhook_settled", "held", held)
	}
}
