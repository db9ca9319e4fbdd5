package worker

import (
	"context"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/subjects"
)

// operations are what the worker does with the effects of one class.
type operations interface {
	// serves reports whether a target has an executor for them.
	serves(s *Target) bool
	// decode reads a payload into e, and returns what the payload says of itself.
	decode(e *effect, payload []byte) (header, error)
	// start executes an effect, and says what becomes of it.
	start(w *Worker, f *execution) decision
	// outcome says what an effect comes to whose executor has returned r. again says
	// that nothing is to be settled: it may run elsewhere.
	outcome(w *Worker, f *execution, r *returned, now time.Time) (o outcome, again bool)
	// body returns the settlement of an outcome. Text above inlineMax bytes is
	// stored as a blob.
	body(ctx context.Context, w *Worker, e *effect, o outcome, inlineMax int) (typ string, body any, err error)
}

// classOps is the table of classes.
var classOps = map[session.Class]operations{
	session.ClassLLM:   generations{},
	session.ClassTool:  calls{},
	session.ClassStep:  steps{},
	session.ClassSpace: syncs{},
}

// header is what a payload says of its effect.
type header struct {
	name           subjects.EffectName
	version        int
	runMS, startBy int64
}

// Served reports whether the target has an executor for the effects of its class.
func (s *Target) Served() bool {
	of, known := classOps[s.Class]
	return known && of.serves(s)
}

type generations struct{}

func (generations) serves(s *Target) bool { return s.Model != nil }

func (generations) decode(e *effect, payload []byte) (header, error) {
	g := new(session.Generation)
	e.generation = g
	err := codec.Unmarshal(payload, g)
	said := subjects.EffectName{Class: g.Class, Target: g.Provider, Session: g.Session, Effect: g.Effect}
	return header{said, g.V, g.RunMS, g.StartBy}, err
}

func (generations) body(ctx context.Context, w *Worker, e *effect, o outcome, inlineMax int) (string, any, error) {
	if o.answer != nil && len(o.answer.Calls) > 0 {
		body, err := w.callsBody(ctx, e, o.answer, o.apart, inlineMax)
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
	said := subjects.EffectName{Class: c.Class, Target: e.name.Target, Session: c.Session, Effect: c.Effect}
	return header{said, c.V, c.RunMS, c.StartBy}, err
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
	said := subjects.EffectName{Class: p.Class, Target: p.Hook, Session: p.Session, Effect: p.Effect}
	return header{said, p.V, p.RunMS, p.StartBy}, err
}

type syncs struct{}

func (syncs) serves(s *Target) bool { return s.Spaces != nil }

func (syncs) decode(e *effect, payload []byte) (header, error) {
	p := new(session.Space)
	e.space = p
	err := codec.Unmarshal(payload, p)
	said := subjects.EffectName{Class: p.Class, Target: e.name.Target, Session: p.Session, Effect: p.Effect}
	return header{said, p.V, p.RunMS, p.StartBy}, err
}
