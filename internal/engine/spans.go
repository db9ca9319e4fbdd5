package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/timeline"
)

// Traces receives the spans of traced runs. Its methods are called for every event:
// they must return soon and must not block.
type Traces interface {
	// Sampled reports whether a run is traced, which comes from the run origin, or, if
	// that is nil, from no other. It is constant for a run.
	Sampled(sid string, run uint32, origin *session.Origin) bool
	// Traceparent returns the header that an effect of such a run is stored with.
	Traceparent(sid, effect string, origin *session.Origin) string
	// Ended receives ended spans, once all outputs of their events are stored. It
	// may receive a span again, with the same content, after another process took
	// the session over.
	Ended(sid string, spans []*timeline.Span)
}

// tracedEventsMax is how many events of a session are folded again, for the spans
// of a run that was active when the session was loaded: 0.1 s of work. In a longer
// session only `refold trace` has the spans of that run.
const tracedEventsMax = 20_000

// tracing is the state of a session's spans.
type tracing struct {
	tracker timeline.Tracker
	seq     uint64 // of the last event followed
	run     uint32 // of root
	root    string // traceparent of the latest run with a measurement
}

// traced returns the tracing of a session, up to date with its state. It returns
// was if that is up to date. It is not if the session was just loaded, or if
// another owner has folded events of it.
func (h *Host) traced(ctx context.Context, sid string, state *session.State, was *tracing) *tracing {
	if h.opts.Traces == nil || state == nil || was != nil && was.seq == state.Seq {
		return was
	}
	sampled := func(s *session.State, run uint32) bool { return h.opts.Traces.Sampled(sid, run, s.Origin(run)) }
	t := &tracing{seq: state.Seq, tracker: timeline.NewTracker(state.Runs, sampled)}
	if !timeline.Wants(state, sampled) {
		return t
	}
	tracker := timeline.NewTracker(0, sampled)
	spans, err := h.refollow(ctx, sid, state, &tracker)
	if err != nil {
		h.log.Warn("run_not_traced", "session", sid, "error", err.Error())
		return t
	}
	t.tracker = tracker
	// The previous owner may have been killed before it sent the ended spans of
	// this run.
	under := slices.DeleteFunc(spans, func(span *timeline.Span) bool { return !tracker.Follows(span.Run) })
	if len(under) > 0 {
		h.opts.Traces.Ended(sid, under)
	}
	return t
}

// callers is a World that returns the traceparent of an event's message.
type callers interface {
	TraceParentAt(ctx context.Context, seq uint64) (string, error)
}

var errTooLong = errors.New("the session has too many events to fold them again: refold trace exports the run")

// refollow has a tracker follow the session from its first event, and returns the
// ended spans.
func (h *Host) refollow(ctx context.Context, sid string, folded *session.State, tracker *timeline.Tracker) (spans []*timeline.Span, err error) {
	if folded.Count > tracedEventsMax {
		return nil, errTooLong
	}
	defer func() { err = recovered(recover(), err) }()
	state := session.New(folded.InstallRecord(), sid)
	for e, err := range h.world.ReadSession(ctx, sid, 1, folded.Seq, false) {
		if err != nil {
			return nil, err
		}
		notices, _ := h.evolve(state, e)
		spans = append(spans, tracker.Follow(state, notices, state.Progress(), "")...)
	}
	if state.Seq != folded.Seq {
		return nil, errIncomplete
	}
	if w, tells := h.world.World.(callers); tells {
		tracker.Callers(func(seq uint64) string {
			caller, err := w.TraceParentAt(ctx, seq)
			if err != nil {
				return "" // the run is traced without it
			}
			return caller
		})
	}
	return spans, nil
}

// trace follows the event that s folded last. It adds the ended spans and the
// headers of new effects to o.
func (h *Host) trace(s *actor, o *outputs, notices, progress []session.Notice) {
	t := s.tracing
	t.seq = s.state.Seq
	o.spans = t.tracker.Follow(s.state, notices, progress, o.arrival.TraceParent)
	if o.tally != nil {
		o.tally.trace = h.exemplar(s, o.spans)
	}
	run := s.state.Run
	if run == nil || !t.tracker.Follows(run.Number) {
		return
	}
	for i := range o.pending {
		if effect := o.pending[i].Effect; effect != nil {
			o.pending[i].TraceParent = h.opts.Traces.Traceparent(s.sid, effect.Name, s.state.Origin(run.Number))
		}
	}
}

// exemplar returns the traceparent of the run of the event that s folded last;
// empty if that run is not traced.
func (h *Host) exemplar(s *actor, ended []*timeline.Span) string {
	t, run := s.tracing, uint32(0)
	if now := s.state.Run; now != nil && t.tracker.Follows(now.Number) {
		run = now.Number
	}
	if n := len(ended); n > 0 && ended[n-1].Kind == timeline.KindRun {
		run = ended[n-1].Run
	}
	switch {
	case run == 0:
		return ""
	case run != t.run:
		t.run, t.root = run, h.opts.Traces.Traceparent(s.sid, timeline.RunPlace(run), s.state.Origin(run))
	}
	return t.root
}

// exportSpans exports the spans of events that are stored.
func (l *Lane) exportSpans(outputs []*outputs) {
	for _, o := range outputs {
		if len(o.spans) > 0 && o.failed == nil {
			l.host.opts.Traces.Ended(o.actor.sid, o.spans)
		}
		o.spans = nil
	}
}
