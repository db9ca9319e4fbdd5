package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

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

	skipped atomic.Uint64
}

// Dues returns a puller.
func (s *Source) Dues() *DuePuller {
	return &DuePuller{source: s, log: s.conn.Log.With("consumer", subjects.DueConsumer)}
}

// Skipped returns how many messages were acked unread since the start, because
// their subjects are no wake's.
func (p *DuePuller) Skipped() uint64 { return p.skipped.Load() }

// dueHeartbeat is how often a server that has nothing due says that it is
// there; twice that without a word, and the request is taken as lost.
const dueHeartbeat = 2 * time.Second

// Run pulls and calls carry for each wake that is due, in a goroutine of its own,
// at most slots at once. A lease is not extended: what takes longer is delivered
// again.
//
// Run outlives restarts of the server. A consumer that is deleted is made again if
// this process provisioned it. When ctx ends, Run waits until every carry has returned,
// and returns nil. It returns an error only if the consumer is not there at the
// start. A wake that the server sends after the end is delivered again, to another
// session-actor, when its lease is over.
func (p *DuePuller) Run(ctx context.Context, slots int, carry func(DueDelivery)) error {
	var carrying sync.WaitGroup
	defer carrying.Wait()
	free := make(chan struct{}, slots)
	take := func(m jetstream.Msg, generation uint64) {
		d, ok := p.read(m, generation)
		if !ok {
			return
		}
		free <- struct{}{}
		carrying.Go(func() {
			carry(d)
			<-free
		})
	}
	for first := true; ; first = false {
		generation := p.source.conn.Generation()
		it, err := p.attach(ctx, slots)
		switch {
		case ctx.Err() != nil:
			if it != nil {
				it.Stop()
			}
			return nil
		case err != nil && first:
			return fmt.Errorf("pull what is due: %w", err)
		case err == nil:
			err = p.pump(ctx, it, generation, take)
		}
		if ctx.Err() != nil {
			return nil
		}
		p.log.Warn("due_waiting", "error", err.Error())
		_ = natsio.Sleep(ctx, natsio.ReconnectWait) // ends early with ctx, which attach sees
	}
}

// attach creates the consumer if this process provisions it, and asks for messages.
func (p *DuePuller) attach(ctx context.Context, slots int) (it jetstream.MessagesContext, err error) {
	if err := p.source.streams.EnsureDue(ctx); err != nil {
		return nil, err
	}
	err = p.source.conn.Retry(ctx, func(ctx context.Context) error {
		consumer, err := p.source.conn.JS.Consumer(ctx, p.source.names.TimersStream(), subjects.DueConsumer)
		if err != nil {
			return err
		}
		it, err = consumer.Messages(
			jetstream.PullMaxMessages(slots), jetstream.PullExpiry(pullExpires), jetstream.PullHeartbeat(dueHeartbeat),
		)
		return err
	})
	return it, natsio.Typed(err)
}

// pump takes messages until the requests are void, or another connection is made,
// and says why; when ctx ends it takes what has arrived by then.
func (p *DuePuller) pump(ctx context.Context, it jetstream.MessagesContext, generation uint64, take func(m jetstream.Msg, generation uint64)) error {
	defer it.Stop()
	defer context.AfterFunc(ctx, it.Drain)()
	lost, ended := make(chan struct{}, 1), make(chan struct{})
	defer p.source.conn.Listen(nil, lost)()
	defer close(ended)
	go func() {
		select {
		case <-lost:
			it.Stop()
		case <-ended:
		}
	}()
	for p.source.conn.Generation() == generation {
		m, err := it.Next()
		if err != nil {
			return err
		}
		take(m, generation)
	}
	return natsio.ErrReconnected
}

// read makes a delivery of a message; ok is false if it is none, and then it
// is acked.
func (p *DuePuller) read(m jetstream.Msg, generation uint64) (d DueDelivery, ok bool) {
	meta, err := m.Metadata()
	d = DueDelivery{Payload: m.Data(), source: p.source, token: token{m.Reply(), generation}}
	if err == nil {
		d.Fired, d.NumDelivered = meta.Timestamp, meta.NumDelivered
		d.Session, d.Wake, err = p.source.names.ParseDue(m.Subject())
	}
	if err != nil {
		p.skipped.Add(1)
		p.log.Warn("due_skipped", "subject", m.Subject(), "error", err.Error())
		d.Ack()
		return DueDelivery{}, false
	}
	return d, true
}
