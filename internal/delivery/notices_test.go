package delivery_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/delivery"
	"github.com/refold/refold/internal/streams"
)

// These tests run against a real server: two processes pull the notices of one webhook.

// hooked is an owner that keeps what it is told.
type hooked struct {
	mu      sync.Mutex
	queued  []*delivery.NoticeDelivery
	settled bool
	told    chan struct{} // of capacity 1: something has changed
}

func newHooked() *hooked { return &hooked{told: make(chan struct{}, 1)} }

func (h *hooked) change(f func()) {
	h.mu.Lock()
	f()
	h.mu.Unlock()
	select {
	case h.told <- struct{}{}:
	default:
	}
}

func (h *hooked) Deliver(d *delivery.NoticeDelivery) {
	h.change(func() { h.queued = append(h.queued, d) })
}
func (h *hooked) Settled(is bool) { h.change(func() { h.settled = is }) }
func (h *hooked) GiveBack() {
	h.change(func() {
		for _, d := range h.queued {
			d.Nak()
		}
		h.queued = nil
	})
}

// seqs returns the sequences that are queued, and whether they may be begun.
func (h *hooked) seqs() (all []uint64, settled bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range h.queued {
		all = append(all, d.Seq)
	}
	slices.Sort(all)
	return all, h.settled
}

// until waits for a state.
func (h *hooked) until(ctx context.Context, t *testing.T, what string, is func(seqs []uint64, settled bool) bool) {
	t.Helper()
	for {
		all, settled := h.seqs()
		if is(all, settled) {
			return
		}
		select {
		case <-h.told:
		case <-ctx.Done():
			t.Fatalf("%s: has %v, settled %t", what, all, settled)
		}
	}
}

// hookPuller runs a puller on a connection of its own.
func hookPuller(t *testing.T, node *bustest.Node, conf *streams.Conf, h *hooked) (b *bus.Bus, stop func()) {
	t.Helper()
	b = testbus.Connect(t, node, "")
	ctx, cancel := context.WithCancel(testbus.Context(t))
	done := make(chan error, 1)
	puller := b.Notices(conf, "crm")
	go func() { done <- puller.Run(ctx, h) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := testbus.Within(t, done); err != nil {
			t.Errorf("run the puller: %v", err)
		}
	})
	t.Cleanup(stop)
	return b, stop
}

// quickHooks shortens leases and pins.
var quickHooks = []string{"ack_wait: \"10s\"\n  max_deliver: -1\n  max_ack_pending: 1000", "ack_wait: \"1s\"\n  max_deliver: -1\n  max_ack_pending: 1000", `priority_timeout: "3s"`, `priority_timeout: "1s"`}

func hookWorld(t *testing.T) (*clock, func(from, to int)) {
	t.Helper()
	c := newClock(t, quickHooks...)
	_, err := c.b.EnsureWebhook(testbus.Context(t), c.conf, "crm")
	bustest.OK(t, err)
	return c, func(from, to int) {
		t.Helper()
		for n := from; n <= to; n++ {
			bustest.OK(t, c.b.Notify(testbus.Context(t), "s1", uint64(n), fmt.Appendf(nil, `{"n":%d}`, n)))
		}
	}
}

func has(want ...uint64) func([]uint64, bool) bool {
	return func(seqs []uint64, settled bool) bool { return settled && slices.Equal(seqs, want) }
}

// One of two pullers gets all notices; when it ends, the other one gets what it gave back
// and what is new, and begins nothing before it has both.
func TestNoticesGoToOnePullerAndThenToTheNext(t *testing.T) {
	t.Parallel()
	ctx := testbus.Context(t)
	c, publish := hookWorld(t)
	one, two := newHooked(), newHooked()
	_, stop := hookPuller(t, c.node, c.conf, one)
	publish(1, 1)
	one.until(ctx, t, "first", has(1))
	hookPuller(t, c.node, c.conf, two)
	publish(2, 4)
	one.until(ctx, t, "first", has(1, 2, 3, 4))
	one.change(func() {
		one.queued[0].Ack()
		one.queued = one.queued[1:]
	})
	if seqs, _ := two.seqs(); len(seqs) > 0 {
		t.Errorf("the second one has %v while the first one is pinned", seqs)
	}
	publish(5, 6)
	one.until(ctx, t, "first", has(2, 3, 4, 5, 6))
	stop()
	two.until(ctx, t, "second", has(2, 3, 4, 5, 6))
}

// A puller that dies gives nothing back: the next one begins nothing, not even newer
// notices, until it has all of them.
func TestNoticesWaitForThoseOfADeadPuller(t *testing.T) {
	t.Parallel()
	ctx := testbus.Context(t)
	c, publish := hookWorld(t)
	one, two := newHooked(), newHooked()
	b, _ := hookPuller(t, c.node, c.conf, one)
	publish(1, 3)
	one.until(ctx, t, "first", has(1, 2, 3))
	hookPuller(t, c.node, c.conf, two)
	b.Close()
	publish(4, 4)
	early := false
	two.until(ctx, t, "second", func(seqs []uint64, settled bool) bool {
		early = early || settled && len(seqs) > 0 && !slices.Equal(seqs, []uint64{1, 2, 3, 4})
		return has(1, 2, 3, 4)(seqs, settled)
	})
	if early {
		t.Error("the second one could begin before it had all notices")
	}
}

// A puller whose connection is made anew keeps what it has.
func TestNoticesSurviveAReconnect(t *testing.T) {
	t.Parallel()
	ctx := testbus.Context(t)
	c, publish := hookWorld(t)
	one := newHooked()
	hookPuller(t, c.node, c.conf, one)
	publish(1, 2)
	one.until(ctx, t, "first", has(1, 2))
	c.node.Stop()
	c.node.Start()
	publish(3, 3)
	one.until(ctx, t, "after the restart", has(1, 2, 3))
	one.change(func() {
		for _, d := range one.queued {
			d.Ack()
		}
		one.queued = nil
	})
}
