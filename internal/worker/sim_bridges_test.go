package worker

// The bridge processes of the simulation, with their model, their tools and their
// hook.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/proof/jetmodel"
	"github.com/refold/refold/subjects"
)

// simBridge is a bridge process.
type simBridge struct {
	*proc
	sim      *sim
	worker   *Worker
	life     Lifetimes
	drain    context.CancelFunc
	draining time.Time                                      // since it was told to stop; zero: it was not
	held     map[*jetmodel.Consumer]map[string]*simDelivery // by subject
}

func (s *sim) startBridge(i int) {
	s.lives++
	p := s.start(fmt.Sprintf("b%d-%d", i, s.lives))
	p.skew = s.skewed()
	b := &simBridge{proc: p, sim: s, held: map[*jetmodel.Consumer]map[string]*simDelivery{}}
	b.worker = New(simWire{p, s}, p.name, "sim/"+p.name, slog.New(slog.DiscardHandler))
	b.worker.now = p.now
	drain, cancel := context.WithCancel(p.ctx)
	b.drain = cancel
	life, stop := NewLifetimes(drain, bridgeGrace)
	b.life = life
	b.worker.heed(life)
	context.AfterFunc(p.ctx, stop)
	go b.worker.Watch(p.ctx)
	s.mu.Lock()
	s.alive[p.name] = p
	s.mu.Unlock()
	s.bridges[i] = b
}

const (
	simSlots = 3

	// bridgeGrace is what a bridge that is told to stop leaves to what runs, and
	// bridgeLeaves how long it may take to end.
	bridgeGrace  = 5 * time.Second
	bridgeLeaves = bridgeGrace + stopGrace + settleGrace + 5*time.Second
)

// looksGone starts a bridge anew that has stopped.
func (b *simBridge) looksGone(i int) {
	if b.draining.IsZero() || b.dead {
		return
	}
	b.sim.mu.Lock()
	held := 0
	for _, of := range b.held {
		held += len(of)
	}
	b.sim.mu.Unlock()
	if took := time.Since(b.draining); held > 0 && took > bridgeLeaves {
		b.sim.breaks("%s was told to stop %v ago, and carries %d effects", b.name, took, held)
	}
	if held == 0 {
		b.sim.did("bridge stopped")
		b.sim.say("%s has stopped", b.name)
		b.sim.kill(b.proc)
		b.sim.startBridge(i)
	}
}

// jump sets the clock of a bridge. What it heard of others is counted by a clock
// that does not jump.
func (b *simBridge) jump(by time.Duration) {
	h := b.worker.detector
	h.mu.Lock()
	defer h.mu.Unlock()
	b.sim.mu.Lock()
	defer b.sim.mu.Unlock()
	b.skew += by
	h.since, h.own = h.since.Add(by), h.own.Add(by)
}

// pull takes an effect of a target; false: there is none.
func (b *simBridge) pull(of *target) bool {
	c := of.consumer
	d, found, err := c.Pull("")
	if err != nil || !found {
		return false
	}
	if b.held[c] == nil {
		b.held[c] = map[string]*simDelivery{}
	}
	if b.sim.fault(60) {
		b.sim.say("%s: delivery of %s is lost", b.name, d.Subject)
		return true
	}
	if one := b.held[c][d.Subject]; one != nil && bytes.Equal(one.d.Data, d.Data) {
		one.epoch, one.d.Seq = b.joins, d.Seq // it came again while it is carried
		c.Progress(d.Seq)
		return true
	}
	b.sim.say("%s: delivered %s, time %d", b.name, d.Subject, d.Count)
	one := &simDelivery{b: b, c: c, d: d, epoch: b.joins}
	b.held[c][d.Subject] = one
	go b.carry(of, one)
	return true
}

// carry carries an effect of a target.
func (b *simBridge) carry(of *target, one *simDelivery) {
	life := b.life
	life.grace = context.WithValue(life.grace, carries{}, one.d.Subject)
	life.Last = context.WithValue(life.Last, carries{}, one.d.Subject)
	serves := b.serves(of)
	b.worker.take(&life, &serves, one)
}

func (b *simBridge) serves(of *target) Target {
	s := Target{Class: of.class, Name: of.target, Concurrency: simSlots}
	switch of.class {
	case session.ClassLLM:
		s.Model = modelFunc(b.generate)
	case session.ClassStep:
		s.Hook = executor.PrepareStep(b.prepare)
	case session.ClassSpace:
		s.Spaces = readSpace(b.readSpace)
	default:
		s.Executor = executorFunc(b.execute)
	}
	return s
}

// simDelivery is a delivery of an effect.
type simDelivery struct {
	b *simBridge
	c *jetmodel.Consumer
	d jetmodel.Delivery

	epoch uint64 // of the connection that delivered it last
}

func (d *simDelivery) Subject() string { return d.d.Subject }
func (d *simDelivery) Payload() []byte { return d.d.Data }

