package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/delivery"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/streams"
)

// A bridge gets no more effects than it has slots, keeps the ones it works on, and
// misses none, whatever happens to the server and the consumer.

// bridge is a puller whose effects wait until the test releases them.
type bridge struct {
	*delivery.EffectPuller
	bus  *bus.Bus
	stop context.CancelFunc
	done chan error
	end  func(*delivery.EffectDelivery)

	mu   sync.Mutex
	got  []string // effect names, as they were carried
	open map[string]chan struct{}
}

func (b *bridge) carry(d *delivery.EffectDelivery) {
	b.mu.Lock()
	b.got = append(b.got, d.Effect)
	gate := b.gate(d.Effect)
	b.mu.Unlock()
	<-gate
	b.end(d)
}

// gate returns the channel that an effect waits for; b.mu is held.
func (b *bridge) gate(effect string) chan struct{} {
	if b.open[effect] == nil {
		b.open[effect] = make(chan struct{})
	}
	return b.open[effect]
}

// let releases effects, including future ones.
func (b *bridge) let(effects ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range effects {
		select {
		case <-b.gate(e):
		default:
			close(b.gate(e))
		}
	}
}

// names returns what was carried, sorted.
func (b *bridge) names() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(slices.Values(b.got))
}

func (b *bridge) has(effects ...string) func() bool {
	return func() bool { return slices.Equal(b.names(), effects) }
}

func (b *bridge) count(n int) func() bool { return func() bool { return len(b.names()) == n } }

// bridges is a server with the effects stream, and a plain client.
type bridges struct {
	*lanes
	conf *streams.Conf
}

func newBridges(t *testing.T, edits ...string) *bridges {
	t.Helper()
	return &bridges{lanes: newLanes(t, ttlNever), conf: testbus.Conf(t, "", edits...)}
}

func settle(d *delivery.EffectDelivery) { d.Ack() }

func (s *bridges) run(slots int, end func(*delivery.EffectDelivery)) *bridge {
	s.t.Helper()
	c := testbus.Connect(s.t, s.node, "")
	ctx, cancel := context.WithCancel(testbus.Context(s.t))
	b := &bridge{
		EffectPuller: c.Effects(s.conf, session.ClassTool, "host"), bus: c, stop: cancel, end: end,
		done: make(chan error, 1), open: make(map[string]chan struct{}),
	}
	go func() { b.done <- b.Run(ctx, slots, b.carry) }()
	s.t.Cleanup(func() {
		cancel()
		b.let(b.names()...)
		select {
		case err := <-b.done:
			if err != nil {
				s.t.Errorf("run the puller: %v", err)
			}
		case <-time.After(testbus.Time):
			s.t.Error("Run does not return")
		}
	})
	bustest.Until(s.t, "the consumer is there", func() bool {
		_, err := s.js.Consumer(ctx, "REFOLD_FX", "tool-host")
		return err == nil
	})
	return b
}

