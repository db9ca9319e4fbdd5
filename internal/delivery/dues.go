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

// DueDelivery is a wake whose time has come.
type DueDelivery struct {
	Session, Wake string
	Payload       []byte    // as scheduled; the receiver's to keep
	Fired         time.Time // when the schedule fired, by the server's clock
	NumDelivered  uint64

	source *Source
	token  token
}

// Ack says that the wake is settled: it is not delivered again, and the stream
// forgets it. It returns at once, and the answer may be lost.
func (d DueDelivery) Ack() { _ = d.source.respond(d.token, ackDone) } // if it fails it comes again

// Nak gives the wake back: some session-actor is offered it after delay. It
// returns at once.
func (d DueDelivery) Nak(delay time.Duration) { _ = d.source.respond(d.token, nakFor(delay)) }

// DuePuller gets what has come due from the durable consumer of all
// session-actors, of which several may pull at once.
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

// dueLease is about how long a wake may take (ack_wait in streams.conf). It is not
// extended.
const dueLease = 5 * time.Second

// Run pulls and calls carry for each wake that is due, in a goroutine of its own,
// at most slots at once. No more is asked of the server than there are free slots. A
// lease is not extended: what takes longer is delivered again.
//
// Run outlives restarts of the server. A consumer that is deleted is made again if
// this process provisioned it. When ctx ends, Run gives back what still arrives, waits
// until every carry has returned, and returns nil. It returns an error only if the
// consumer is not there at the start. A puller is run once.
func (p *DuePuller) Run(ctx context.Context, slots int, carry func(DueDelivery)) error {
	l, err := newPuller(ctx, p.source, p.source.names.TimersStream(), p, slots, dueLease)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return fmt.Errorf("pull what is due: %w", err)
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

func (p *DuePuller) waits(err error) { p.log.Warn("due_waiting", "error", err.Error()) }

func (p *DuePuller) refused(err error) { p.waits(err) }

func (*DuePuller) attached(string) {}

// take carries a wake out, or gives it back to the server. A message that is no wake
// is acked.
func (p *DuePuller) take(m *nats.Msg, at natsio.AckReply, of token) {
	d := DueDelivery{Payload: m.Data, Fired: at.Time, NumDelivered: at.Count, source: p.source, token: of}
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
