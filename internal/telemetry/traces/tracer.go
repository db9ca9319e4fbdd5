package traces

import (
	"context"
	"fmt"
	"log/slog"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/timeline"
	"github.com/refold/refold/bridge/executor"
)

// Options configure a Tracer.
type Options struct {
	Form
	Ratio    float64 // part of the runs that are traced, 0 to 1
	Service  string  // service.name: refold-session-actor, refold-bridge
	Version  string
	Instance string
	Content  *Content // which texts are exported; nil: none
	To       Uploader
	Dropped  func(spans int) // called for dropped spans; nil: not called
	Logger   *slog.Logger
}

// Tracer exports the spans of one process. It is safe for concurrent use, and its
// methods do not block.
type Tracer struct {
	opts Options
	out  *exporter
}

// New starts a tracer. Close ends it.
func New(ctx context.Context, o Options) (*Tracer, error) {
	if o.Ratio < 0 || o.Ratio > 1 {
		return nil, fmt.Errorf("the part of the runs that are traced is 0 to 1, not %v", o.Ratio)
	}
	if err := o.To.Start(ctx); err != nil {
		return nil, fmt.Errorf("start the exporter of spans: %w", err)
	}
	return &Tracer{opts: o, out: newExporter(o, Resource(o.Service, o.Version, o.Instance))}, nil
}

// Close sends the spans in the queue, for at most a few seconds.
func (t *Tracer) Close() error {
	t.out.close()
	ctx, cancel := context.WithTimeout(context.Background(), stopFor)
	defer cancel()
	return t.opts.To.Stop(ctx)
}

// Dropped returns how many spans were dropped because the queue was full or the
// collector did not accept them.
func (t *Tracer) Dropped() uint64 { return t.out.dropped.Load() }

// Sampled reports whether a run is traced.
func (t *Tracer) Sampled(sid string, run uint32, origin *session.Origin) bool {
	return t.opts.Sampled(sid, run, origin, t.opts.Ratio)
}

// Traceparent returns the header with which an effect of a sampled run is stored.
func (t *Tracer) Traceparent(sid, effect string, origin *session.Origin) string {
	return t.opts.Traceparent(sid, effect, origin)
}

// Ended exports ended spans of a session.
func (t *Tracer) Ended(sid string, spans []*timeline.Span) {
	t.out.put(len(spans), func(i int) *tracepb.Span { return t.opts.Render(sid, spans[i]) })
}

// Started returns the traceparent that a tool passes on: its parent is the span
// of this start.
func (t *Tracer) Started(s executor.Start) string {
	if !t.traces(&s) {
		return ""
	}
	span, ok := t.startSpan(&s)
	if !ok {
		return ""
	}
	return Context{Trace: t.traceOf(&s), Span: span, Flags: sampledFlag}.String()
}

// traces reports whether a start belongs to a traced run, as sampled by its
// session-actor or by this process. Which tree it belongs to only the session-actor
// tells.
func (t *Tracer) traces(s *executor.Start) bool {
	return s.Traceparent != "" || t.opts.Unit != UnitTree && t.Sampled(s.Session, runNumber(s.Effect), nil)
}

// traceOf returns the id of a start's trace.
func (t *Tracer) traceOf(s *executor.Start) [16]byte {
	if of, ok := ParseTraceparent(s.Traceparent); ok {
		return of.Trace
	}
	return t.opts.trace(s.Session, s.Effect, nil)
}

func (t *Tracer) startSpan(s *executor.Start) (id [8]byte, ok bool) {
	if runNumber(s.Effect) == 0 {
		return id, false
	}
	return t.opts.span(s.Session, startPlace(timeline.PlaceOf(s.Effect), s.Bridge, s.ID)), true
}

// Finished exports an ended start of a model or a tool.
func (t *Tracer) Finished(s executor.Start, e executor.End) {
	if !t.traces(&s) || s.Class != "llm" && s.Class != "tool" {
		return
	}
	if id, ok := t.startSpan(&s); ok {
		t.out.put(1, func(int) *tracepb.Span { return t.renderStart(&s, &e, id) })
	}
}

// Observer returns an observer of a bridge that exports its starts.
func (t *Tracer) Observer() executor.Observer { return observer{t} }

type observer struct{ t *Tracer }

func (o observer) Started(s executor.Start) string        { return o.t.Started(s) }
func (o observer) Ended(s executor.Start, e executor.End) { o.t.Finished(s, e) }
