package sim

// A host's part of a lane: it takes the deliveries of natsdelivery.Lane, steps
// engine.Lane with them, and carries out the lane's work.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/actors/session"
	natsdelivery "github.com/refold/refold/internal/delivery"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/streams"
)

// laneRun is a lane on a host, from its assignment until it is handed over: the
// server of its natsdelivery.Lane, and the owner that gets the deliveries.
type laneRun struct {
	*proc
	sim     *sim
	host    *host
	end     *laneEnd
	lane    *natsdelivery.Lane
	machine *engine.Lane
	works   sync.WaitGroup
	puts    sync.WaitGroup // snapshots
	running context.Context
	stop    context.CancelFunc

	putting     context.Context // outlasts running
	stopPutting context.CancelFunc

	draining    bool
	done        []finished
	resultReady chan struct{} // of capacity 1: done has more
	over        bool          // it has ended
	inboxes     map[string]chan *nats.Msg
	listened    int
	sent        int
	queue       []engine.Input
	gave        map[uint64]string // session and hash of each delivered event, by sequence
	pinned      string            // the pin of the latest delivery
	ticked      time.Time
	looked      time.Time
	crowded     time.Time // since when it has too many sessions in memory
}

// finished is the result of a lane's work.
type finished struct {
	of string // its name
	is engine.Input
}

var (
	_ natsdelivery.LaneServer = (*laneRun)(nil)
	_ natsdelivery.LaneOwner  = (*laneRun)(nil)
)

// runLane starts a lane on a host.
func (h *host) runLane(n int) {
	s := h.sim
	ctx, stop := context.WithCancel(h.ctx)
	r := &laneRun{
		proc: h.proc, sim: s, host: h, end: s.lanes[n], stop: stop, running: ctx, inboxes: map[string]chan *nats.Msg{},
		gave: map[uint64]string{}, resultReady: make(chan struct{}, 1), ticked: time.Now(), looked: time.Now(),
	}
	r.putting, r.stopPutting = context.WithCancel(h.ctx)
	r.lane = natsdelivery.New(natsio.Unconnected(s.names, h.log), new(streams.Streams)).LaneOf(r, n)
	r.machine = h.host.NewLane(n, r.lane.Owned)
	h.runs[n] = r
	s.say("%s runs lane %d", h.name, n)
	go func() {
		if err := r.lane.Run(ctx, r); err != nil && ctx.Err() == nil {
			s.breaks("%s can't use lane %d: %v", h.name, n, err)
		}
		stop()
	}()
	go func() {
		<-ctx.Done()
		r.ends()
	}()
}

// ends stores the last snapshots of a lane that has ended, for a limited time.
func (r *laneRun) ends() {
	r.works.Wait()
	r.sim.meet()
	r.machine.Close()
	late := time.After(3 * time.Second)
	for waits := true; waits; {
		r.sim.mu.Lock()
		done := r.done
		r.done = nil
		r.sim.mu.Unlock()
		for _, d := range done {
			r.machine.Step(d.is, r.now())
		}
		r.put(r.machine.Ready(false).Snapshots)
		if !r.machine.IsSnapshotting() {
			break
		}
		select {
		case <-r.resultReady:
		case <-late:
			waits = false
		case <-r.host.ctx.Done():
			waits = false
		}
	}
	r.stopPutting()
	r.puts.Wait()
	r.sim.mu.Lock()
	defer r.sim.mu.Unlock()
	r.over = true
}

// drain hands the lane over, within drainFor.
func (r *laneRun) drain() {
	if r.draining {
		return
	}
	r.draining = true
	r.sim.did("lane drained")
	r.sim.say("%s hands lane %d over", r.name, r.end.number)
	go func() {
		ctx, cancel := context.WithTimeout(r.running, drainFor)
		defer cancel()
		if err := r.lane.Drain(ctx); err == nil {
			r.sim.did("lane handed over")
		}
		r.stop()
	}()
}

// drainFor is how long a host may take to hand a lane over.
const drainFor = 10 * time.Second

// judge shows the referee an acknowledged event, if the log has it.
func (r *laneRun) judge(seq uint64) {
	if r.dead {
		return
	}
	r.sim.meet()
	m, err := r.sim.log.At(seq, 0)
	if err != nil {
		return
	}
	e := r.sim.event(m)
	switch {
	case e.Session == "":
	case whatIs(e) != r.gave[seq]:
		r.sim.breaks("%s acks %d, at which the log has another event than the delivered one", r.name, seq)
	default:
		r.sim.judge.acked(r.proc, e)
	}
}

