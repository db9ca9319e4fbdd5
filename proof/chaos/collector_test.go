package chaos

// The collector of a trial, over OTLP and HTTP like a daemon's. Each test sends
// spans, or bytes, and checks the reported differences from the log.

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/refold/refold/actors/session/timeline"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/telemetry/traces"
)

// logged are the spans of a run with one turn.
func logged() []*timeline.Span {
	return []*timeline.Span{
		{Kind: timeline.KindQueue, Place: "r1q", Parent: "r1", Run: 1, Seq: 3},
		{Kind: timeline.KindAttempt, Place: "r1t1a1", Parent: "r1", Run: 1, Seq: 5, Provider: "scripted"},
	}
}

// export sends spans to the collector, and fails the test if it does not take them.
func export(t *testing.T, c *collector, spans ...*tracepb.Span) {
	t.Helper()
	group := traces.Group(traces.Resource("test", "", ""), spans)
	must(t, traces.HTTP(c.url).UploadTraces(t.Context(), []*tracepb.ResourceSpans{group}))
}

func render(s *timeline.Span) *tracepb.Span { return traceForm.Render("s1", s) }

func TestCollectorFindsDifferences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		spans func() []*tracepb.Span
		want  string // in the one difference; empty: there is none
	}{
		{"all of them, one twice", func() []*tracepb.Span {
			all := logged()
			return []*tracepb.Span{render(all[0]), render(all[1]), render(all[0])}
		}, ""},
		{"one is missing", func() []*tracepb.Span { return []*tracepb.Span{render(logged()[0])} }, "the span r1t1a1 was not exported"},
		{"one has another content than the log has", func() []*tracepb.Span {
			all := logged()
			all[1].Provider = "another"
			return []*tracepb.Span{render(all[0]), render(all[1])}
		}, "the span r1t1a1 was exported as "},
		{"one has two contents", func() []*tracepb.Span {
			all, again := logged(), render(logged()[1])
			again.EndTimeUnixNano++
			return []*tracepb.Span{render(all[0]), render(all[1]), again}
		}, "was exported with two contents"},
		{"the log has no such span, and no parent", func() []*tracepb.Span {
			all := logged()
			return []*tracepb.Span{render(all[0]), render(all[1]), render(&timeline.Span{Kind: timeline.KindAttempt, Place: "r2t1a1", Parent: "r2", Run: 2})}
		}, "neither it nor its parent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			collector, err := newCollector()
			must(t, err)
			defer collector.close()
			export(t, collector, c.spans()...)
			got := collector.differences(map[string][]*timeline.Span{"s1": logged()})
			if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A start of a bridge is not in the log. It is accepted if its parent is.
func TestCollectorTakesStartsOfBridges(t *testing.T) {
	t.Parallel()
	collector, err := newCollector()
	must(t, err)
	defer collector.close()
	tracer, err := traces.New(t.Context(), traces.Options{Form: traceForm, Ratio: 1, To: traces.HTTP(collector.url), Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	start := executor.Start{Class: "llm", Session: "s1", Effect: "r1t1", ID: "01", At: time.UnixMilli(1000)}
	tracer.Finished(start, executor.End{At: time.UnixMilli(2000)})
	must(t, tracer.Close())
	export(t, collector, render(logged()[0]), render(logged()[1]))
	if got := collector.differences(map[string][]*timeline.Span{"s1": logged()}); len(got) > 0 || len(collector.spans) != 3 {
		t.Errorf("%d spans arrived, want 3; differences: %q", len(collector.spans), got)
	}
}

func TestCollectorReportsUndecodableData(t *testing.T) {
	t.Parallel()
	collector, err := newCollector()
	must(t, err)
	defer collector.close()
	response, err := http.Post(collector.url, "application/x-protobuf", strings.NewReader("no protobuf"))
	must(t, err)
	response.Body.Close()
	if got := collector.differences(nil); response.StatusCode != http.StatusBadRequest || len(got) != 1 || !strings.Contains(got[0], "could not be decoded") {
		t.Errorf("status %d, differences %q", response.StatusCode, got)
	}
}

// A session-actor exports to the collector in its environment.
func TestCollectorGetsWhatASessionActorExports(t *testing.T) {
	collector, err := newCollector()
	must(t, err)
	defer collector.close()
	name, url, _ := strings.Cut(collector.environ(), "=")
	t.Setenv(name, url)
	newExporting(slog.New(slog.DiscardHandler)).Ended("s1", logged())
	if got := collector.differences(map[string][]*timeline.Span{"s1": logged()}); len(got) > 0 {
		t.Errorf("differences: %q", got)
	}
	for _, span := range collector.spans {
		if !hasAttribute(span.Attributes, "gen_ai.conversation.id", "s1") {
			t.Errorf("no conversation: %v", span)
		}
	}
}

func hasAttribute(attributes []*commonpb.KeyValue, key, value string) bool {
	for _, a := range attributes {
		if a.Key == key && a.Value.GetStringValue() == value {
			return true
		}
	}
	return false
}
