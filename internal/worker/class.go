package worker

import (
	"context"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/subjects"
)

// Target is one target and its executor: of Model, Executor, Hook and Spaces the
// one of its class.
type Target struct {
	Class       session.Class
	Name        string
	Concurrency int
	Model       executor.Model
	Executor    executor.Executor
	Hook        executor.StepHook
	Spaces      executor.SpaceReader

	Pace   *Pacer        // nil: its generations start at once
	Counts *TargetCounts // nil: not counted
	Ahead  int           // effects pulled in advance, which wait for their session's turn; 0: none

	Priority int    // among targets that share slots
	turns    *slots // of its sessions; nil: without Ahead
	lost     bool   // it answers for a worker that is gone
	Lacks    string // what the target lacks, for people; empty: nothing
}

// String returns the target as tool/host.
func (s *Target) String() string { return string(s.Class) + "/" + s.Name }

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

// classOps are the classes that this package executes. A class whose effects may be
// executed twice is a safeClass.
var classOps = map[session.Class]operations{
	session.ClassLLM:   generations{},
	session.ClassTool:  calls{},
	session.ClassStep:  steps,
	session.ClassSpace: syncs,
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

// safeClass has the operations of a class whose effects need no claim, because executing
// one twice does no harm. Its payloads are a P.
type safeClass[P any] struct {
	executor string // its kind, in texts
	code     string // of a failure without a code of its own
	served   func(s *Target) bool
	// read returns what run receives as the effect's own, and the header. target is that
	// of the effect's subject.
	read func(p *P, target string) (own any, h header, err error)
	// run executes an effect, and returns its settlement. start names this start.
	run func(ctx context.Context, w *Worker, f *execution, start string) (*settled, error)
	// failed returns the settlement of an effect that failed.
	failed func(effect string, fault *session.Fault) *settled
}

// settled is the settlement of an effect of a safeClass.
type settled struct {
	typ  string
	body any
}

func (c safeClass[P]) serves(s *Target) bool { return c.served(s) }

func (c safeClass[P]) decode(e *effect, payload []byte) (h header, err error) {
	p := new(P)
	if err := codec.Unmarshal(payload, p); err != nil {
		return header{}, err
	}
	e.own, h, err = c.read(p, e.name.Target)
	return h, err
}

func (c safeClass[P]) start(w *Worker, f *execution) decision {
	return w.execute(f, func(ctx context.Context, start string, r *returned) { r.settled, r.err = c.run(ctx, w, f, start) })
}

func (c safeClass[P]) outcome(_ *Worker, f *execution, r *returned, _ time.Time) (outcome, bool) {
	return r.outcome(f.effect, c.executor, c.code, c.code)
}

func (c safeClass[P]) body(_ context.Context, _ *Worker, e *effect, o outcome, _ int) (string, any, error) {
	as := o.settled
	if as == nil {
		as = c.failed(e.name.Effect, wireFault(o.fault, c.code))
	}
	return as.typ, as.body, nil
}
