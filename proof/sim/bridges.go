package sim

// The bridge processes, with their model, tools and step hook.

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
	"github.com/refold/refold/internal/worker"
	"github.com/refold/refold/proof/jetmodel"
	"github.com/refold/refold/subjects"
)

// bridge is a bridge process.
type bridge struct {
	*proc
	sim      *sim
	worker   *worker.Worker
	counts   worker.TargetCounts // of all its targets
	serving  context.Context     // until SIGTERM
	drain    context.CancelFunc
	draining time.Time                                   // when SIGTERM came; zero: it did not
	doomed   bool                                        // an effect ends it at the next step
	held     map[*jetmodel.Consumer]map[string]*delivery // by subject
}

func (s *sim) startBridge(i int) {
	s.lives++
	p := s.start(fmt.Sprintf("b%d-%d", i, s.lives))
	s.startClock(p, s.skewed())
	b := &bridge{proc: p, sim: s, held: map[*jetmodel.Consumer]map[string]*delivery{}}
	b.worker = worker.New(transport{p, s}, p.name, "sim/"+p.name, p.now, slog.New(slog.DiscardHandler))
	b.serving, b.drain = context.WithCancel(p.ctx)
	go b.worker.Watch(p.ctx)
	s.mu.Lock()
	s.alive[p.name] = p
	s.mu.Unlock()
	s.bridges[i] = b
}

const (
	slotsMax = 3 // effects of one target that a bridge carries at once

	bridgeGrace  = 5 * time.Second              // grace of a stopping bridge for running effects
	bridgeLeaves = bridgeGrace + 15*time.Second // limit of a stopping bridge, with its last settlements
)

// looksGone starts another bridge when this one has stopped.
func (b *bridge) looksGone(i int) {
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
		b.sim.breaks("%s was told to stop %v ago, and still carries out %d effects", b.name, took, held)
	}
	if held == 0 {
		b.sim.did("bridge stopped")
		b.sim.say("%s has stopped", b.name)
		b.sim.kill(b.proc)
		b.sim.startBridge(i)
	}
}

// pull takes an effect of a target; false: there is none.
func (b *bridge) pull(of *target) bool {
	c := of.consumer
	d, found, err := c.Pull("")
	if err != nil || !found {
		return false
	}
	if b.held[c] == nil {
		b.held[c] = map[string]*delivery{}
	}
	if b.sim.fault(60) {
		b.sim.say("%s: delivery of %s is lost", b.name, d.Subject)
		return true
	}
	if one := b.held[c][d.Subject]; one != nil && bytes.Equal(one.d.Data, d.Data) {
		one.epoch, one.d.Seq = b.joins, d.Seq // redelivered while it runs
		c.Progress(d.Seq)
		return true
	}
	b.sim.say("%s: delivered %s, time %d", b.name, d.Subject, d.Count)
	one := &delivery{b: b, c: c, d: d, epoch: b.joins}
	b.held[c][d.Subject] = one
	go b.carry(of, one)
	return true
}

// carry has the worker carry out one effect, in contexts with the effect's
// subject.
func (b *bridge) carry(of *target, one *delivery) {
	serving := context.WithValue(b.serving, carries{}, one.d.Subject)
	life, stop := worker.NewLifetimes(serving, bridgeGrace)
	stays := context.AfterFunc(b.ctx, stop)
	if err := b.worker.Serve(life, b.serves(of), one); err != nil {
		b.sim.breaks("%s does not serve %s: %v", b.name, of.target, err)
	}
	if stays() {
		stop()
	}
}

func (b *bridge) serves(of *target) worker.Target {
	s := worker.Target{Class: of.class, Name: of.target, Concurrency: 1, Counts: &b.counts}
	switch of.class {
	case session.ClassLLM:
		s.Model = b
	case session.ClassStep:
		s.Hook = executor.PrepareStep(b.prepare)
	case session.ClassSpace:
		s.Spaces = b
	default:
		s.Executor = b
	}
	return s
}

// delivery is a delivery of an effect, and a source of that delivery alone.
type delivery struct {
	b *bridge
	c *jetmodel.Consumer
	d jetmodel.Delivery

	epoch uint64 // of the connection that delivered it last
}

var _ worker.Source = (*delivery)(nil)

// Run delivers it.
func (d *delivery) Run(_ context.Context, _ int, carry func(worker.Delivery)) error {
	carry(d)
	return nil
}

// Drain has nothing to end: no other delivery follows.
func (d *delivery) Drain(context.Context) error { return nil }

func (d *delivery) Subject() string { return d.d.Subject }
func (d *delivery) Payload() []byte { return d.d.Data }

func (d *delivery) Name() (subjects.EffectName, error) {
	return d.b.sim.names.ParseEffect(d.d.Subject)
}

