package traces

import (
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/timeline"
)

// Render returns the OTLP message of a session's span, the same in every process.
func (f Form) Render(sid string, s *timeline.Span) *tracepb.Span {
	trace, span := f.trace(sid, s.Place, s.Origin), f.span(sid, s.Place)
	m := &tracepb.Span{
		TraceId: trace[:], SpanId: span[:], Name: nameOf(s), Kind: tracepb.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: nanos(s.Begin), EndTimeUnixNano: nanos(s.End), Flags: sampledFlag,
		Attributes: append(make([]*commonpb.KeyValue, 0, 12), text(attrConversation, sid), number(attrSeq, int64(s.Seq))),
	}
	switch {
	case s.Parent != "" && (s.Kind != timeline.KindTurn || f.Unit != UnitTurn):
		parent := f.span(sid, s.Parent)
		m.ParentSpanId = parent[:]
	case s.Of != nil && f.Unit == UnitTree:
		parent := f.span(s.Of.Session, s.Of.Call)
		m.ParentSpanId = parent[:]
	}
	add := func(attrs ...*commonpb.KeyValue) { m.Attributes = append(m.Attributes, attrs...) }
	switch s.Kind {
	case timeline.KindRun:
		add(f.runAttributes(s)...)
		m.Links = f.links(sid, s)
	case timeline.KindTurn:
		add(turnAttributes(s.Turn)...)
		if f.Unit == UnitTurn {
			m.Links = f.turnLinks(sid, s)
		}
		for _, r := range s.Turn.Refused {
			m.Events = append(m.Events, &tracepb.Span_Event{
				TimeUnixNano: nanos(r.At), Name: "call_refused",
				Attributes: []*commonpb.KeyValue{text(attrEffect, r.Call), text(attrToolName, r.Tool), text(attrCode, r.Code)},
			})
		}
	case timeline.KindStep:
		m.Kind = tracepb.Span_SPAN_KIND_CLIENT
		add(text(attrEffect, s.Place), text(attrFrom, s.From))
	case timeline.KindAttempt, timeline.KindRetry:
		add(number(attrAttempt, int64(s.Attempt)))
		if s.Kind == timeline.KindAttempt {
			add(text(attrEffect, timeline.EffectOf(s.Place)), text(attrProvider, s.Provider), text(attrRequestModel, s.Model))
		}
	case timeline.KindGroup:
		add(text(attrPlan, s.Plan), number(attrCalls, int64(s.Calls)))
	case timeline.KindCall:
		add(text(attrEffect, s.Place), text(attrToolName, s.Call.ToolName), text(attrToolID, s.Call.ToolID),
			text(attrStatus, string(s.Call.Status)), truth(attrRetrySafe, s.Call.RetrySafe))
		if s.Call.Kind != "" {
			add(text(attrKind, s.Call.Kind))
		}
	case timeline.KindApproval:
		add(text(attrToolName, s.Call.ToolName), text(attrDecision, s.Decision), truth(attrEdited, s.Call.Edited))
	case timeline.KindPause:
		add(truth(attrBudget, s.Budget))
	}
	if s.Code != "" {
		add(text(attrCode, s.Code))
	}
	if s.Failed {
		add(text(attrErrorType, orOther(s.Code)))
		m.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: s.Code}
	}
	return m
}

const sampledFlag = 1

// orOther returns the error.type of a failure, which may have no code.
func orOther(code string) string {
	if code == "" {
		return "_OTHER"
	}
	return code
}

func nameOf(s *timeline.Span) string {
	switch s.Kind {
	case timeline.KindRun:
		return named("invoke_agent", s.Profile)
	case timeline.KindQueue:
		return "queued"
	case timeline.KindPause:
		return "paused"
	case timeline.KindStep:
		return named("step", s.Hook)
	case timeline.KindCall:
		return named("call", s.Call.ToolName)
	}
	return s.Kind.String()
}

