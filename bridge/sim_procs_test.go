package bridge

// The processes of the simulation: hosts with their end of the lane, and bridges
// with their model, their tools and their clock.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/host"
	"github.com/refold/refold/internal/jetmodel"
	"github.com/refold/refold/subjects"
)

// letter is an answer to a delivery on its way to the server.
type letter struct {
	consumer *jetmodel.Consumer
	seq      uint64
	nak      bool
	delay    time.Duration
	text     string
}

// simHost is a host process, with its end of the lane: what internal/bus does
// there, in short.
type simHost struct {
	*proc
	sim     *sim
	stepper *host.Stepper

	pin    string
	owned  bool
	era    *simEra
	next   uint64 // consumer sequence that must come next
	last   uint64 // stream sequence of the last event
	queue  []any  // *simEra or *simEvent, for the stepper
	ticked time.Time
	looked time.Time
}

// simEra is the time between two resets.
type simEra struct {
	over   bool
	window []*simEvent
}

type simEvent struct {
	era   *simEra
	event session.Event
	more  bool
	done  bool
}

func (s *sim) startHost(i int) {
	s.lives++
	p := s.start(fmt.Sprintf("h%d.%d", i, s.lives))
	h := &simHost{proc: p, sim: s, ticked: time.Now(), looked: time.Now()}
	h.stepper = host.NewStepper(simWorld{p, s}, p.name, func() bool { return h.owned }, func() bool { return s.lane.Info().Pin == "" },
		slog.New(slog.DiscardHandler), host.Options{SessionsMax: 2 + s.draw(4), SnapshotEach: uint64(1 + s.draw(8))})
	go func() {
		err := h.stepper.Run(p.ctx)
		if err != nil && p.ctx.Err() == nil {
			s.breaks("%s gave its lane up: %v", p.name, err)
		}
	}()
	s.hosts[i] = h
	h.stepper.Load()
}

// begin begins an era: the lane is reset.
func (h *simHost) begin(why string) {
	h.sim.say("%s resets the lane: %s", h.name, why)
	h.sim.lane.Reset()
	if h.era != nil {
		h.era.over = true
	}
	h.era, h.next, h.last = &simEra{}, 1, 0
	h.queue = append(h.queue, h.era)
	h.owned = true
}

// lose gives the lane up.
func (h *simHost) lose() {
	h.sim.did("lane lost")
	h.sim.say("%s lost the lane", h.name)
	if h.era != nil {
		h.era.over = true
	}
	h.pin, h.owned, h.era = "", false, nil
}

// pull takes what the server has for this host.
func (h *simHost) pull() {
	c := h.sim.lane
	if info := c.Info(); h.pin == "" && info.Pin == "" && info.AckPending > 0 {
		c.Reset() // nobody owns it, and somebody left events unacked
	}
	d, found, err := c.Pull(h.pin)
	switch {
	case err != nil:
		h.lose()
		return
	case !found:
		return
	case h.pin == "":
		h.pin = d.Pin
		h.begin("it is ours")
		return
	case h.sim.fault(40):
		h.sim.did("delivery lost")
		h.sim.say("%s: delivery of %d is lost", h.name, d.Seq)
		return
	case d.ConsumerSeq != h.next:
		h.sim.did("gap")
		h.begin("a gap in deliveries")
		return
	}
	h.next++
	e := h.sim.event(d.Message)
	switch {
	case e.Seq > h.last:
		h.last = e.Seq
		one := &simEvent{era: h.era, event: e, more: d.Pending > 0}
		h.era.window = append(h.era.window, one)
		h.queue = append(h.queue, one)
	case slices.ContainsFunc(h.era.window, func(have *simEvent) bool { return have.event.Seq == e.Seq }):
	default:
		h.sim.did("redelivered")
		h.begin("an acknowledged event came again")
	}
}

