package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// LaneOwner is who gets a lane's events. Its methods are called by one
// goroutine at a time, never after Lane.Run has returned.
type LaneOwner interface {
	// Epoch begins an epoch: this process owns the lane again, or the lane was reset.
	// The next deliveries begin at the lane's ack floor, in order, so every session
	// in memory is unproven. Acks of earlier epochs do nothing any more.
	Epoch(epoch uint64)
	// Deliver takes the next event of the lane. It may block for as long as
	// it likes: the lane is kept, and no more than its limits is received.
	Deliver(d Delivery)
}

// Delivery is one event of a lane.
type Delivery struct {
	Event       session.Event // its payload is the receiver's to keep
	Epoch       uint64
	ConsumerSeq uint64 // from 1 in each epoch, without gaps
	Pending     uint64 // events of the lane behind this one
	TraceParent string // W3C trace context, as its publisher claims; empty: none of the right length

	window *window
	number uint64
}

// Ack says that all outputs of the event are stored. It returns at once, may
// be called from any goroutine, in any order, and more than once. The server
// hears of an event when it and all before it are acked; it may hear of it
// late or never, and then the event is delivered again. After the end of the
// delivery's epoch Ack does nothing.
func (d Delivery) Ack() { d.window.done(d.number) }

// AckLater returns Ack for a caller that keeps nothing else of the delivery.
func (d Delivery) AckLater() func() {
	window, number := d.window, d.number
	return func() { window.done(number) }
}

// Lane is one of the consumers that the log's partitions are spread over.
// Any number of hosts may run a lane: the server pins one of them, the owner,
// and the others stand by. Correctness does not rest on the pin: for a moment
// two may believe that they own the lane.
type Lane struct {
	source   *Source
	server   LaneServer
	number   int
	consumer string
	log      *slog.Logger

	resetMu chan struct{} // of those lanes of this process that are to be reset
	ttl     time.Duration // how long the server keeps a pin without a request
	owned   atomic.Bool
	left    atomic.Uint64 // see Left
	epoch   uint64        // of the last epoch; Run's goroutine only
	last    chan struct{} // closed when the last epoch's deliveries have ended

	once
}

// Lane returns lane n of the log. The consumer must have been provisioned.
func (s *Source) Lane(n int) *Lane {
	return s.LaneOf(natsLane{s, s.names.LogStream(), subjects.LaneName(n)}, n)
}

// LaneOf returns lane n, whose consumer a server has.
func (s *Source) LaneOf(server LaneServer, n int) *Lane {
	name := subjects.LaneName(n)
	last := make(chan struct{})
	close(last)
	return &Lane{
		source: s, server: server, number: n, consumer: name,
		log: s.conn.Log.With("lane", name), once: once{draining: make(chan struct{})}, last: last, resetMu: s.resets,
	}
}

// Number returns which lane this is.
func (l *Lane) Number() int { return l.number }

// Owned reports that the server has pinned this process to the lane, as far
// as is known here.
func (l *Lane) Owned() bool { return l.owned.Load() }

// Left returns the last event, by its sequence in the stream, that a former owner
// had been given when it ended without acknowledging everything: it was killed,
// crashed, or lost the server. It returns 0 if the former owner of this pin handed
// the lane over. It is known before the first epoch of a pin begins.
func (l *Lane) Left() uint64 { return l.left.Load() }

// Stray reports that events of the lane wait and the server has pinned nobody:
// nobody asks for them. For a moment that is so whenever the owner changes.
func (l *Lane) Stray(ctx context.Context) (bool, error) {
	info, err := l.server.Info(ctx)
	if err != nil {
		return false, fmt.Errorf("look at lane %s: %w", l.consumer, natsio.Typed(err))
	}
	return info.Pin == "" && (info.Pending > 0 || info.Unacked > 0), nil
}

// Run waits for the lane, owns it and gives its events to owner, for as long
// as it can; what it loses it waits for again. It returns nil when ctx ends
// (the lane is given back, with what is not acked) or when Drain is done, and
// an error only if the lane can't be used: it was never provisioned, or pins nobody.
// A consumer that is deleted is made again if this process provisioned the lanes.
// A lane is run once.
func (l *Lane) Run(ctx context.Context, owner LaneOwner) error {
	done, err := l.begin()
	if err != nil {
		return err
	}
	defer close(done)
	waiting, cancel := untilDone(ctx, l.draining)
	defer cancel()
	if err := l.open(waiting); err != nil && waiting.Err() == nil {
		return fmt.Errorf("run lane %s: %w", l.consumer, err)
	}
	for waiting.Err() == nil {
		if pin, left := l.standBy(waiting); pin != "" {
			l.left.Store(l.leftTo(ctx, left))
			l.own(ctx, pin, owner)
		}
	}
	<-l.last
	return nil
}

// open learns how long the server keeps a pin.
func (l *Lane) open(ctx context.Context) error {
	return l.source.conn.Retry(ctx, func(ctx context.Context) error {
		info, err := l.look(ctx)
		if err != nil {
			return err
		}
		if info.TTL <= 0 {
			return fmt.Errorf("consumer %s pins no client: provision it from streams.conf", l.consumer)
		}
		l.ttl = info.TTL
		return nil
	})
}

// reset begins delivery at the ack floor again, with consumer sequence 1, and
// returns how many events are to come.
func (l *Lane) reset(ctx context.Context) (pending uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, max(l.ttl, time.Second))
	defer cancel()
	return l.server.Reset(ctx)
}
