package bridge

// The consumers of lanes, as hosts meet them: requests that wait at the server,
// what it sends to their inboxes, and acknowledgements on their way. The hosts'
// end is that of production: bus.Lane.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/host"
	"github.com/refold/refold/proof/jetmodel"
)

// laneEnd is the server's end of a lane.
type laneEnd struct {
	number   int
	consumer *jetmodel.Consumer
	open     []*openPull
}

// openPull is a request that waits at the server.
type openPull struct {
	run       *simRun
	reply     string
	left      int
	until     time.Time
	heartbeat time.Duration
	said      time.Time
	pin       string
}

// simRun is a host that runs a lane, from when it is in its share until it is
// handed over: the model that its bus.Lane runs on, and the owner that gets what
// that delivers.
type simRun struct {
	*proc
	sim     *sim
	host    *simHost
	end     *laneEnd
	lane    *bus.Lane
	stepper *host.Stepper
	stop    context.CancelFunc
	running context.Context

	draining bool
	over     bool // it runs no more
	inboxes  map[string]func(bus.LaneModelMessage)
	listened int
	sent     int
	queue    []host.Arrival
	gave     map[uint64]string // the session and the hash of what was delivered, by sequence
	pinned   string            // the pin of the latest delivery
	ticked   time.Time
	looked   time.Time
	crowded  time.Time // since it has too many sessions in memory
}

var (
	_ bus.LaneModel = (*simRun)(nil)
	_ bus.LaneOwner = (*simRun)(nil)
)