// step gives the stepper what comes next; false: there is nothing, or it is busy.
func (h *simHost) step() bool {
	switch {
	case !h.stepper.Idle():
		return false
	case h.stepper.HasStored():
		h.sim.say("%s: takes what is stored", h.name)
		h.stepper.Finish()
		return true
	case len(h.queue) == 0:
		return false
	}
	next := h.queue[0]
	h.queue = h.queue[1:]
	switch next := next.(type) {
	case *simEra:
		if !next.over {
			h.sim.say("%s: a new era", h.name)
			h.stepper.Era()
		}
	case *simEvent:
		if !next.era.over {
			h.sim.say("%s: delivered %d of %s", h.name, next.event.Seq, next.event.Session)
			h.stepper.Deliver(next.event, func() { h.ack(next) }, next.more)
		}
	}
	return true
}

// ack takes an event as done, and sends the acks of the prefix.
func (h *simHost) ack(one *simEvent) {
	h.sim.meet()
	if h.dead {
		return
	}
	if one.event.Session != "" {
		if held, err := h.sim.log.At(one.event.Seq, 0); err == nil && session.LeafOf(h.sim.event(held)) == session.LeafOf(one.event) {
			h.sim.judge.acked(h.proc, one.event)
		}
	}
	one.done = true
	if one.era.over {
		return
	}
	w := &one.era.window
	for len(*w) > 0 && (*w)[0].done {
		h.sim.mail = append(h.sim.mail, letter{consumer: h.sim.lane, seq: (*w)[0].event.Seq, text: fmt.Sprintf("%s acks %d", h.name, (*w)[0].event.Seq)})
		*w = (*w)[1:]
	}
}

// simBridge is a bridge process.
type simBridge struct {
	*proc
	sim      *sim
	worker   *worker
	keeper   *timekeeper
	life     lifetimes
	drain    context.CancelFunc
	draining bool
	held     map[*jetmodel.Consumer]map[uint64]bool
}

func (s *sim) startBridge(i int) {
	s.lives++
	p := s.start(fmt.Sprintf("b%d-%d", i, s.lives))
	p.skew = time.Duration(s.draw(5)-2) * 300 * time.Millisecond * time.Duration(min(s.faults, 1))
	b := &simBridge{proc: p, sim: s, held: map[*jetmodel.Consumer]map[uint64]bool{}}
	b.worker = newWorker(simWire{p, s}, s.names, p.name, "sim/"+p.name, slog.New(slog.DiscardHandler))
	b.worker.now = p.now
	b.keeper = &timekeeper{clockwork: simClock{simWire{p, s}}, by: "sim", log: b.worker.log, now: p.now, stats: &b.worker.stats}
	drain, cancel := context.WithCancel(p.ctx)
	b.drain = cancel
	grace, stop := context.WithCancelCause(p.ctx)
	b.life = lifetimes{drain: drain, grace: grace, last: p.ctx}
	context.AfterFunc(p.ctx, func() { stop(errDraining) })
	go b.worker.holders.watch(p.ctx, b.worker.reader.events.clear)
	s.mu.Lock()
	s.alive[p.name] = p
	s.mu.Unlock()
	s.bridges[i] = b
}

const simSlots = 3

// pull takes an effect of a target, or what is due; false: there is none.
func (b *simBridge) pull(c *jetmodel.Consumer, of *target) bool {
	d, found, err := c.Pull("")
	if err != nil || !found {
		return false
	}
	if b.held[c] == nil {
		b.held[c] = map[uint64]bool{}
	}
	if b.sim.fault(60) {
		b.sim.say("%s: delivery of %s is lost", b.name, d.Subject)
		return true
	}
	if b.held[c][d.Seq] {
		c.Progress(d.Seq) // it came again while it is carried
		return true
	}
	b.sim.say("%s: delivered %s, time %d", b.name, d.Subject, d.Count)
	b.held[c][d.Seq] = true
	one := &simDelivery{b: b, c: c, d: d}
	go func() {
		b.carry(of, one)
		b.sim.mu.Lock()
		defer b.sim.mu.Unlock()
		if !b.dead {
			delete(b.held[c], d.Seq)
		}
	}()
	return true
}

