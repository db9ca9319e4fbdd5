package bus_test

// What is tested here: a server that loses the unsynced end of its streams uses
// their sequences again, and one whose files are damaged has names taken that it
// can't read.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
)

// newInterval is newBridges on a server that syncs now and then.
func newInterval(t *testing.T) *bridges {
	t.Helper()
	node := bustest.Server(t, bustest.Interval)
	provisionLanes(t, node, ttlShort, 1)
	_, js := rawJS(t, node)
	return &bridges{lanes: &lanes{t: t, node: node, js: js}, conf: parse(t, "", setting("ack_wait", "2s")...)}
}

// asks is ask for a server that has just started.
func (s *bridges) asks(effect string) (seq uint64) {
	s.t.Helper()
	bustest.Until(s.t, effect+" is stored", func() bool {
		ack, err := s.js.Publish(testContext(s.t), "refold.fx.tool.host.s1."+effect, []byte("payload of "+effect))
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

// TestLateAckOfALostEffect: an effect is carried out while the server loses it,
// once or twice in a row, and gives its sequence to another effect. When the first
// one is settled its ack does not acknowledge the other: that is delivered to the
// next bridge when this one dies.
func TestLateAckOfALostEffect(t *testing.T) {
	t.Parallel()
	for losses := 1; losses <= 2; losses++ {
		t.Run(fmt.Sprint(losses), func(t *testing.T) {
			t.Parallel()
			s := newInterval(t)
			ended := make(chan string, 8)
			b := s.run(2, func(d *bus.EffectDelivery) {
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
			if got := within(t, ended); got != "r1t1c0" {
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

// TestLaneOfALogThatLostItsEnd: the owner of a lane has events in hand while the
// server loses them, once or twice in a row. Their late acks acknowledge none of
// the events that have their sequences now: each is delivered, and acked when it
// is done.
func TestLaneOfALogThatLostItsEnd(t *testing.T) {
	t.Parallel()
	for losses := 1; losses <= 2; losses++ {
		t.Run(fmt.Sprint(losses), func(t *testing.T) {
			t.Parallel()
			s := newInterval(t)
			sid := sidOn(0, 0)
			lost := make(chan bus.Delivery, 64)
			h := runLane(t, s.node, 0, func(d bus.Delivery) {
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
				_, err := s.js.Publish(testContext(t), "refold.in."+sid, []byte("21"))
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

// TestNameThatCantBeRead: the file of an effect is damaged. To ask for its name
// again fails for good, and says what to do; what is asked together with it is
// stored. A claim of it is somebody's, of whom nobody knows.
func TestNameThatCantBeRead(t *testing.T) {
	t.Parallel()
	s := newInterval(t)
	b := connect(t, s.node, "")
	effect := func(sid, say string) bus.Output {
		return bus.Output{Session: sid, Effect: &session.Effect{Name: "r1t1c0", Class: session.ClassTool, Target: "host", Payload: []byte(say)}}
	}
	name := claimOf("damaged", "r1t1c0", 1)
	mine := []byte(`{"by":"01DAMAGEDCLAIM"}`)
	if errs := b.Store(testContext(t), []bus.Output{effect("damaged", "what can't be read"), effect("whole", "what can")}); errors.Join(errs...) != nil {
		t.Fatal(errs)
	}
	if _, _, err := b.Claim(testContext(t), name, mine); err != nil {
		t.Fatal(err)
	}
	s.node.Damage("REFOLD_FX", "what can't be read")
	s.node.Damage("REFOLD_FX", "01DAMAGEDCLAIM")

	var others []bus.Output
	for i := range 20 {
		others = append(others, effect(fmt.Sprint("new", i), "new"))
	}
	errs := b.Store(testContext(t), append(others, effect("damaged", "what can't be read"), effect("whole", "what can")))
	var unreadable *bus.UnreadableError
	for i, err := range errs {
		if i == len(others) {
			if !errors.As(err, &unreadable) || !strings.HasPrefix(unreadable.Error(), "refold.fx.tool.host.damaged.r1t1c0: ") || !strings.Contains(err.Error(), "delete REFOLD_FX") {
				t.Errorf("the damaged one: got %v, want that it can't be read, and what to do", err)
			}
		} else if err != nil {
			t.Errorf("output %d: %v", i, err)
		}
	}
	if won, holder, err := b.Claim(testContext(t), name, mine); won || len(holder) > 0 || err != nil {
		t.Errorf("a claim that can't be read: got %v %q %v, want that it is somebody's", won, holder, err)
	}
	withdrawn := bus.Output{Session: "damaged", Withdraw: &session.Withdrawal{Name: "r1t1c0", Class: session.ClassTool, Target: "host"}}
	if errs := b.Store(testContext(t), []bus.Output{withdrawn}); errs[0] != nil {
		t.Errorf("its withdrawal, which comes too late: %v", errs[0])
	}
}

// TestLateAckOfALostWake is the same for a wake that has come due.
func TestLateAckOfALostWake(t *testing.T) {
	t.Parallel()
	s := newInterval(t)
	due := func(wake string) (seq uint64) {
		bustest.Until(t, wake+" is due", func() bool {
			ack, err := s.js.Publish(testContext(t), "refold.due.s1."+wake, []byte(wake))
			if err == nil {
				seq = ack.Sequence
			}
			return err == nil
		})
		return seq
	}
	pull := func() (came chan bus.DueDelivery, stop func()) {
		ctx, cancel := context.WithCancel(testContext(t))
		came = make(chan bus.DueDelivery, 8)
		done := make(chan error, 1)
		dues := connect(t, s.node, "").Dues()
		go func() { done <- dues.Run(ctx, 4, func(d bus.DueDelivery) { came <- d }) }()
		return came, func() {
			cancel()
			if err := within(t, done); err != nil {
				t.Errorf("pull: %v", err)
			}
		}
	}
	came, stop := pull()
	bustest.Until(t, "the consumer is there", func() bool {
		_, err := s.js.Consumer(testContext(t), "REFOLD_TIMERS", "due")
		return err == nil
	})
	lose := s.node.Synced()
	former := due("w1")
	lost := within(t, came)
	lose()
	lose()
	if seq := due("w2"); seq != former {
		t.Fatalf("the other wake is at %d, want %d, which is used again", seq, former)
	}
	if d := within(t, came); d.Wake != "w2" {
		t.Fatalf("%s is due, want w2", d.Wake)
	}
	lost.Ack()
	stop()
	came, stop = pull()
	defer stop()
	d := within(t, came) // it was not acknowledged
	if d.Ack(); d.Wake != "w2" {
		t.Errorf("%s is due, want w2", d.Wake)
	}
}
