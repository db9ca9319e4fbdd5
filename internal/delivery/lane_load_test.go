package delivery_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/delivery"
)

// Several hosts run all lanes under load, and die. An event is delivered only after all
// earlier ones of its session were acked, or delivered in the same epoch, in order and
// without a gap.

const (
	loadSessions = 40
	loadEvents   = 150 // of each session
	loadKills    = 6
)

// ledger records the acks of all sessions by all hosts.
type ledger struct {
	t *testing.T

	mu    sync.Mutex
	acked map[string]map[int]bool
	floor map[string]int // all up to here are acked
}

// ack records the ack before it is sent, so that the server never has more.
func (g *ledger) ack(d delivery.Delivery) {
	g.mu.Lock()
	sid, n := d.Event.Session, number(d)
	if g.acked[sid] == nil {
		g.acked[sid] = make(map[int]bool)
	}
	g.acked[sid][n] = true
	for g.acked[sid][g.floor[sid]+1] {
		g.floor[sid]++
	}
	g.mu.Unlock()
	d.Ack()
}

func (g *ledger) done() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range loadSessions {
		if g.floor[loadSession(i)] != loadEvents {
			return false
		}
	}
	return true
}

func loadSession(i int) string { return fmt.Sprintf("load%d", i) }

// loadOwner checks the order of one lane of one host, and acks in any order.
type loadOwner struct {
	*ledger
	rand *rand.Rand
	last map[string]int // of this epoch, by session
	held []delivery.Delivery
}

func (o *loadOwner) Skipped(uint64, string) {}

func (o *loadOwner) Epoch(uint64) { o.last, o.held = make(map[string]int), nil }

func (o *loadOwner) Deliver(d delivery.Delivery) {
	if !d.Take() {
		return
	}
	sid, n := d.Event.Session, number(d)
	before, any := o.last[sid]
	if !any {
		o.mu.Lock()
		before = min(o.floor[sid], n-1) // what lies below the floor may come again
		o.mu.Unlock()
	}
	if n != before+1 {
		o.t.Errorf("%s: %d was handed out after %d", sid, n, before)
	}
	o.last[sid] = n
	o.held = append(o.held, d)
	if d.Pending > 0 && len(o.held) < 8 {
		return
	}
	// The last of a lane must not wait for others; the rest goes in disorder.
	o.rand.Shuffle(len(o.held), func(i, j int) { o.held[i], o.held[j] = o.held[j], o.held[i] })
	for _, h := range o.held {
		o.ack(h)
	}
	o.held = nil
}

// loadHost runs all lanes over one connection.
type loadHost struct {
	bus  *bus.Bus
	stop context.CancelFunc
	done sync.WaitGroup
}

func (h *loadHost) die() {
	h.bus.Close()
	h.stop()
	h.done.Wait()
}

func runAll(t *testing.T, l *lanes, g *ledger, seed uint64) *loadHost {
	h := &loadHost{bus: testbus.Connect(t, l.node, "")}
	ctx, cancel := context.WithCancel(testbus.Context(t))
	h.stop = cancel
	for n := range 8 {
		o := &loadOwner{ledger: g, rand: rand.New(rand.NewPCG(seed, uint64(n))), last: make(map[string]int)}
		h.done.Go(func() {
			if err := h.bus.Lane(n).Run(ctx, o); err != nil {
				t.Errorf("run lane %d: %v", n, err)
			}
		})
	}
	return h
}

func TestLanesUnderLoad(t *testing.T) {
	t.Parallel()
	l := newLanes(t, ttlShort)
	g := &ledger{t: t, acked: make(map[string]map[int]bool), floor: make(map[string]int)}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))

	published := make(chan error, 1)
	go func() { published <- publishLoad(l) }()
	hosts := []*loadHost{runAll(t, l, g, seed+1), runAll(t, l, g, seed+2)}
	defer func() {
		for _, h := range hosts {
			h.die()
		}
	}()
	for kill := range loadKills {
		// Some progress between two kills, so that each hits work.
		least := (kill + 1) * loadSessions * loadEvents / (2 * loadKills)
		bustest.Until(t, "there is progress", func() bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			sum := 0
			for _, floor := range g.floor {
				sum += floor
			}
			return sum >= least
		})
		i := r.IntN(len(hosts))
		hosts[i].die()
		hosts[i] = runAll(t, l, g, seed+uint64(10+kill))
	}
	bustest.OK(t, <-published)
	bustest.Until(t, "all sessions are done", g.done)
	for n := range 8 {
		bustest.Until(t, fmt.Sprintf("lane %d has nothing to do", n), func() bool {
			info := l.info(n)
			return info.NumPending == 0 && info.NumAckPending == 0
		})
	}
}

// publishLoad publishes the events of each session in order, and all sessions
// concurrently.
func publishLoad(l *lanes) error {
	ctx, cancel := context.WithTimeout(context.Background(), testbus.Time)
	defer cancel()
	for n := 1; n <= loadEvents; n++ {
		var last error
		var all sync.WaitGroup
		var mu sync.Mutex
		for i := range loadSessions {
			all.Go(func() {
				if _, err := l.js.Publish(ctx, "refold.in."+loadSession(i), fmt.Append(nil, n)); err != nil {
					mu.Lock()
					last = err
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if last != nil {
			return last
		}
	}
	return nil
}
