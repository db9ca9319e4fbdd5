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

// LaneOwner receives a lane's events. Lane.Run calls its methods from one goroutine at
// a time, and never after it has returned.
type LaneOwner interface {
	// Epoch begins an epoch: this process owns the lane again, or the lane was reset.
	// The next deliveries begin at the lane's ack floor, in order, so every session
	// in memory is unproven. Takes and acks of earlier epochs do nothing.
	Epoch(epoch uint64)
	// Deliver queues the next event of the lane. It must not block. An epoch delivers
	// no more than the lane's limits before events are acked.
	Deliver(d Delivery)
	// Skipped is told of an event that names no session, as a program may publish that
	// checks no names. It counts as done.
	Skipped(seq uint64, subject string)
}

// Delivery is one event of a lane.
type Delivery struct {
	Event       session.Event // the receiver owns its payload
	Epoch       uint64
	ConsumerSeq uint64 // from 1 in each epoch, without gaps
	Pending     uint64 // events of the lane not delivered yet
	TraceParent string // W3C trace context that the publisher claims; empty: none of the right length
	Handle
}

// Handle takes and acknowledges a delivery. It does not keep the delivery in memory.
type Handle struct {
	window *window
	number uint64
}

// Take reports whether the event may be processed. The owner must call it first. It
// returns false if the delivery's epoch has ended, or the lane is being handed over:
// Drain waits for the taken events only. The events of an epoch are taken in order.
func (h Handle) Take() bool { return h.window.take(h.number) }

// Ack reports that all outputs of the event are stored. It returns at once, and may be
// called from any goroutine, in any order, and more than once. An event is acknowledged
// to the server once it and all events before it are acked. That message may be late or
// lost, and then the event is delivered again. After the end of the delivery's epoch Ack
// does nothing.
func (h Handle) Ack() { h.window.done(h.number) }

// Lane is one of the consumers that share the log's partitions. Any number of
// processes may run a lane: the server pins one of them, the owner, and the others
// stand by. Correctness does not depend on the pin: two processes may briefly believe
// that they own the lane.
type Lane struct {
	source   *Source
	server   LaneServer
	number   int
	consumer string
	log      *slog.Logger

	resetMu chan struct{} // of capacity 1: full while a lane of this process is reset
	ttl     time.Duration // how long the server keeps a pin without a request
	owned   atomic.Bool
	left    atomic.Uint64 // see Left
	epoch   uint64        // number of the last epoch; Run's goroutine only

	once
}

// Lane returns lane n of the log. The consumer must have been provisioned.
func (s *Source) Lane(n int) *Lane {
	return s.LaneOf(natsLane{s, s.names.LogStream(), subjects.LaneName(n)}, n)
}

// LaneOf returns lane n on any implementation of the server.
func (s *Source) LaneOf(server LaneServer, n int) *Lane {
	name := subjects.LaneName(n)
	return &Lane{
		source: s, server: server, number: n, consumer: name,
		log: s.conn.Log.With("lane", name), once: once{draining: make(chan struct{})}, resetMu: s.resets,
	}
}

// Number returns the lane's number.
func (l *Lane) Number() int { return l.number }

// Owned reports whether this process owns the lane, as far as it knows.
func (l *Lane) Owned() bool { return l.owned.Load() }

// Left returns the stream sequence of the last event that the former owner had received
// when it ended without acknowledging everything: it was killed, crashed, or lost the
// server. It returns 0 if the former owner handed the lane over. It is set before the
// first epoch of a pin begins.
func (l *Lane) Left() uint64 { return l.left.Load() }

// Stray reports whether events of the lane wait and the server has pinned no client.
// That is also true for a moment whenever the owner changes.
func (l *Lane) Stray(ctx context.Context) (bool, error) {
	info, err := l.server.Info(ctx)
	if err != nil {
		return false, fmt.Errorf("read the state of lane %s: %w", l.consumer, natsio.Typed(err))
	}
	return info.Pin == "" && (info.Pending > 0 || info.Unacked > 0), nil
}

// Run waits for the pin, delivers the lane's events to owner while it has the pin, and
// waits for it again when it is lost. It returns nil when ctx ends (unacked events go to
// the next owner) or when Drain is done. It returns an error only if the lane can't be
// used: it was never provisioned, or its consumer does not pin clients. Run recreates a
// deleted consumer if this process provisioned the lanes. A lane runs once.
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
			l.left.Store(l.leftBy(ctx, left))
			l.own(ctx, pin, owner)
		}
	}
	return nil
}

// open reads how long the server keeps a pin.
func (l *Lane) open(ctx context.Context) error {
	return l.source.conn.Retry(ctx, func(ctx context.Context) error {
		info, err := l.info(ctx)
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

// reset restarts delivery at the ack floor, with consumer sequence 1, and returns how
// many events are pending.
func (l *Lane) reset(ctx context.Context) (pending uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, max(l.ttl, time.Second))
	defer cancel()
	return l.server.Reset(ctx)
}
