package delivery_test

// A server that loses the unsynced end of its streams reuses their sequences. A server
// with damaged files has taken names that it can't read.

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/delivery"
)

// newInterval is newBridges on a server that syncs at intervals.
func newInterval(t *testing.T) *bridges {
	t.Helper()
	node := bustest.Server(t, bustest.Interval)
	provisionLanes(t, node, ttlShort, 1)
	_, js := testbus.JS(t, node)
	return &bridges{lanes: &lanes{t: t, node: node, js: js}, conf: testbus.Conf(t, "", setting("ack_wait", "2s")...)}
}

// asks is ask for a server that has just started.
func (s *bridges) asks(effect string) (seq uint64) {
	s.t.Helper()
	bustest.Until(s.t, effect+" is stored", func() bool {
		ack, err := s.js.Publish(testbus.Context(s.t), "refold.fx.tool.host.s1."+effect, []byte("payload of "+effect))
		if err == nil {
			seq = ack.Sequence
		}
		return err == nil
	})
	return seq
}

func (b *bridge) saw(effect string) func() bool {
	return func() bool { return slices.Contains(b.names(), effect) }
}

// TestLateAckOfALostEffect: while an effect is carried out, the server loses it, once
// or twice in a row, and reuses its sequence for another effect. The late ack of the
// first does not acknowledge the second, which the next bridge gets when this one dies.
func TestLateAckOfALostEffect(t *testing.T) {
	t.Parallel()
	for losses := 1; losses <= 2; losses++ {
		t.Run(fmt.Sprint(losses), func(t *testing.T) {
			t.Parallel()
			s := newInterval(t)
			ended := make(chan string, 8)
			b := s.run(2, func(d *delivery.EffectDelivery) {
				d.Ack()
				ended <- d.Effect
			})
			lose := s.node.Synced()
			former := s.asks("r1t1c0")
			bustest.Until(t, "it is delivered", b.saw("r1t1c0"))
			for range losses {
				lose()
			}
			if seq := s.asks("r2t1c0"); seq != former {
				t.Fatalf("the other effect is at %d, want %d, which is used again", seq, former)
			}
			bustest.Until(t, "the other one is delivered", b.saw("r2t1c0"))
			b.let("r1t1c0")
			if got := testbus.Within(t, ended); got != "r1t1c0" {
				t.Fatalf("%s ended", got)
			}
			next := s.run(1, settle)
			b.stop()
			bustest.Until(t, "the other one is delivered to the next bridge", next.saw("r2t1c0"))
			next.let("r2t1c0")
			bustest.Until(t, "it is settled", func() bool { return s.consumer().NumAckPending == 0 })
		})
	}
}

// TestLaneOfALogThatLostItsEnd: while the owner of a lane processes events, the server
// loses them, once or twice in a row. Their late acks do not acknowledge the events that
// reuse their sequences: each of those is delivered, and acked when it is done.
func TestLaneOfALogThatLostItsEnd(t *testing.T) {
	t.Parallel()
	for losses := 1; losses <= 2; losses++ {
		t.Run(fmt.Sprint(losses), func(t *testing.T) {
			t.Parallel()
			s := newInterval(t)
			sid := sidOn(0, 0)
			lost := make(chan delivery.Delivery, 64)
			h := runLane(t, s.node, 0, func(d delivery.Delivery) {
				if d.Epoch == 1 {
					lost <- d
				} else {
					d.Ack()
				}
			})
			lose := s.node.Synced()
			s.publish(sid, numbered(1, 20)...)
			bustest.Until(t, "20 are delivered", func() bool { return len(lost) == 20 })
			for range losses {
				lose()
			}
			for range 20 {
				(<-lost).Ack()
			}
			bustest.Until(t, "the server is back", func() bool {
				_, err := s.js.Publish(testbus.Context(t), "refold.in."+sid, []byte("21"))
				return err == nil
			})
			s.publish(sid, numbered(22, 40)...)
			bustest.Until(t, "20 others are delivered", func() bool { return h.saw("40") })
			for _, text := range numbered(21, 40) {
				if !h.saw(text) {
					t.Errorf("%s is not delivered", text)
				}
			}
			bustest.Until(t, "all are acked", s.floor(0, 20))
		})
	}
}

// TestLateAckOfALostWake is the same for a due wake.
func TestLateAckOfALostWake(t *testing.T) {
	t.Parallel()
	s := newInterval(t)
	due := func(wake string) (seq uint64) {
		bustest.Until(t, wake+" is due", func() bool {
			ack, err := s.js.Publish(testbus.Context(t), "refold.due.s1."+wake, []byte(wake))
			if err == nil {
				seq = ack.Sequence
			}
			return err == nil
		})
		return seq
	}
	pull := func() (came chan delivery.DueDelivery, stop func()) {
		ctx, cancel := context.WithCancel(testbus.Context(t))
		came = make(chan delivery.DueDelivery, 8)
		done := make(chan error, 1)
		dues := testbus.Connect(t, s.node, "").Dues()
		go func() { done <- dues.Run(ctx, 4, func(d delivery.DueDelivery) { came <- d }) }()
		return came, func() {
			cancel()
			if err := testbus.Within(t, done); err != nil {
				t.Errorf("pull: %v", err)
			}
		}
	}
	came, stop := pull()
	bustest.Until(t, "the consumer is there", func() bool {
		_, err := s.js.Consumer(testbus.Context(t), "REFOLD_TIMERS", "due")
		return err == nil
	})
	lose := s.node.Synced()
	former := due("w1")
	lost := testbus.Within(t, came)
	lose()
	lose()
	if seq := due("w2"); seq != former {
		t.Fatalf("the other wake is at %d, want %d, which is used again", seq, former)
	}
	if d := testbus.Within(t, came); d.Wake != "w2" {
		t.Fatalf("%s is due, want w2", d.Wake)
	}
	lost.Ack()
	stop()
	came, stop = pull()
	defer stop()
	d := testbus.Within(t, came) // it was not acknowledged
	if d.Ack(); d.Wake != "w2" {
		t.Errorf("%s is due, want w2", d.Wake)
	}
}