func (d *delivery) Ack() {
	d.b.sim.meet()
	if d.b.dead {
		return
	}
	if name, err := d.b.sim.names.ParseEffect(d.d.Subject); err == nil && d.epoch == d.b.joins {
		d.b.sim.judge.done(d.b.proc, name.Session, name.Effect)
	}
	d.send(d.b.name+" acks "+d.d.Subject, func() { d.c.Ack(d.d.Seq) })
}

func (d *delivery) Traceparent() string { return "" }
func (d *delivery) Again() bool         { return d.d.Count > 1 }

func (d *delivery) GiveBack(delay time.Duration) {
	d.b.sim.meet()
	if !d.b.dead {
		d.send(fmt.Sprintf("%s gives %s back for %v", d.b.name, d.d.Subject, delay), func() { d.c.Nak(d.d.Seq, delay) })
	}
}

func (d *delivery) Done() {
	d.b.sim.mu.Lock()
	defer d.b.sim.mu.Unlock()
	if !d.b.dead && d.b.held[d.c][d.d.Subject] == d {
		delete(d.b.held[d.c], d.d.Subject)
	}
}

// send sends an acknowledgement over its connection, as internal/delivery does.
func (d *delivery) send(text string, arrive func()) {
	d.b.sim.mu.Lock()
	defer d.b.sim.mu.Unlock()
	if d.epoch != d.b.joins {
		return
	}
	d.b.sim.mail = append(d.b.sim.mail, &posted{from: d.b.proc, key: text, text: text, arrive: arrive})
}

var errTool = errors.New("the tool failed")

// Execute is a tool that takes time, and fails now and then.
func (b *bridge) Execute(ctx context.Context, c executor.Call) (executor.Result, error) {
	one := b.sim.judge.start(b.proc, subjects.EffectName{Class: session.ClassTool, Target: "x", Session: c.Session, Effect: c.Effect})
	defer b.sim.judge.over(one)
	if c.Pack() != "" {
		b.sim.judge.packTool()
	}
	if b.sim.kills(c.Session + "." + c.Effect) {
		b.sim.judge.dies(b.proc, c.Session+"."+c.Effect)
		b.doomed = true
		<-ctx.Done()
		return executor.Result{}, ctx.Err()
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

// run takes time, for a tool or a model.
func (b *bridge) run(ctx context.Context, key string) (becomes, error) {
	what, err := b.wait(ctx, key, false)
	for err == nil && what == slowly {
		what, err = b.wait(ctx, key+" (slow)", false)
	}
	if err == nil && what == fails { // it returns only when it must
		<-ctx.Done()
		err = ctx.Err()
	}
	return what, err
}

// Generate is a model that calls tools at random.
func (b *bridge) Generate(ctx context.Context, req executor.Request, delta func(string)) (executor.Answer, error) {
	one := b.sim.judge.start(b.proc, subjects.EffectName{Class: session.ClassLLM, Target: "p", Session: req.Session, Effect: req.Effect})
	defer b.sim.judge.over(one)
	what, err := b.run(ctx, "generate "+req.Session+"."+req.Effect)
	if err != nil {
		return executor.Answer{}, err
	}
	b.sim.judge.answer(one)
	if what == lost {
		return executor.Answer{}, &executor.Error{Code: []string{"overloaded", "context_length_exceeded"}[b.sim.draw(2)], Detail: "no"}
	}
	delta("so")
	var calls []executor.AnswerCall
	names := []string{"read", "write", "write", "none", "ask", "wait", "answer", "danger", "extra", "team", "extensions_enable"}
	if slices.ContainsFunc(req.Tools, func(t executor.Tool) bool { return t.Name == "extra" }) {
		names = append(names, "extra", "extra", "extra", "extra")
		if b.sim.calm && len(req.Messages) < 8 { // most turns with this tool occur then
			calls = append(calls, executor.AnswerCall{ID: "c", Name: "extra", Arguments: "{}"})
		}
	}
	if !b.sim.calm && len(req.Messages) < 8 {
		for range []int{0, 1, 2, 3, 3, 2}[b.sim.draw(6)] {
			name := names[b.sim.draw(len(names))]
			arguments := "{}"
			switch name {
			case "wait":
				arguments = []string{`{"seconds":1}`, `{"seconds":70}`}[b.sim.draw(2)]
			case "extensions_enable":
				arguments = []string{`{"extension":"k"}`, `{"extension":"k"}`, `{"extension":"k","dryRun":true}`, `{"extension":"a"}`}[b.sim.draw(4)]
			}
			calls = append(calls, executor.AnswerCall{ID: "c", Name: name, Arguments: arguments})
		}
	}
	return executor.Answer{Text: "so it is", Calls: calls, Model: "m"}, nil
}

// prepare is the hook that chooses the tools of a step.
func (b *bridge) prepare(ctx context.Context, req executor.StepRequest) (executor.StepChoice, error) {
	one := b.sim.judge.start(b.proc, subjects.EffectName{Class: session.ClassStep, Target: "h", Session: req.Session, Effect: req.Effect})
	defer b.sim.judge.over(one)
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