// whatIs distinguishes events that had the same sequence at different times.
func whatIs(e session.Event) string { return e.Session + " " + session.LeafOf(e).String() }

// Epoch queues the beginning of an epoch.
func (r *laneRun) Epoch(uint64) {
	r.sim.mu.Lock()
	defer r.sim.mu.Unlock()
	r.queue = append(r.queue, &engine.EpochStarted{Left: r.lane.Left()})
}

// Skipped has nothing to do: all events of the simulation name a session.
func (*laneRun) Skipped(uint64, string) {}

// Deliver queues an event.
func (r *laneRun) Deliver(d natsdelivery.Delivery) {
	if !d.Take() {
		return
	}
	r.sim.mu.Lock()
	defer r.sim.mu.Unlock()
	r.queue = append(r.queue, &engine.Delivered{Event: d.Event, Ack: d.Ack})
}

// isReady reports whether a step can be taken.
func (r *laneRun) isReady() bool {
	if r.over || r.running.Err() != nil {
		return false
	}
	r.sim.mu.Lock()
	defer r.sim.mu.Unlock()
	return len(r.done) > 0 || len(r.queue) > 0 && !r.machine.IsFull()
}

// step takes a step, with a result of work or queued deliveries; false: none.
func (r *laneRun) step() bool {
	if !r.isReady() {
		return false
	}
	arrived := len(r.queue) > 0 && !r.machine.IsFull()
	if len(r.done) > 0 && (!arrived || r.sim.calm || r.sim.draw(4) < 3) {
		r.sim.mu.Lock()
		slices.SortStableFunc(r.done, func(a, b finished) int { return strings.Compare(a.of, b.of) })
		r.sim.mu.Unlock()
		at := r.sim.draw(len(r.done))
		d := r.done[at]
		r.done = slices.Delete(r.done, at, at+1)
		if strings.HasPrefix(d.of, "loads") {
			r.sim.did("folded while others were loaded")
		}
		r.sim.say("%s: lane %d takes what it %s", r.name, r.end.number, d.of)
		r.machine.Step(d.is, r.now())
		r.carryOut()
		return true
	}
	if !arrived {
		return false
	}
	n := 1 + r.sim.draw(min(len(r.queue), 5))
	if r.sim.calm {
		n = min(len(r.queue), 64)
	}
	all := slices.Clone(r.queue[:n])
	r.queue = r.queue[n:]
	text := ""
	for _, in := range all {
		if d, is := in.(*engine.Delivered); is {
			text += fmt.Sprintf(" %d of %s", d.Event.Seq, d.Event.Session)
		} else {
			r.host.epochs[r.end.number]++
			text += " a new epoch"
		}
	}
	r.sim.say("%s: lane %d:%s", r.name, r.end.number, text)
	if n > 1 {
		r.sim.did("taken together")
	}
	for _, in := range all {
		r.machine.Step(in, r.now())
	}
	r.carryOut()
	return true
}

// carryOut carries out the lane's outputs.
func (r *laneRun) carryOut() {
	ready := r.machine.Ready(false)
	for _, ack := range ready.Ack {
		ack()
	}
	for _, w := range slices.Concat(ready.Work, ready.Sends) {
		r.works.Go(func() { r.do(r.running, w) })
	}
	r.put(ready.Snapshots)
	if ready.GiveBack != nil && r.running.Err() == nil {
		r.sim.breaks("%s gave lane %d up: %v", r.name, r.end.number, ready.GiveBack)
		r.stop()
	}
}

// put stores snapshots.
func (r *laneRun) put(snapshots []engine.Work) {
	for _, w := range snapshots {
		r.puts.Go(func() { r.do(r.putting, w) })
	}
}

// do starts some work.
func (r *laneRun) do(ctx context.Context, w engine.Work) {
	of := w.String()
	w.Do(context.WithValue(ctx, carries{}, r.key(of)), func(in engine.Input) {
		r.sim.mu.Lock()
		defer r.sim.mu.Unlock()
		r.done = append(r.done, finished{of, in})
		select {
		case r.resultReady <- struct{}{}:
		default:
		}
	})
}

// keep does the lane's regular checks, by the clock.
func (r *laneRun) keep() {
	if r.over || r.running.Err() != nil {
		return
	}
	switch now := time.Now(); {
	case now.Sub(r.looked) >= 15*time.Second:
		r.looked = now
		r.machine.Step(engine.Recheck{}, r.now())
	case now.Sub(r.ticked) >= time.Second:
		r.ticked = now
		r.machine.Step(engine.Tick{}, r.now())
	}
	r.carryOut()
	r.sim.rest()
}
