package worker

// The consumers of lanes, as hosts meet them: requests that wait at the server,
// what it sends to their inboxes, and acknowledgements on their way. The hosts'
// end is that of production: natsdelivery.Lane.

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
// handed over: the model that its natsdelivery.Lane runs on, and the owner that gets what
// that delivers.
type simRun struct {
	*proc
	sim     *sim
	host    *simHost
	end     *laneEnd
	lane    *natsdelivery.Lane
	machine *engine.Lane
	works   sync.WaitGroup
	puts    sync.WaitGroup // snapshots
	running context.Context
	stop    context.CancelFunc

	putting     context.Context // outlasts running
	stopPutting context.CancelFunc

	draining bool
	done     []simDone
	told     chan struct{} // of capacity 1: there is more of it
	over     bool          // it runs no more
	inboxes  map[string]chan *nats.Msg
	listened int
	sent     int
	queue    []engine.Input
	gave     map[uint64]string // the session and the hash of what was delivered, by sequence
	pinned   string            // the pin of the latest delivery
	ticked   time.Time
	looked   time.Time
	crowded  time.Time // since it has too many sessions in memory
}

// simDone is what became of a lane's work.
type simDone struct {
	of string // its name
	is engine.Input
}

var (
	_ natsdelivery.LaneServer = (*simRun)(nil)
	_ natsdelivery.LaneOwner  = (*simRun)(nil)
)

// runLane has a host run a lane.
func (h *simHost) runLane(n int) {
	s := h.sim
	ctx, stop := context.WithCancel(h.ctx)
	r := &simRun{
		proc: h.proc, sim: s, host: h, end: s.lanes[n], stop: stop, running: ctx, inboxes: map[string]chan *nats.Msg{},
		gave: map[uint64]string{}, told: make(chan struct{}, 1), ticked: time.Now(), looked: time.Now(),
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

// ends puts the last snapshots of a lane that has ended, for a while.
func (r *simRun) ends() {
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
		case <-r.told:
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

func (r *simRun) Info(ctx context.Context) (info natsdelivery.LaneInfo, err error) {
	if r.cut() {
		return info, mayPass(errRefused)
	}
	at, _ := ctx.Deadline() // tells who asks
	err = r.call(ctx, r.key("info "+time.Until(at).String()), func() error {
		i := r.end.consumer.Info()
		info = natsdelivery.LaneInfo{Pin: i.Pin, TTL: laneTTL, Pending: uint64(i.Pending), Unacked: i.AckPending, Delivered: i.DeliveredStream, Floor: i.FloorStream}
		return nil
	})
	return info, mayPass(err)
}

// mayPass has an error taken for one of the connection, after which a lane asks again.
func mayPass(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", nats.ErrTimeout, err)
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

func (r *simRun) Listen(room int) (inbox string, msgs <-chan *nats.Msg, stop func(), err error) {
	r.sim.mu.Lock()
	defer r.sim.mu.Unlock()
	r.listened++
	inbox = fmt.Sprintf("%s.lane%d.%d", r.name, r.end.number, r.listened)
	all := make(chan *nats.Msg, room)
	r.inboxes[inbox] = all
	return inbox, all, func() {
		r.sim.mu.Lock()
		defer r.sim.mu.Unlock()
		delete(r.inboxes, inbox)
	}, nil
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

func (r *simRun) Pull(reply string, p natsdelivery.PullRequest) error {
	r.send(true, fmt.Sprintf("pulls %d with pin %q", p.Batch, p.Pin), func() { r.end.ask(r, reply, p) })
	return nil
}

func (r *simRun) Ack(reply string) error {
	seq := seqOf(reply)
	r.judge(seq)
	r.send(false, fmt.Sprintf("acks %d", seq), func() { r.end.consumer.Ack(seq) })
	return nil
}

func (r *simRun) AckSure(ctx context.Context, reply string) error {
	seq := seqOf(reply)
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
	r.queue = append(r.queue, &engine.EpochStarted{Left: r.lane.Left()})
}

// Deliver takes an event.
func (r *simRun) Deliver(d natsdelivery.Delivery) {
	r.sim.mu.Lock()
	defer r.sim.mu.Unlock()
	r.queue = append(r.queue, &engine.Delivered{Event: d.Event, Ack: d.Ack})
}

// isReady reports that a step can be taken.
func (r *simRun) isReady() bool {
	if r.over || r.running.Err() != nil {
		return false
	}
	r.sim.mu.Lock()
	defer r.sim.mu.Unlock()
	return len(r.done) > 0 || len(r.queue) > 0 && !r.machine.IsFull()
}

// step takes a step: what became of some work, or some of what arrived. False:
// there is nothing.
func (r *simRun) step() bool {
	if !r.isReady() {
		return false
	}
	arrived := len(r.queue) > 0 && !r.machine.IsFull()
	if len(r.done) > 0 && (!arrived || r.sim.calm || r.sim.draw(4) < 3) {
		r.sim.mu.Lock()
		slices.SortStableFunc(r.done, func(a, b simDone) int { return strings.Compare(a.of, b.of) })
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

// carryOut has done what the lane wants done.
func (r *simRun) carryOut() {
	ready := r.machine.Ready(false)
	for _, ack := range ready.Ack {
		ack()
	}
	for _, w := range ready.Work {
		r.works.Go(func() { r.do(r.running, w) })
	}
	r.put(ready.Snapshots)
	if ready.GiveBack != nil && r.running.Err() == nil {
		r.sim.breaks("%s gave lane %d up: %v", r.name, r.end.number, ready.GiveBack)
		r.stop()
	}
}

// put puts snapshots.
func (r *simRun) put(snapshots []engine.Work) {
	for _, w := range snapshots {
		r.puts.Go(func() { r.do(r.putting, w) })
	}
}

// do does some work.
func (r *simRun) do(ctx context.Context, w engine.Work) {
	of := w.String()
	w.Do(context.WithValue(ctx, carries{}, r.key(of)), func(in engine.Input) {
		r.sim.mu.Lock()
		defer r.sim.mu.Unlock()
		r.done = append(r.done, simDone{of, in})
		select {
		case r.told <- struct{}{}:
		default:
		}
	})
}

// keep has the lane look around, as it does by the clock.
func (r *simRun) keep() {
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

// listens reports that the host listens on a reply subject.
func (r *simRun) listens(reply string) bool {
	r.sim.mu.Lock()
	defer r.sim.mu.Unlock()
	return r.inboxes[reply[:strings.LastIndexByte(reply, '.')]] != nil
}

// hears delivers a message to an inbox; false: nobody listens there. What does not
// fit is lost, as on a core subscription.
func (r *simRun) hears(reply string, m *nats.Msg) bool {
	r.sim.mu.Lock()
	inbox := r.inboxes[reply[:strings.LastIndexByte(reply, '.')]]
	r.sim.mu.Unlock()
	if r.dead || r.cut() || inbox == nil {
		return false
	}
	select {
	case inbox <- m:
	default:
	}
	r.sim.rest()
	return true
}
