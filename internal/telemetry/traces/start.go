package traces

import (
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/timeline"
	"github.com/refold/refold/bridge/executor"
)

// renderStart returns the OTLP message of one start: its parent is the attempt or
// the call that it executes.
func (t *Tracer) renderStart(s *executor.Start, e *executor.End, id [8]byte) *tracepb.Span {
	trace, parent := t.traceOf(s), t.opts.span(s.Session, timeline.PlaceOf(s.Effect))
	m := &tracepb.Span{
		TraceId: trace[:], SpanId: id[:], ParentSpanId: parent[:], Flags: sampledFlag,
		StartTimeUnixNano: uint64(s.At.UnixNano()), EndTimeUnixNano: uint64(e.At.UnixNano()),
		Attributes: []*commonpb.KeyValue{
			text(attrConversation, s.Session), text(attrEffect, s.Effect), text(attrStart, s.ID),
		},
	}
	if s.Class == "llm" {
		t.chat(m, s, e)
	} else {
		t.tool(m, s, e)
	}
	if e.Code != "" {
		m.Attributes = append(m.Attributes, text(attrErrorType, e.Code))
	}
	if e.Status != string(session.CallSucceeded) && e.Status != string(session.CallCancelled) && e.Status != "" {
		m.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: e.Code}
	}
	return m
}

func (t *Tracer) chat(m *tracepb.Span, s *executor.Start, e *executor.End) {
	m.Name, m.Kind = named("chat", s.Model), tracepb.Span_SPAN_KIND_CLIENT
	m.Attributes = append(m.Attributes, text(attrOperation, "chat"), text(attrProvider, s.Target), text(attrRequestModel, s.Model))
	if e.Model != "" {
		m.Attributes = append(m.Attributes, text(attrResponseModel, e.Model))
	}
	if e.Finish != "" {
		m.Attributes = append(m.Attributes, &commonpb.KeyValue{Key: attrFinishReasons, Value: &commonpb.AnyValue{
			Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{Values: []*commonpb.AnyValue{text("", e.Finish).Value}}},
		}})
	}
	if e.Status == string(session.CallSucceeded) {
		m.Attributes = append(m.Attributes, t.opts.usage(session.UsageTotal{
			InputTokens: e.Usage.InputTokens, OutputTokens: e.Usage.OutputTokens, CachedTokens: e.Usage.CachedTokens,
			CacheWriteTokens: e.Usage.CacheWriteTokens, ReasoningTokens: e.Usage.ReasoningTokens,
		})...)
	}
	if !e.FirstText.IsZero() {
		m.Attributes = append(m.Attributes, seconds(attrFirstChunk, e.FirstText.Sub(s.At)))
	}
	if c := t.opts.Content; c != nil {
		m.Attributes = append(m.Attributes, c.chat(s, e)...)
	}
}

func (t *Tracer) tool(m *tracepb.Span, s *executor.Start, e *executor.End) {
	m.Name, m.Kind = named("execute_tool", s.ToolName), tracepb.Span_SPAN_KIND_INTERNAL
	m.Attributes = append(m.Attributes, text(attrOperation, "execute_tool"), text(attrToolName, s.ToolName), text(attrToolID, s.ToolID),
		text(attrToolType, "function"), text(attrKey, s.Session+"."+s.Effect))
	if s.CallID != "" {
		m.Attributes = append(m.Attributes, text(attrToolCall, s.CallID))
	}
	if c := t.opts.Content; c != nil {
		m.Attributes = append(m.Attributes, c.tool(s, e)...)
	}
}

func seconds(key string, d time.Duration) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: d.Seconds()}}}
}
