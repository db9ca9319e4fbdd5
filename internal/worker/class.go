package worker

import (
	"context"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/subjects"
)

// operations are the worker's operations on the effects of one class.
type operations interface {
	// serves reports whether a target has an executor for them.
	serves(s *Target) bool
	// decode reads a payload into e, and returns its header.
	decode(e *effect, payload []byte) (header, error)
	// start executes an effect, and decides what follows.
	start(w *Worker, f *execution) decision
	// outcome returns the outcome of an effect whose executor has returned r. again
	// says that it is not settled: it may run elsewhere.
	outcome(w *Worker, f *execution, r *returned, now time.Time) (o outcome, again bool)
	// body returns the body of an outcome's settlement. Text above inlineMax
	// bytes is stored as a blob.
	body(ctx context.Context, w *Worker, e *effect, o outcome, inlineMax int) (typ string, body any, err error)
}

var classOps = map[session.Class]operations{
	session.ClassLLM:   generations{},
	session.ClassTool:  calls{},
	session.ClassStep:  steps{},
	session.ClassSpace: syncs{},
}

// header holds the fields of a payload that all classes have.
type header struct {
	name           subjects.EffectName
	version        int
	runMS, startBy int64
}

// Served reports whether the target has an executor for the effects of its class.
func (s *Target) Served() bool {
	ops, known := classOps[s.Class]
	return known && ops.serves(s)
}

type generations struct{}

func (generations) serves(s *Target) bool { return s.Model != nil }

func (generations) decode(e *effect, payload []byte) (header, error) {
	g := new(session.Generation)
	e.generation = g
	err := codec.Unmarshal(payload, g)
	name := subjects.EffectName{Class: g.Class, Target: g.Provider, Session: g.Session, Effect: g.Effect}
	return header{name, g.V, g.RunMS, g.StartBy}, err
}

func (generations) body(ctx context.Context, w *Worker, e *effect, o outcome, inlineMax int) (string, any, error) {
	if o.answer != nil && len(o.answer.Calls) > 0 {
		body, err := w.callsBody(ctx, e, o.answer, o.offloaded, inlineMax)
		return session.TypeToolCallsObserved, body, err
	}
	body, err := w.generationBody(ctx, e, o, inlineMax)
	return session.TypeGenerationSettled, body, err
}

type calls struct{}

func (calls) serves(s *Target) bool { return s.Executor != nil }

func (calls) decode(e *effect, payload []byte) (header, error) {
	c := new(session.ToolCall)
	e.call = c
	err := codec.Unmarshal(payload, c)
	name := subjects.EffectName{Class: c.Class, Target: e.name.Target, Session: c.Session, Effect: c.Effect}
	return header{name, c.V, c.RunMS, c.StartBy}, err
}

func (calls) body(ctx context.Context, w *Worker, e *effect, o outcome, inlineMax int) (string, any, error) {
	body, err := w.callBody(ctx, e, o, inlineMax)
	return session.TypeToolCallSettled, body, err
}

type steps struct{}

func (steps) serves(s *Target) bool { return s.Hook != nil }

func (steps) decode(e *effect, payload []byte) (header, error) {
	p := new(session.Step)
	err := codec.Unmarshal(payload, p)
	if err == nil {
		e.step, err = stepRequest(p)
		e.items = p.Items
	}
	name := subjects.EffectName{Class: p.Class, Target: p.Hook, Session: p.Session, Effect: p.Effect}
	return header{name, p.V, p.RunMS, p.StartBy}, err
}

type syncs struct{}

func (syncs) serves(s *Target) bool { return s.Spaces != nil }

func (syncs) decode(e *effect, payload []byte) (header, error) {
	p := new(session.Space)
	e.space = p
	err := codec.Unmarshal(payload, p)
	name := subjects.EffectName{Class: p.Class, Target: e.name.Target, Session: p.Session, Effect: p.Effect}
	return header{name, p.V, p.RunMS, p.StartBy}, err
}
