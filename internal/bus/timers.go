package bus

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

// scheduleTime is RFC 3339 with milliseconds, as dues have them. The client
// library writes whole seconds, and so would let a schedule fire early.
const scheduleTime = "2006-01-02T15:04:05.000Z07:00"

// scheduleMost is how far ahead a schedule lies at most. A wake that is due later
// fires early, and whoever pulls it stores it again.
const scheduleMost = 10 * 365 * 24 * time.Hour

// wakeWrite returns the message schedule that a wake is: it comes back in a
// DueDelivery with its payload at its deadline, by the server's clock and up to
// 400 ms later. Storing a wake again replaces its schedule; a time in the past is
// now.
func (b *Bus) wakeWrite(sid string, wake *session.Effect) (*write, error) {
	timer, err := b.names.Timer(sid, wake.Name, wake.Deadline)
	if err != nil {
		return nil, fmt.Errorf("schedule %s of %s: %w", wake.Name, sid, err)
	}
	due, err := b.names.Due(sid, wake.Name)
	if err != nil {
		return nil, fmt.Errorf("schedule %s of %s: %w", wake.Name, sid, err)
	}
	at := time.UnixMilli(min(wake.Deadline, time.Now().Add(scheduleMost).UnixMilli())).UTC()
	w := &write{subject: timer, data: wake.Payload, msgpack: true, schedule: subjects.ScheduleAt + at.Format(scheduleTime), target: due}
	return w, b.check(w, session.EffectBytesMax)
}

// DueDelivery is a wake whose time has come.
type DueDelivery struct {
	Session, Wake string
	Payload       []byte    // as scheduled; the receiver's to keep
	Fired         time.Time // when the schedule fired, by the server's clock
	NumDelivered  uint64

	bus   *Bus
	token token
}

// Ack says that the wake is settled: it is not delivered again, and the stream
// forgets it. It returns at once, and the answer may be lost.
func (d DueDelivery) Ack() { _ = d.bus.respond(d.token, ackDone) } // if it fails it comes again

// Nak gives the wake back: some session-actor is offered it after delay. It
// returns at once.
func (d DueDelivery) Nak(delay time.Duration) { _ = d.bus.respond(d.token, nakFor(delay)) }

// DuePuller gets what has come due from the durable consumer of all
// session-actors, of which several may pull at once.
type DuePuller struct {
	bus *Bus
	log *slog.Logger

	skipped atomic.Uint64
}

// Dues returns a puller.
func (b *Bus) Dues() *DuePuller {
	return &DuePuller{bus: b, log: b.log.With("consumer", subjects.DueConsumer)}
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
// this Bus provisioned it. When ctx ends, Run waits until every carry has returned,
// and returns nil. It returns an error only if the consumer is not there at the
// start. A wake that the server sends after the end is delivered again, to another
// session-actor, when its lease is over.
func (p *DuePuller) Run(ctx context.Context, slots int, carry func(DueDelivery)) error {
	var carrying sync.WaitGroup
	defer carrying.Wait()
	free := make(chan struct{}, slots)
	take := func(m jetstream.Msg, epoch uint64) {
		d, ok := p.read(m, epoch)
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
		epoch := p.bus.Epoch()
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
			err = p.pump(ctx, it, epoch, take)
		}
		if ctx.Err() != nil {
			return nil
		}
		p.log.Warn("due_waiting", "error", err.Error())
		_ = sleep(ctx, reconnectWait) // ends early with ctx, which attach sees
	}
}

// attach creates the consumer if this Bus provisions it, and asks for messages.
func (p *DuePuller) attach(ctx context.Context, slots int) (it jetstream.MessagesContext, err error) {
	if conf := p.bus.lanes.Load(); conf != nil {
		if err := p.bus.ensureDue(ctx, conf); err != nil {
			return nil, err
		}
	}
	err = p.bus.retry(ctx, func(ctx context.Context) error {
		consumer, err := p.bus.js.Consumer(ctx, p.bus.names.TimersStream(), subjects.DueConsumer)
		if err != nil {
			return err
		}
		it, err = consumer.Messages(
			jetstream.PullMaxMessages(slots), jetstream.PullExpiry(lineExpires), jetstream.PullHeartbeat(dueHeartbeat),
		)
		return err
	})
	return it, typed(err)
}

// pump takes messages until the requests are void, or another connection is made,
// and says why; when ctx ends it takes what has arrived by then.
func (p *DuePuller) pump(ctx context.Context, it jetstream.MessagesContext, epoch uint64, take func(m jetstream.Msg, epoch uint64)) error {
	defer it.Stop()
	defer context.AfterFunc(ctx, it.Drain)()
	lost, ended := make(chan struct{}, 1), make(chan struct{})
	defer p.bus.open.listen(nil, lost)()
	defer close(ended)
	go func() {
		select {
		case <-lost:
			it.Stop()
		case <-ended:
		}
	}()
	for p.bus.Epoch() == epoch {
		m, err := it.Next()
		if err != nil {
			return err
		}
		take(m, epoch)
	}
	return errReconnected
}

// read makes a delivery of a message; ok is false if it is none, and then it
// is acked.
func (p *DuePuller) read(m jetstream.Msg, epoch uint64) (d DueDelivery, ok bool) {
	meta, err := m.Metadata()
	d = DueDelivery{Payload: m.Data(), bus: p.bus, token: token{m.Reply(), epoch}}
	if err == nil {
		d.Fired, d.NumDelivered = meta.Timestamp, meta.NumDelivered
		d.Session, d.Wake, err = p.bus.names.ParseDue(m.Subject())
	}
	if err != nil {
		p.skipped.Add(1)
		p.log.Warn("due_skipped", "subject", m.Subject(), "error", err.Error())
		d.Ack()
		return DueDelivery{}, false
	}
	return d, true
}
