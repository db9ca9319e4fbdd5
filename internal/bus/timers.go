package bus

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

// scheduleTime is RFC 3339 with milliseconds, as dues have them. The client
// library writes whole seconds, and so would let a schedule fire early.
const scheduleTime = "2006-01-02T15:04:05.000Z07:00"

// Schedule stores that a wake of a session comes back at a time, by the
// server's clock and up to 400 ms later, in a DueDelivery with this payload.
// Scheduling a wake again replaces its schedule; a time in the past is now.
// While the outcome is unknown it is stored again, until ctx ends: then the
// error wraps ErrUnknownOutcome, and calling again is safe.
func (b *Bus) Schedule(ctx context.Context, sid, wake string, at time.Time, payload []byte) error {
	timer, err := b.names.Timer(sid, wake)
	if err != nil {
		return err
	}
	due, err := b.names.Due(sid, wake)
	if err != nil {
		return err
	}
	msg := nats.NewMsg(timer)
	msg.Data = payload
	// Rounded up: a schedule must not fire early.
	at = at.Add(time.Millisecond - time.Nanosecond).UTC()
	msg.Header.Set(subjects.HeaderSchedule, subjects.ScheduleAt+at.Format(scheduleTime))
	msg.Header.Set(subjects.HeaderScheduleTarget, due)
	if _, err := b.put(ctx, b.names.TimersStream(), msg, session.EffectBytesMax); err != nil {
		return fmt.Errorf("schedule %s: %w", timer, err)
	}
	return nil
}

// DueDelivery is a wake whose time has come.
type DueDelivery struct {
	Session, Wake string
	Payload       []byte    // as scheduled; the receiver's to keep
	Fired         time.Time // when the schedule fired, by the server's clock
	NumDelivered  uint64

	msg jetstream.Msg
}

// Ack says that the wake is settled: it is not delivered again, and the stream
// forgets it. It returns at once, and the answer may be lost.
func (d DueDelivery) Ack() { _ = d.msg.Ack() } // fails on a closed connection only; it comes again then

// Nak gives the wake back: some bridge is offered it after delay. It returns
// at once.
func (d DueDelivery) Nak(delay time.Duration) { _ = d.msg.NakWithDelay(delay) }

// DuePuller gets what has come due from the durable consumer of all timer
// bridges, of which several may pull at once.
type DuePuller struct {
	bus  *Bus
	conf *Conf
	log  *slog.Logger

	skipped atomic.Uint64
}

// Dues returns a puller.
func (b *Bus) Dues(conf *Conf) *DuePuller {
	return &DuePuller{bus: b, conf: conf, log: b.log.With("consumer", subjects.DueConsumer)}
}

// Skipped returns how many messages were acked unread since the start, because
// their subjects are no wake's.
func (p *DuePuller) Skipped() uint64 { return p.skipped.Load() }

// Ensure creates or updates the consumer, as Run does at its start.
func (p *DuePuller) Ensure(ctx context.Context) error {
	err := p.bus.retry(ctx, func(ctx context.Context) error {
		return p.bus.ensureConsumer(ctx, p.bus.names.TimersStream(), p.conf.dueConf())
	})
	if err != nil {
		return fmt.Errorf("provision consumer %s: %w", subjects.DueConsumer, typed(err))
	}
	return nil
}

// dueHeartbeat is how often a server that has nothing due says that it is
// there; twice that without a word, and the request is taken as lost.
const dueHeartbeat = 2 * time.Second

// Run creates or updates the consumer, pulls and calls carry for each wake that
// is due, in a goroutine of its own, at most slots at once. A lease is not
// extended: what takes longer is delivered again.
//
// Run outlives restarts of the server and the deletion of the consumer. It
// returns nil when ctx has ended, what was delivered until then was carried,
// and every carry has returned; an error only if the consumer can't be made at
// the start. What the server is about to send at that moment reaches nobody, and
// is delivered again after its lease.
func (p *DuePuller) Run(ctx context.Context, slots int, carry func(DueDelivery)) error {
	var carrying sync.WaitGroup
	defer carrying.Wait()
	free := make(chan struct{}, slots)
	take := func(m jetstream.Msg) {
		d, ok := p.read(m)
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
			err = pump(ctx, it, take)
		}
		if ctx.Err() != nil {
			return nil
		}
		p.log.Warn("due_waiting", "error", err.Error())
		_ = sleep(ctx, reconnectWait) // ends early with ctx, which attach sees
	}
}

// attach makes sure of the consumer and asks for messages.
func (p *DuePuller) attach(ctx context.Context, slots int) (it jetstream.MessagesContext, err error) {
	if err := p.Ensure(ctx); err != nil {
		return nil, err
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
	return it, err
}

// pump takes messages until the requests are void, and says why; when ctx ends
// it takes what has arrived by then.
func pump(ctx context.Context, it jetstream.MessagesContext, take func(jetstream.Msg)) error {
	defer it.Stop()
	defer context.AfterFunc(ctx, it.Drain)()
	for {
		m, err := it.Next()
		if err != nil {
			return err
		}
		take(m)
	}
}

// read makes a delivery of a message; ok is false if it is none, and then it
// is acked.
func (p *DuePuller) read(m jetstream.Msg) (d DueDelivery, ok bool) {
	meta, err := m.Metadata()
	if err == nil {
		d = DueDelivery{Payload: m.Data(), Fired: meta.Timestamp, NumDelivered: meta.NumDelivered, msg: m}
		d.Session, d.Wake, err = p.bus.names.ParseDue(m.Subject())
	}
	if err != nil {
		p.skipped.Add(1)
		p.log.Warn("due_skipped", "subject", m.Subject(), "error", err.Error())
		_ = m.Ack() // fails on a closed connection only; it is skipped again then
		return DueDelivery{}, false
	}
	return d, true
}