// named returns the name of an operation on an object, which may be unknown.
func named(operation, object string) string {
	if object == "" {
		return operation
	}
	return operation + " " + object
}

func (f Form) runAttributes(s *timeline.Span) []*commonpb.KeyValue {
	o := s.Outcome
	attrs := []*commonpb.KeyValue{
		text(attrOperation, "invoke_agent"), text(attrProvider, s.Provider), text(attrRequestModel, s.Model),
		number(attrRun, int64(s.Run)), text(attrLifecycle, string(o.Lifecycle)), number(attrTurns, int64(o.Turns)), text(attrInstall, s.Install),
	}
	if s.Profile != "" {
		attrs = append(attrs, text(attrAgent, s.Profile))
	}
	if o.Cost != 0 {
		attrs = append(attrs, number(attrCost, o.Cost))
	}
	return append(attrs, f.usage(o.Usage)...)
}

// usage returns the attributes of tokens. Zero counts of the rare kinds are left
// out.
func (f Form) usage(u session.UsageTotal) []*commonpb.KeyValue {
	written := attrCacheCreation
	if f.Latest {
		written = attrCacheWrite
	}
	attrs := []*commonpb.KeyValue{number(attrInputTokens, u.InputTokens), number(attrOutputTokens, u.OutputTokens)}
	for _, a := range []struct {
		name string
		n    int64
	}{{attrCacheRead, u.CachedTokens}, {written, u.CacheWriteTokens}, {attrReasoning, u.ReasoningTokens}} {
		if a.n > 0 {
			attrs = append(attrs, number(a.name, a.n))
		}
	}
	return attrs
}

func turnAttributes(t *timeline.Turn) []*commonpb.KeyValue {
	attrs := []*commonpb.KeyValue{text(attrToolset, t.Toolset), text(attrBase, t.Base), number(attrTools, int64(t.Tools))}
	if t.Rule != "" {
		attrs = append(attrs, text(attrRule, t.Rule))
	}
	return attrs
}

// links returns the links of a run's root: the root of the previous run, the call that it
// carries out, unless that is its parent, and the caller's span. The caller is a link and not the parent: a run outlives its
// caller, and an unsampled caller must not suppress the run's spans.
func (f Form) links(sid string, s *timeline.Span) (all []*tracepb.Span_Link) {
	if s.Run > 1 {
		all = append(all, f.link(sid, timeline.RunPlace(s.Run-1), "previous"))
	}
	if s.Of != nil && f.Unit != UnitTree {
		all = append(all, f.link(s.Of.Session, s.Of.Call, "parent"))
	}
	if caller, ok := ParseTraceparent(s.Caller); ok {
		all = append(all, &tracepb.Span_Link{
			TraceId: caller.Trace[:], SpanId: caller.Span[:], Flags: uint32(caller.Flags),
			Attributes: []*commonpb.KeyValue{text(attrLink, "caller")},
		})
	}
	return all
}

// turnLinks returns the links of a turn that is a trace: its run, and the
// previous turn.
func (f Form) turnLinks(sid string, s *timeline.Span) []*tracepb.Span_Link {
	all := []*tracepb.Span_Link{f.link(sid, s.Parent, "run")}
	if before, ok := timeline.TurnBefore(s.Place); ok {
		all = append(all, f.link(sid, before, "previous"))
	}
	return all
}

func (f Form) link(sid, place, kind string) *tracepb.Span_Link {
	trace, span := f.trace(sid, place, nil), f.span(sid, place)
	return &tracepb.Span_Link{TraceId: trace[:], SpanId: span[:], Attributes: []*commonpb.KeyValue{text(attrLink, kind)}}
}

func nanos(ms int64) uint64 { return uint64(ms) * uint64(time.Millisecond) }

func text(key, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}}
}

func number(key string, value int64) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: value}}}
}

func truth(key string, value bool) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: value}}}
}

func startPlace(effect, instance, start string) string {
	return effect + "/" + instance + "/" + start
}
