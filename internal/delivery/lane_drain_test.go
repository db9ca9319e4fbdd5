package delivery_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/delivery"
	"github.com/refold/refold/internal/natsio"
)

// A lane that is handed over has a new owner at once. Pins last for minutes in these
// tests, so a test that waits for the end of a pin fails.

func TestDrainedLaneIsHandedOverAtOnce(t *testing.T) {
	t.Parallel()
	l := newLanes(t, ttlNever, setting("ack_wait", "10m")...)
	sid := sidOn(0, 0)
	second := make(chan struct{})
	a := runLane(t, l.node, 0, func(d delivery.Delivery) {
		if number(d) == 2 {
			<-second
		}
	})
	l.publish(sid, numbered(1, 5)...)
	bustest.Until(t, "A is at 2", a.has("1", "2"))
	b := runLane(t, l.node, 0, nil)
	bustest.Until(t, "B stands by", l.waiting(0, 2))

	drained := make(chan error, 1)
	go func() { drained <- a.lane.Drain(testbus.Context(t)) }()
	close(second)
	for _, d := range a.all() {
		select {
		case err := <-drained:
			t.Fatalf("drained (%v) with %d events unacked", err, len(a.all()))
		default:
		}
		if len(b.all()) > 0 {
			t.Fatal("B has the lane before A is done")
		}
		d.Ack()
	}
	// A may have been given more before it heard of the drain.
	bustest.Until(t, "A is drained", func() bool {
		for _, d := range a.all() {
			d.Ack()
		}
		select {
		case err := <-drained:
			bustest.OK(t, err)
			return true
		default:
			return false
		}
	})
	given := len(a.all())
	bustest.Until(t, "B has the rest", b.has(numbered(given+1, 5)...))
	if err := testbus.Within(t, a.done); err != nil {
		t.Error(err)
	}
	a.done <- nil // for the end of the test
	if a.lane.Owned() {
		t.Error("A owns the lane still")
	}
	if got := b.lane.Left(); got != 0 {
		t.Errorf("A left events up to %d, want none: it handed the lane over", got)
	}
}

// All events are acked and none is pending: B gets the next event.
func TestDrainedQuietLaneIsHandedOver(t *testing.T) {
	t.Parallel()
	l := newLanes(t, ttlNever)
	a := runLane(t, l.node, 0, ackAll)
	l.publish(sidOn(0, 0), "1", "2")
	bustest.Until(t, "A acked 2", l.floor(0, 2))
	b := runLane(t, l.node, 0, ackAll)
	bustest.Until(t, "B stands by", l.waiting(0, 2))
	bustest.OK(t, a.lane.Drain(testbus.Context(t)))
	if got := l.info(0).AckFloor.Stream; got != 2 {
		t.Errorf("the ack floor is %d after the drain, want 2", got)
	}
	l.publish(sidOn(0, 0), "3")
	bustest.Until(t, "B has 3 and nothing else", b.has("3"))
	if got := b.lane.Left(); got != 0 {
		t.Errorf("A left events up to %d, want none: it handed the lane over", got)
	}
}

// A stand-by that leaves withdraws its request. Otherwise the server would pin a request
// without a subscriber, and pins last for minutes here.
func TestStandByLeavesWithoutAPin(t *testing.T) {
	t.Parallel()
	l := newLanes(t, ttlNever)
	a := runLane(t, l.node, 0, nil)
	bustest.Until(t, "A stands by", l.waiting(0, 1))
	b := runLane(t, l.node, 0, ackAll)
	bustest.Until(t, "B stands by", l.waiting(0, 2))
	bustest.OK(t, a.lane.Drain(testbus.Context(t)))
	l.publish(sidOn(0, 0), "1")
	bustest.Until(t, "B has it", b.has("1"))
}

// The end of the context gives the lane back, with its unacked events.
func TestEndedContextGivesTheLaneBack(t *testing.T) {
	t.Parallel()
	l := newLanes(t, ttlNever, setting("ack_wait", "10m")...)
	a := runLane(t, l.node, 0, nil)
	l.publish(sidOn(0, 0), numbered(1, 3)...)
	bustest.Until(t, "A has 3", a.has("1", "2", "3"))
	b := runLane(t, l.node, 0, ackAll)
	bustest.Until(t, "B stands by", l.waiting(0, 2))
	a.stop()
	bustest.Until(t, "B acked 3", l.floor(0, 3))
	if err := inOrder(b.all()); err != nil {
		t.Error(err)
	}
}

func TestDrainReturns(t *testing.T) {
	t.Parallel()
	l := newLanes(t, ttlNever)
	t.Run("before its run", func(t *testing.T) {
		lane := testbus.Connect(t, l.node, "").Lane(1)
		if err := lane.Drain(testbus.Context(t)); err != nil {
			t.Error(err)
		}
		if err := lane.Run(testbus.Context(t), &owner{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("while it stands by", func(t *testing.T) {
		h := runLane(t, l.node, 1, nil)
		if err := h.lane.Drain(testbus.Context(t)); err != nil {
			t.Error(err)
		}
	})
	t.Run("with its own context", func(t *testing.T) {
		h := runLane(t, l.node, 2, nil)
		l.publish(sidOn(2, 0), "1")
		bustest.Until(t, "it has 1", h.has("1"))
		ctx, cancel := context.WithTimeout(testbus.Context(t), 50*time.Millisecond)
		defer cancel()
		if err := h.lane.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v with an event unacked, want the context's error", err)
		}
	})
}

func TestLaneRunsOnce(t *testing.T) {
	t.Parallel()
	l := newLanes(t, ttlNever)
	b := testbus.Connect(t, l.node, "")
	if err := b.Lane(99).Run(testbus.Context(t), &owner{}); !errors.Is(err, natsio.ErrNotFound) {
		t.Errorf("a lane that is not there: got %v, want ErrNotFound", err)
	}
	lane := b.Lane(0)
	bustest.OK(t, lane.Drain(testbus.Context(t)))
	bustest.OK(t, lane.Run(testbus.Context(t), &owner{}))
	if err := lane.Run(testbus.Context(t), &owner{}); err == nil {
		t.Error("a second Run: got no error")
	}
}