func (s *bridges) ask(effects ...string) {
	s.t.Helper()
	for _, e := range effects {
		if _, err := s.js.Publish(testbus.Context(s.t), "refold.fx.tool.host.s1."+e, []byte("payload of "+e)); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *bridges) consumer() *jetstream.ConsumerInfo {
	s.t.Helper()
	c, err := s.js.Consumer(testbus.Context(s.t), "REFOLD_FX", "tool-host")
	if err != nil {
		s.t.Fatal(err)
	}
	return c.CachedInfo()
}

// settled reports that n effects were delivered and acked.
func (s *bridges) settled(n uint64) func() bool {
	return func() bool {
		info := s.consumer()
		return info.NumAckPending == 0 && info.NumPending == 0 && info.AckFloor.Stream == n
	}
}

func calls(n int) []string {
	var all []string
	for c := range n {
		all = append(all, fmt.Sprintf("r1t1c%d", c))
	}
	return all
}

func TestEffectsStayWithinSlots(t *testing.T) {
	t.Parallel()
	s := newBridges(t)
	b := s.run(3, settle)
	s.ask(calls(8)...)
	bustest.Until(t, "three are carried", b.count(3))
	if got := s.consumer().NumAckPending; got != 3 {
		t.Errorf("got %d delivered, want 3", got)
	}
	b.let("r1t1c1")
	bustest.Until(t, "one more is carried", b.has(calls(4)...))
	b.let(calls(8)...)
	bustest.Until(t, "all are settled", s.settled(8))
	if got, want := b.names(), calls(8); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Done frees a slot even if the goroutine of the effect never returns.
func TestDoneFreesTheSlot(t *testing.T) {
	t.Parallel()
	s := newBridges(t)
	b := s.run(1, func(d *delivery.EffectDelivery) {
		d.Ack()
		d.Done()
		runtime.Goexit()
	})
	b.let(calls(3)...)
	s.ask(calls(3)...)
	bustest.Until(t, "all are settled", s.settled(3))
}

func TestInvalidEffectsAreAcked(t *testing.T) {
	t.Parallel()
	s := newBridges(t)
	got := make(chan *delivery.EffectDelivery, 1)
	b := s.run(1, func(d *delivery.EffectDelivery) { got <- d; d.Ack() })
	b.let("r1t1c0")
	for _, bogus := range []string{"refold.fx.tool.host.s1.r1t1%c0", "refold.fx.tool.host.s!.r1t1c0"} {
		if _, err := s.js.Publish(testbus.Context(t), bogus, nil); err != nil {
			t.Fatal(err)
		}
	}
	s.ask("r1t1c0")
	d := testbus.Within(t, got)
	if d.Class != session.ClassTool || d.Target != "host" || d.Session != "s1" || d.Effect != "r1t1c0" {
		t.Errorf("got %+v", d.EffectName)
	}
	if d.Subject != "refold.fx.tool.host.s1.r1t1c0" || string(d.Payload) != "payload of r1t1c0" || d.Seq != 3 {
		t.Errorf("got %+v", d)
	}
	bustest.Until(t, "all are acked", s.settled(3))
}

// An effect that takes longer than a lease is not delivered to another bridge.
func TestLeaseIsExtendedDuringWork(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second // who is too busy to extend it loses it
	s := newBridges(t, setting("ack_wait", lease.String())...)
	a := s.run(1, settle)
	s.ask("r1t1c0")
	bustest.Until(t, "A carries it", a.count(1))
	b := s.run(1, settle)
	b.let("r1t1c0")
	begun := time.Now()
	bustest.Until(t, "three leases are over", func() bool { return time.Since(begun) > 3*lease })
	if got := s.consumer(); got.NumRedelivered != 0 || len(b.names()) != 0 {
		t.Errorf("got %d redelivered, %v carried by B, want none", got.NumRedelivered, b.names())
	}
	a.let("r1t1c0")
	bustest.Until(t, "it is settled", s.settled(1))
}

// A bridge that died holds its effects no longer than a lease.
func TestDeadBridgeHoldsEffectsForOneLease(t *testing.T) {
	t.Parallel()
	s := newBridges(t, setting("ack_wait", "1s")...)
	a := s.run(1, func(*delivery.EffectDelivery) {})
	s.ask("r1t1c0")
	bustest.Until(t, "A carries it", a.count(1))
	a.bus.Close()
	b := s.run(1, settle)
	b.let("r1t1c0")
	bustest.Until(t, "B settles it", s.settled(1))
	if got := len(b.names()); got != 1 {
		t.Errorf("B carried %d, want 1", got)
	}
}

// A nak redelivers the effect after its delay; without an answer it is redelivered at
// the end of the lease.
func TestNakRedeliversAfterItsDelay(t *testing.T) {
	t.Parallel()
	s := newBridges(t, setting("ack_wait", "1s")...)
	starts := make(chan time.Time, 3)
	var carried int
	b := s.run(1, func(d *delivery.EffectDelivery) {
		starts <- time.Now()
		switch carried++; carried {
		case 1:
			d.Nak(200 * time.Millisecond)
		case 2: // no answer
		default:
			d.Ack()
		}
	})
	b.let("r1t1c0")
	s.ask("r1t1c0")
	first, second, third := testbus.Within(t, starts), testbus.Within(t, starts), testbus.Within(t, starts)
	if wait := second.Sub(first); wait < 150*time.Millisecond {
		t.Errorf("it came %v after the nak, want its delay", wait)
	}
	// A lease begins when the server delivers, which may be well before the carry.
	if wait := third.Sub(first); wait < 1150*time.Millisecond {
		t.Errorf("it came %v after the nak, unanswered once: want its delay and a lease", wait)
	}
	bustest.Until(t, "it is settled", s.settled(1))
}

// The consumer is deleted while an effect is carried out. The new consumer redelivers
// it, and it is not carried out twice.
func TestEffectsConsumerDeleted(t *testing.T) {
	t.Parallel()
	s := newBridges(t)
	b := s.run(2, settle)
	s.ask("r1t1c0")
	bustest.Until(t, "one is carried", b.count(1))
	bustest.OK(t, s.js.DeleteConsumer(testbus.Context(t), "REFOLD_FX", "tool-host"))
	s.ask("r1t1c1")
	bustest.Until(t, "the other is carried", b.has(calls(2)...))
	b.let(calls(2)...)
	bustest.Until(t, "both are settled", s.settled(2))
	if got, want := b.names(), calls(2); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestEffectsAcrossServerRestart(t *testing.T) {
	t.Parallel()
	s := newBridges(t)
	b := s.run(2, settle)
	s.ask("r1t1c0")
	bustest.Until(t, "one is carried", b.count(1))
	s.node.Stop()
	s.node.Start()
	bustest.Until(t, "the server is back", func() bool {
		ctx, cancel := context.WithTimeout(testbus.Context(t), time.Second)
		defer cancel()
		_, err := s.js.Publish(ctx, "refold.fx.tool.host.s1.r1t1c1", nil, jetstream.WithMsgID("c1"))
		return err == nil
	})
	bustest.Until(t, "the other is carried", b.has(calls(2)...))
	b.let(calls(3)...)
	s.ask("r1t1c2")
	bustest.Until(t, "all are settled", s.settled(3))
}

// A drained puller accepts no more effects, finishes its own, and leaves none that
// waits for the end of a lease.
func TestDrainedPullerFinishesItsEffects(t *testing.T) {
	t.Parallel()
	s := newBridges(t, setting("ack_wait", "10m")...)
	a := s.run(4, settle)
	s.ask("r1t1c0", "r1t1c1")
	bustest.Until(t, "A carries two", a.has(calls(2)...))
	drained := make(chan error, 1)
	go func() { drained <- a.Drain(testbus.Context(t)) }()
	b := s.run(4, settle)
	b.let(calls(6)...)
	s.ask(calls(6)[2:]...)
	bustest.Until(t, "the others are settled", func() bool { return s.consumer().NumAckPending == len(a.names()) && s.consumer().NumPending == 0 })
	select {
	case err := <-drained:
		t.Fatalf("drained (%v) while effects are being carried", err)
	default:
	}
	a.let(calls(6)...)
	bustest.OK(t, testbus.Within(t, drained))
	bustest.Until(t, "all are settled", s.settled(6))
	if got, want := slices.Sorted(slices.Values(append(a.names(), b.names()...))), calls(6); !slices.Equal(got, want) {
		t.Errorf("got %v, want each once", got)
	}
}

func TestEffectPullerRefusesBadArguments(t *testing.T) {
	t.Parallel()
	s := newBridges(t)
	b := testbus.Connect(t, s.node, "")
	if err := b.Effects(s.conf, session.ClassTool, "host").Run(testbus.Context(t), 0, nil); err == nil {
		t.Error("no slots: got no error")
	}
	if err := b.Effects(s.conf, session.ClassTool, "no.token").Run(testbus.Context(t), 1, nil); err == nil {
		t.Error("a bad target: got no error")
	}
	bare := testbus.Connect(t, bustest.Server(t), "")
	if err := bare.Effects(s.conf, session.ClassTool, "host").Run(testbus.Context(t), 1, nil); !errors.Is(err, natsio.ErrNoStream) {
		t.Errorf("no stream: got %v, want ErrNoStream", err)
	}
}
