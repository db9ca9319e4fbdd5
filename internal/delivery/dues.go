package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// DueDelivery is a due wake.
type DueDelivery struct {
	Session, Wake string
	Payload       []byte    // as scheduled; owned by the receiver
	Fired         time.Time // when the schedule fired, by the server's clock
	NumDelivered  uint64

	source *Source
	token  token
}

// Ack deletes the settled wake from the stream. It returns at once. The ack may be
// lost, and then the wake is delivered again.
func (d DueDelivery) Ack() { _ = d.source.respond(d.token, ackDone) }

// Nak returns the wake: the server delivers it to any session-actor after delay. It
// returns at once.
func (d DueDelivery) Nak(delay time.Duration) { _ = d.source.respond(d.token, nakFor(delay)) }

// DuePuller pulls due wakes from the durable consumer that all session-actors share.
type DuePuller struct {
	source *Source
	log    *slog.Logger

	carry  func(DueDelivery)
	puller *puller
}

// Dues returns a puller.
func (s *Source) Dues() *DuePuller {
	return &DuePuller{source: s, log: s.conn.Log.With("consumer", subjects.DueConsumer)}
}

// dueLease is the lease of a wake (ack_wait in streams.conf).
const dueLease = 5 * time.Second

// Run pulls due wakes and calls carry for each in a new goroutine, at most slots at
// once. It requests no more wakes than there are free slots. A lease is not extended: a
// wake whose carry takes longer is delivered again.
//
// Run survives restarts of the server. It recreates a deleted consumer if this process
// provisioned it. When ctx ends, Run returns the wakes that still arrive, waits until
// every carry has returned, and returns nil. It returns an error only if the consumer
// does not exist at the start. A puller runs once.
func (p *DuePuller) Run(ctx context.Context, slots int, carry func(DueDelivery)) error {
	l, err := newPuller(ctx, p.source, p.source.names.TimersStream(), p, slots, dueLease)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return fmt.Errorf("pull due wakes: %w", err)
	}
	p.carry, p.puller = carry, l
	l.run(context.WithoutCancel(ctx), ctx.Done())
	return nil
}

func (p *DuePuller) ensure(ctx context.Context) (consumer string, err error) {
	if err := p.source.streams.EnsureDue(ctx); err != nil {
		return "", err
	}
	err = p.source.conn.Retry(ctx, func(ctx context.Context) error {
		_, err := p.source.conn.JS.Consumer(ctx, p.source.names.TimersStream(), subjects.DueConsumer)
		return err
	})
	return subjects.DueConsumer, err
}

func (*DuePuller) extend() {}

func (p *DuePuller) logWaiting(err error) { p.log.Warn("due_waiting", "error", err.Error()) }

func (p *DuePuller) logRefused(err error) { p.logWaiting(err) }

func (*DuePuller) logAttached(string) {}

// accept carries a wake out, or returns it to the server. It acknowledges a message that
// is no wake.
func (p *DuePuller) accept(m *nats.Msg, at natsio.AckReply, of token) {
	d := DueDelivery{Payload: m.Data, Fired: at.Time, NumDelivered: at.Count, source: p.source, token: of}
	if p.source.conn.Ignores(m) {
		d.Ack()
		return
	}
	var err error
	if d.Session, d.Wake, err = p.source.names.ParseDue(m.Subject); err != nil {
		p.log.Warn("due_skipped", "subject", m.Subject, "error", err.Error())
		d.Ack()
		return
	}
	if !p.puller.begin() {
		d.Nak(0)
		return
	}
	go func() {
		p.carry(d)
		p.puller.ended()
	}()
}