// carry carries an effect of a target, or what is due.
func (b *simBridge) carry(of *target, one *simDelivery) {
	var sid, wake string
	var fired time.Time
	switch {
	case of != nil && of.class != session.ClassWake:
		b.worker.take(b.life, b.serves(of), one)
		return
	case of != nil:
		name, err := b.sim.names.ParseEffect(one.d.Subject)
		if err != nil {
			panic(err)
		}
		sid, wake = name.Session, name.Effect
	default:
		var err error
		if sid, wake, err = b.sim.names.ParseDue(one.d.Subject); err != nil {
			panic(err)
		}
		fired = time.Now()
	}
	b.keeper.answer(sid, wake, b.keeper.carry(b.life.last, sid, wake, one.d.Data, fired), one.Ack, one.GiveBack)
}

func (b *simBridge) serves(of *target) served {
	s := served{class: of.class, target: of.target, concurrency: simSlots}
	if of.class == session.ClassLLM {
		s.model = modelFunc(b.generate)
	} else {
		s.executor = executorFunc(b.execute)
	}
	return s
}

// simDelivery is a delivery of an effect.
type simDelivery struct {
	b *simBridge
	c *jetmodel.Consumer
	d jetmodel.Delivery
}

func (d *simDelivery) Subject() string { return d.d.Subject }
func (d *simDelivery) Payload() []byte { return d.d.Data }

func (d *simDelivery) Ack() {
	d.b.sim.meet()
	if d.b.dead {
		return
	}
	if name, err := d.b.sim.names.ParseEffect(d.d.Subject); err == nil && name.Class != session.ClassWake {
		d.b.sim.judge.done(d.b.proc, name.Session, name.Effect)
	}
	d.send(letter{consumer: d.c, seq: d.d.Seq, text: d.b.name + " acks " + d.d.Subject})
}

func (d *simDelivery) GiveBack(delay time.Duration) {
	d.b.sim.meet()
	if !d.b.dead {
		d.send(letter{consumer: d.c, seq: d.d.Seq, nak: true, delay: delay, text: fmt.Sprintf("%s gives %s back for %v", d.b.name, d.d.Subject, delay)})
	}
}

func (d *simDelivery) send(l letter) {
	d.b.sim.mu.Lock()
	defer d.b.sim.mu.Unlock()
	d.b.sim.mail = append(d.b.sim.mail, l)
}

var errTool = errors.New("the tool says no")

func (b *simBridge) execute(ctx context.Context, c Call) (Result, error) {
	one := b.sim.judge.start(b.proc, b.worker.instance, subjects.EffectName{Class: session.ClassTool, Target: "x", Session: c.Session, Effect: c.Effect})
	what, err := b.run(ctx, "execute "+c.ToolID+" "+c.Session+"."+c.Effect)
	if err != nil {
		return Result{}, err
	}
	b.sim.judge.answer(one)
	if what == lost {
		return Result{}, errTool
	}
	return Result{Output: "done"}, nil
}

// run is what takes time in a tool or a model.
func (b *simBridge) run(ctx context.Context, key string) (becomes, error) {
	what, err := b.wait(ctx, key, false)
	for err == nil && what == slowly {
		what, err = b.wait(ctx, key+" (slow)", false)
	}
	if err == nil && what == fails { // it does not return before it must
		<-ctx.Done()
		err = ctx.Err()
	}
	return what, err
}

func (b *simBridge) generate(ctx context.Context, req Request, delta func(string)) (Answer, error) {
	one := b.sim.judge.start(b.proc, b.worker.instance, subjects.EffectName{Class: session.ClassLLM, Target: "p", Session: req.Session, Effect: req.Effect})
	what, err := b.run(ctx, "generate "+req.Session+"."+req.Effect)
	if err != nil {
		return Answer{}, err
	}
	b.sim.judge.answer(one)
	if what == lost {
		return Answer{}, &Error{Code: "overloaded", Detail: "try later"}
	}
	delta("so")
	var calls []AnswerCall
	if !b.sim.calm && len(req.Messages) < 8 {
		for range []int{0, 1, 2, 3, 3, 2}[b.sim.draw(6)] {
			name := []string{"read", "write", "write", "none"}[b.sim.draw(4)]
			calls = append(calls, AnswerCall{ID: "c", Name: name, Arguments: "{}"})
		}
	}
	return Answer{Text: "so it is", Calls: calls, Model: "m"}, nil
}