// runLane has a host run a lane.
func (h *simHost) runLane(n int) {
	s := h.sim
	ctx, stop := context.WithCancel(h.ctx)
	r := &simRun{
		proc: h.proc, sim: s, host: h, end: s.lanes[n], stop: stop, running: ctx, inboxes: map[string]func(bus.LaneModelMessage){},
		gave: map[uint64]string{}, ticked: time.Now(), looked: time.Now(),
	}
	r.lane = bus.NewModelLane(r, s.names, n, h.log)
	r.stepper = h.host.Lane(r.lane)
	h.runs[n] = r
	s.say("%s runs lane %d", h.name, n)
	go func() {
		if err := r.lane.Run(ctx, r); err != nil && ctx.Err() == nil {
			s.breaks("%s can't use lane %d: %v", h.name, n, err)
		}
		stop()
	}()
	go func() {
		if err := r.stepper.Run(ctx); err != nil && ctx.Err() == nil {
			s.breaks("%s gave lane %d up: %v", h.name, n, err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		r.over = true
	}()
}

// drain hands the lane over, as far as the time allows.
func (r *simRun) drain() {
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

func (r *simRun) key(what string) string { return fmt.Sprintf("lane %d %s", r.end.number, what) }

func (r *simRun) Info(ctx context.Context) (info bus.LaneModelInfo, err error) {
	if r.cut() {
		return info, errRefused
	}
	at, _ := ctx.Deadline() // tells who asks
	err = r.call(ctx, r.key("info "+time.Until(at).String()), func() error {
		i := r.end.consumer.Info()
		info = bus.LaneModelInfo{Pin: i.Pin, TTL: laneTTL, Pending: uint64(i.Pending), Unacked: i.AckPending, Delivered: i.DeliveredStream, Floor: i.FloorStream}
		return nil
	})
	return info, err
}

func (r *simRun) Reset(ctx context.Context) (pending uint64, err error) {
	if r.cut() {
		return 0, errRefused
	}
	err = r.call(ctx, r.key("reset"), func() error {
		r.sim.did("lane reset")
		r.end.consumer.Reset()
		pending = uint64(r.end.consumer.Info().Pending)
		return nil
	})
	return pending, err
}

func (r *simRun) Unpin(ctx context.Context) error {
	return r.call(ctx, r.key("unpin"), func() error {
		r.end.consumer.Unpin()
		return nil
	})
}

func (r *simRun) Listen(take func(bus.LaneModelMessage)) (inbox string, stop func()) {
	r.sim.mu.Lock()
	defer r.sim.mu.Unlock()
	r.listened++
	inbox = fmt.Sprintf("%s.lane%d.%d", r.name, r.end.number, r.listened)
	r.inboxes[inbox] = take
	return inbox, func() {
		r.sim.mu.Lock()
		defer r.sim.mu.Unlock()
		delete(r.inboxes, inbox)
	}
}

// send puts a message to the server on its way: those of one lane are in order,
// but for what it asks at the moment in which it acks: that comes behind.
func (r *simRun) send(keeps bool, text string, arrive func()) {
	r.sim.mu.Lock()
	defer r.sim.mu.Unlock()
	r.sent++
	r.sim.mail = append(r.sim.mail, &posted{
		from: r.proc, key: fmt.Sprintf("%s %d %v %08d", r.name, r.end.number, keeps, r.sent), text: r.name + " " + r.key(text), keeps: keeps, arrive: arrive,
	})
}

func (r *simRun) Pull(reply string, p bus.LaneModelPull) error {
	r.send(true, fmt.Sprintf("pulls %d with pin %q", p.Batch, p.Pin), func() { r.end.ask(r, reply, p) })
	return nil
}

func (r *simRun) Ack(seq, _ uint64) {
	r.judge(seq)
	r.send(false, fmt.Sprintf("acks %d", seq), func() { r.end.consumer.Ack(seq) })
}

func (r *simRun) AckSure(ctx context.Context, seq, _ uint64) error {
	r.judge(seq)
	return r.call(ctx, r.key(fmt.Sprintf("acks %d for sure", seq)), func() error {
		r.end.consumer.Ack(seq)
		return nil
	})
}

func (r *simRun) Reconnects() uint64 {
	r.sim.mu.Lock()
	defer r.sim.mu.Unlock()
	return r.host.joins
}

// judge shows the referee what is acknowledged, if the log has it.
func (r *simRun) judge(seq uint64) {
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
		r.sim.breaks("%s acks %d, at which the log has another event than it was given", r.name, seq)
	default:
		r.sim.judge.acked(r.proc, e)
	}
}

// whatIs tells events apart that have one sequence after another.
func whatIs(e session.Event) string { return e.Session + " " + session.LeafOf(e).String() }

// Epoch takes the beginning of an epoch.
func (r *simRun) Epoch(uint64) {
	r.sim.mu.Lock()
	defer r.sim.mu.Unlock()
	r.queue = append(r.queue, host.Arrival{Epoch: true})
}

// Deliver takes an event.
func (r *simRun) Deliver(d bus.Delivery) {
	r.sim.mu.Lock()
	defer r.sim.mu.Unlock()
	r.queue = append(r.queue, host.Arrival{Event: d.Event, Ack: d.Ack})
}

// isReady reports that a step can be taken.
func (r *simRun) isReady() bool {
	return !r.over && r.running.Err() == nil && r.stepper.Idle() && (r.stepper.HasStored() || r.stepper.HasLoaded() || len(r.queue) > 0 && !r.stepper.IsFull())
}

// step takes a step: what is stored, or loaded, or some of what arrived. False:
// there is nothing, or it is busy.
func (r *simRun) step() bool {
	if !r.isReady() {
		return false
	}
	arrived := len(r.queue) > 0 && !r.stepper.IsFull()
	if stored, loaded := r.stepper.HasStored(), r.stepper.HasLoaded(); (stored || loaded) && (!arrived || r.sim.calm || r.sim.draw(4) < 3) {
		if stored && (!loaded || r.sim.calm || r.sim.draw(2) == 0) {
			r.sim.say("%s: lane %d takes what is stored", r.name, r.end.number)
			r.stepper.Finish()
		} else {
			r.sim.did("folded while others were loaded")
			r.sim.say("%s: lane %d takes who was loaded", r.name, r.end.number)
			r.stepper.Unpark()
		}
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
	for _, a := range all {
		if a.Epoch {
			r.host.epochs[r.end.number]++
			text += " a new epoch"
		} else {
			text += fmt.Sprintf(" %d of %s", a.Event.Seq, a.Event.Session)
		}
	}
	r.sim.say("%s: lane %d:%s", r.name, r.end.number, text)
	if n > 1 {
		r.sim.did("taken together")
	}
	r.stepper.Take(all)
	return true
}

// keep has the lane look around, as it does by the clock.
func (r *simRun) keep() {
	if r.over || r.running.Err() != nil || !r.stepper.Idle() {
		return
	}
	switch now := time.Now(); {
	case now.Sub(r.looked) >= 15*time.Second:
		r.looked = now
		r.stepper.Recheck()
	case now.Sub(r.ticked) >= time.Second:
		r.ticked = now
		r.stepper.Tick()
	}
	r.sim.rest()
}

// listens reports that the host listens on a reply subject.
func (r *simRun) listens(reply string) bool {
	r.sim.mu.Lock()
	defer r.sim.mu.Unlock()
	return r.inboxes[reply[:strings.LastIndexByte(reply, '.')]] != nil
}

// hears delivers a message to an inbox; false: nobody listens there.
func (r *simRun) hears(reply string, m bus.LaneModelMessage) bool {
	r.sim.mu.Lock()
	take := r.inboxes[reply[:strings.LastIndexByte(reply, '.')]]
	r.sim.mu.Unlock()
	if r.dead || r.cut() || take == nil {
		return false
	}
	take(m)
	r.sim.rest()
	return true
}
