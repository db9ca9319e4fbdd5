package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/timeline"
)

// Traces takes the spans of the runs that are traced. Its methods are called on the
// path of every event: they must return soon and must not block.
type Traces interface {
	// Sampled reports whether a run is traced. It always says the same of a run.
	Sampled(sid string, run uint32) bool
	// Traceparent returns the header that an effect of such a run is stored with.
	Traceparent(sid, effect string) string
	// Ended takes spans that ended, once all that their events said is stored. It
	// may be given a span again, with the same content, after another process took
	// the session over.
	Ended(sid string, spans []*timeline.Span)
}

// tracedEventsMax is how many events of a session are folded again for the spans of
// a run that was under way when the session was loaded: 0.1 s of work. A longer
// session has no spans of that run but those of `refold trace`.
const tracedEventsMax = 20_000

// tracing is what a session in memory has for its spans.
type tracing struct {
	tracker timeline.Tracker
	seq     uint64 // of the event that was followed last
	run     uint32 // of root
	root    string // traceparent of the latest run that something was measured of
}

// traced returns the tracing of a session, which has followed all that its state
// folded: was, if that has. It has not if the session was just loaded, or another
// owner has gone on with it.
func (h *Host) traced(ctx context.Context, sid string, state *session.State, was *tracing) *tracing {
	if h.opts.Traces == nil || state == nil || was != nil && was.seq == state.Seq {
		return was
	}
	sampled := func(run uint32) bool { return h.opts.Traces.Sampled(sid, run) }
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
	// The owner before may have been killed before it sent what ended in this run.
	under := slices.DeleteFunc(spans, func(span *timeline.Span) bool { return !tracker.Follows(span.Run) })
	if len(under) > 0 {
		h.opts.Traces.Ended(sid, under)
	}
	return t
}

// callers is a world that tells the traceparent that an event came with.
type callers interface {
	TraceParentAt(ctx context.Context, seq uint64) (string, error)
}

var errTooLong = errors.New("the session has too many events to fold them again: refold trace exports the run")

// refollow has a tracker follow the session from its first event on, and returns
// the spans that ended.
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
		said, _ := h.evolve(state, e)
		spans = append(spans, tracker.Follow(state, said, state.Progress(), "")...)
	}
	if state.Seq != folded.Seq {
		return nil, errIncomplete
	}
	if w, tells := h.world.(callers); tells {
		tracker.Callers(func(seq uint64) string {
			caller, err := w.TraceParentAt(ctx, seq)
			if err != nil {
				return "" // the run is traced all the same
			}
			return caller
		})
	}
	return spans, nil
}

// trace follows the event that s folded last, and notes the spans that ended with
// it and the header of the effects that it asks.
func (h *Host) trace(s *actor, o *outputs, said, progress []session.Notice) {
	t := s.tracing
	t.seq = s.state.Seq
	o.spans = t.tracker.Follow(s.state, said, progress, o.arrival.TraceParent)
	if o.tally != nil {
		o.tally.trace = h.exemplar(s, o.spans)
	}
	run := s.state.Run
	if run == nil || !t.tracker.Follows(run.Number) {
		return
	}
	for i := range o.pending {
		if effect := o.pending[i].Effect; effect != nil {
			o.pending[i].TraceParent = h.opts.Traces.Traceparent(s.sid, effect.Name)
		}
	}
}

// exemplar returns the traceparent of the run that the event which s folded last
// belongs to; empty if that is not traced.
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
		t.run, t.root = run, h.opts.Traces.Traceparent(s.sid, timeline.RunPlace(run))
	}
	return t.root
}

// tellSpans hands over the spans of events that are stored.
func (l *Lane) tellSpans(outputs []*outputs) {
	for _, o := range outputs {
		if len(o.spans) > 0 && o.failed == nil {
			l.host.opts.Traces.Ended(o.actor.sid, o.spans)
		}
		o.spans = nil
	}
}
