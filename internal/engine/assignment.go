package engine

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/delivery"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/subjects"
)

const (
	// joinAfter is how long a starting host listens for answers to its first
	// heartbeat; without it, every host would first claim all lanes.
	joinAfter = 100 * time.Millisecond
	// joinUnheard is when a host starts that does not receive its own heartbeats.
	joinUnheard = 2 * time.Second
	// orphanedEvery is how often a host checks the lanes of others. It takes one
	// that had no owner in orphanedLooks checks in a row.
	orphanedEvery = 3 * time.Second
	orphanedLooks = 2
)

// assignment is which lanes of the log this host should run, and which it runs.
type assignment struct {
	mu      sync.Mutex
	wanted  []bool        // its share, and orphaned lanes that it took
	running []bool        // includes lanes that are being handed over
	begun   bool          // it has received a share
	closed  bool          // it must run nothing any more
	changed chan struct{} // closed at the next change of wanted or closed
}

func newAssignment(lanes int) *assignment {
	return &assignment{wanted: make([]bool, lanes), running: make([]bool, lanes), changed: make(chan struct{})}
}

// change applies f and wakes the callers of await.
func (p *assignment) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.changed)
	p.changed = make(chan struct{})
}

// await waits until the host should (yes) or should not run a lane. It returns
// false when ctx has ended or the assignment is closed.
func (p *assignment) await(ctx context.Context, lane int, yes bool) bool {
	for {
		p.mu.Lock()
		wanted, closed, changed := p.wanted[lane], p.closed, p.changed
		p.mu.Unlock()
		if closed || wanted == yes || ctx.Err() != nil {
			return !closed && ctx.Err() == nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

func (p *assignment) setRunning(lane int, yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running[lane] = yes
}

// now returns the running lanes, and whether the host has no share yet, or none any
// more.
func (p *assignment) now() (lanes []int, joining, leaving bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return numbers(p.running), !p.begun && !p.closed, p.closed
}

// numbers returns the indexes of the set elements; never nil.
func numbers(set []bool) []int {
	lanes := []int{}
	for n, yes := range set {
		if yes {
			lanes = append(lanes, n)
		}
	}
	return lanes
}

// Heartbeat returns the body of this host's heartbeat.
func (h *Host) Heartbeat() []byte {
	lanes, joining, leaving := h.assignment.now()
	body, err := json.Marshal(presence.Heartbeat{
		Lanes: lanes, LaneCount: h.opts.Lanes, Rules: session.RulesVersion, Joining: joining, Leaving: leaving, AheadMS: h.clock.AheadMS(), NotReady: h.wrong.shortly(),
	})
	if err != nil {
		panic("engine: a heartbeat does not encode: " + err.Error())
	}
	return body
}

// publishHeartbeat publishes a heartbeat out of turn.
func (h *Host) publishHeartbeat() {
	if err := h.bus.Beat(subjects.KindSessionActor, h.instance, h.Heartbeat()); err != nil {
		h.log.Warn("heartbeat_failed", "error", err.Error())
	}
}

// Share takes in the heartbeats of session-actors and, if this host takes part,
// updates its share of the lanes. For met and mismatched see membership.look.
func (h *Host) Share(known []presence.Member, takesPart bool) (met bool, mismatched []string) {
	h.known.Store(&known)
	sharing, met, mismatched := h.membership.look(known)
	if takesPart && !slices.Equal(h.sharing, sharing) {
		h.sharing = sharing
		h.divide(sharing)
	}
	return met, mismatched
}

// Wants reports whether this host should run a lane.
func (h *Host) Wants(lane int) bool {
	p := h.assignment
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closed && p.wanted[lane]
}

// Leave ends this host's assignment for good.
func (h *Host) Leave() { h.assignment.change(func() { h.assignment.closed = true }) }

// isAlive reports whether a session-actor sent a heartbeat a moment ago.
func (h *Host) isAlive(instance string) bool {
	known := h.known.Load()
	return known != nil && slices.ContainsFunc(*known, func(m presence.Member) bool {
		return m.Instance == instance && time.Since(m.Heard) <= livesBeats*presence.HeartbeatEvery
	})
}

// keepShare keeps this host's share of the lanes current until ctx ends. The host
// takes its first share after the others had time to answer, and announces itself
// only then: lanes that they hand over must find it ready.
func (h *Host) keepShare(ctx context.Context, members *presence.Members) {
	begin := time.NewTimer(joinUnheard)
	defer begin.Stop()
	var hears, takesPart, announced bool
	for {
		next := members.Heartbeats() // read first, so that no heartbeat is missed
		met, mismatched := h.Share(members.Known(), takesPart)
		if takesPart && !announced {
			announced = true
			h.publishHeartbeat()
			close(h.ready)
		} else if met {
			h.publishHeartbeat() // a starting host need not wait for the next regular one
		}
		for _, instance := range mismatched {
			h.log.Warn("lane_count_differs", "of", instance, "lane_count", h.opts.Lanes)
		}
		if !hears && h.membership.beats > 0 {
			hears = true
			begin.Reset(joinAfter)
		}
		select {
		case <-next:
		case <-begin.C:
			takesPart = true
		case <-ctx.Done():
			return
		}
	}
}

// divide computes this host's share among the members. Orphaned lanes that it took
// are given up: the new members may run them.
func (h *Host) divide(members []string) {
	mine := make([]bool, h.opts.Lanes)
	for lane, owner := range share(members, h.opts.Lanes) {
		mine[lane] = owner == h.instance
	}
	h.log.Info("lanes_shared", "lanes", numbers(mine), "hosts", len(members))
	h.assignment.change(func() { h.assignment.wanted, h.assignment.begun = mine, true })
}

// serve runs a lane whenever it is in this host's share, until the assignment is
// closed or ctx ends. An error means that this host can't run the lane.
func (h *Host) serve(ctx context.Context, lane int) error {
	for h.assignment.await(ctx, lane, true) {
		if err := h.serveOnce(ctx, lane); err != nil {
			return err
		}
	}
	return nil
}

// serveOnce runs a lane until it leaves this host's share. It then hands the lane
// over and finishes pending work within Options.DrainFor.
func (h *Host) serveOnce(ctx context.Context, lane int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := newDriver(h, h.bus.Lane(lane))
	var cause error
	running, ended := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		cause = l.run(ctx)
		ended()
	}()
	h.assignment.await(running, lane, false)
	if running.Err() == nil {
		draining, stop := context.WithTimeout(ctx, h.opts.DrainFor)
		defer stop()
		if err := l.lane.Drain(draining); err != nil {
			h.log.Warn("lane not drained in time", "lane", lane, "error", err)
		}
	}
	cancel() // unfinished events are delivered again, to the next owner
	<-running.Done()
	return cause
}

// adoptOrphaned takes lanes in another host's share that have waiting events and no
// owner. That host may be unable to run them, or hosts may have heard of different
// members. A lane that was taken stays until the members change.
func (h *Host) adoptOrphaned(ctx context.Context) {
	found := make([]int, h.opts.Lanes)
	lanes := make([]*delivery.Lane, h.opts.Lanes)
	for n := range lanes {
		lanes[n] = h.bus.Lane(n)
	}
	for pause(ctx, h.orphanedEvery) {
		for n, lane := range lanes {
			if h.Wants(n) || !h.isOrphaned(ctx, lane) {
				found[n] = 0
				continue
			}
			if found[n]++; found[n] >= orphanedLooks {
				found[n] = 0
				h.log.Warn("lane_without_owner_taken", "lane", n)
				h.assignment.change(func() { h.assignment.wanted[n] = true })
			}
		}
	}
}

func (h *Host) isOrphaned(ctx context.Context, lane *delivery.Lane) bool {
	ctx, cancel := context.WithTimeout(ctx, orphanedEvery)
	defer cancel()
	stray, err := lane.Stray(ctx)
	return err == nil && stray // a host that can't reach the server can't run the lane either
}