func (d *simDelivery) Name() (subjects.EffectName, error) {
	return d.b.sim.names.ParseEffect(d.d.Subject)
}

func (d *simDelivery) Ack() {
	d.b.sim.meet()
	if d.b.dead {
		return
	}
	if name, err := d.b.sim.names.ParseEffect(d.d.Subject); err == nil && d.epoch == d.b.joins {
		d.b.sim.judge.done(d.b.proc, name.Session, name.Effect)
	}
	d.send(d.b.name+" acks "+d.d.Subject, func() { d.c.Ack(d.d.Seq) })
}

func (d *simDelivery) Traced() bool { return false }

func (d *simDelivery) GiveBack(delay time.Duration) {
	d.b.sim.meet()
	if !d.b.dead {
		d.send(fmt.Sprintf("%s gives %s back for %v", d.b.name, d.d.Subject, delay), func() { d.c.Nak(d.d.Seq, delay) })
	}
}

func (d *simDelivery) Done() {
	d.b.sim.mu.Lock()
	defer d.b.sim.mu.Unlock()
	if !d.b.dead && d.b.held[d.c][d.d.Subject] == d {
		delete(d.b.held[d.c], d.d.Subject)
	}
}

// send sends an answer over the connection that delivered, as internal/delivery does.
func (d *simDelivery) send(text string, arrive func()) {
	d.b.sim.mu.Lock()
	defer d.b.sim.mu.Unlock()
	if d.epoch != d.b.joins {
		return
	}
	d.b.sim.mail = append(d.b.sim.mail, &posted{from: d.b.proc, key: text, text: text, arrive: arrive})
}

var errTool = errors.New("the tool says no")

func (b *simBridge) execute(ctx context.Context, c executor.Call) (executor.Result, error) {
	one := b.sim.judge.start(b.proc, b.worker.instance, subjects.EffectName{Class: session.ClassTool, Target: "x", Session: c.Session, Effect: c.Effect})
	if c.Pack() != "" {
		b.sim.judge.packTool()
	}
	what, err := b.run(ctx, "execute "+c.ToolID+" "+c.Session+"."+c.Effect)
	if err != nil {
		return executor.Result{}, err
	}
	b.sim.judge.answer(one)
	if what == lost {
		return executor.Result{}, errTool
	}
	return executor.Result{Output: "done"}, nil
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

func (b *simBridge) generate(ctx context.Context, req executor.Request, delta func(string)) (executor.Answer, error) {
	one := b.sim.judge.start(b.proc, b.worker.instance, subjects.EffectName{Class: session.ClassLLM, Target: "p", Session: req.Session, Effect: req.Effect})
	what, err := b.run(ctx, "generate "+req.Session+"."+req.Effect)
	if err != nil {
		return executor.Answer{}, err
	}
	b.sim.judge.answer(one)
	if what == lost {
		return executor.Answer{}, &executor.Error{Code: "overloaded", Detail: "try later"}
	}
	delta("so")
	var calls []executor.AnswerCall
	names := []string{"read", "write", "write", "none", "ask", "danger", "extra", "extensions_enable"}
	if slices.ContainsFunc(req.Tools, func(t executor.Tool) bool { return t.Name == "extra" }) {
		names = append(names, "extra", "extra", "extra", "extra")
		if b.sim.calm && len(req.Messages) < 8 { // most turns that have it come then
			calls = append(calls, executor.AnswerCall{ID: "c", Name: "extra", Arguments: "{}"})
		}
	}
	if !b.sim.calm && len(req.Messages) < 8 {
		for range []int{0, 1, 2, 3, 3, 2}[b.sim.draw(6)] {
			name := names[b.sim.draw(len(names))]
			arguments := "{}"
			if name == "extensions_enable" {
				arguments = []string{`{"extension":"k"}`, `{"extension":"k"}`, `{"extension":"k","dryRun":true}`, `{"extension":"a"}`}[b.sim.draw(4)]
			}
			calls = append(calls, executor.AnswerCall{ID: "c", Name: name, Arguments: arguments})
		}
	}
	return executor.Answer{Text: "so it is", Calls: calls, Model: "m"}, nil
}

// prepare is the hook that chooses what a step offers.
func (b *simBridge) prepare(ctx context.Context, req executor.StepRequest) (executor.StepChoice, error) {
	one := b.sim.judge.start(b.proc, b.worker.instance, subjects.EffectName{Class: session.ClassStep, Target: "h", Session: req.Session, Effect: req.Effect})
	what, err := b.run(ctx, "prepare "+req.Session+"."+req.Effect)
	if err != nil {
		return executor.StepChoice{}, err
	}
	b.sim.judge.answer(one)
	switch {
	case what == lost:
		return executor.StepChoice{}, errTool
	case b.sim.calm:
		return executor.StepChoice{}, nil
	}
	return []executor.StepChoice{{}, {ActiveTools: []string{"read", "write"}, Context: map[string]any{"by": "h"}}, {ActiveTools: []string{"no such tool"}}}[b.sim.draw(3)], nil
}
