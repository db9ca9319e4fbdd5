package metrics

// The metrics that leave the process: the names of the GenAI conventions, a
// collector's data, and Prometheus's.

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/meter"
)

var program = Resource{Service: "bridge", Version: "v1", Instance: "host/1"}

// ended reports a generation to b.
func ended(b *Bridge, model, code string) {
	at := time.UnixMilli(1000)
	b.Ended(executor.Start{Class: "llm", Target: "openai", Session: "s1", Effect: "r1t1", Model: model, At: at},
		executor.End{At: at.Add(3 * time.Second), Status: "succeeded", Code: code, FirstText: at.Add(time.Second), Usage: executor.Usage{InputTokens: 10, OutputTokens: 5, CachedTokens: 4, CacheWriteTokens: 3, ReasoningTokens: 2}})
}

// Both sets have their labels.
func TestOptInSelectsTheGenAINames(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	for _, optIn := range []string{"", "http,gen_ai_latest_experimental"} {
		r := meter.New()
		ended(NewBridge(r, optIn), "m", "")
		fmt.Fprintf(&got, "opt in %q\n", optIn)
		for _, m := range r.Collect() {
			if !strings.HasPrefix(m.Desc.Name, "gen_ai.") {
				continue
			}
			for _, p := range m.Points {
				fmt.Fprintf(&got, "  %s %s %s", m.Desc.Kind, m.Desc.Name, m.Desc.Unit)
				for i, name := range m.Desc.Labels {
					fmt.Fprintf(&got, " %s=%s", name, p.Labels[i])
				}
				got.WriteByte('\n')
			}
		}
	}
	golden := filepath.Join("testdata", "genai.txt")
	if os.Getenv("REWRITE") != "" {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// taker is a collector.
type taker struct {
	*httptest.Server
	refuses atomic.Bool
	taken   chan *collector.ExportMetricsServiceRequest
}

func newTaker(t *testing.T) *taker {
	t.Helper()
	c := &taker{taken: make(chan *collector.ExportMetricsServiceRequest, 16)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.refuses.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			unpacked, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = unpacked
		}
		data, err := io.ReadAll(body)
		if err != nil {
			t.Error(err)
		}
		var request collector.ExportMetricsServiceRequest
		if err := proto.Unmarshal(data, &request); err != nil {
			t.Errorf("%s: what was sent is no OTLP: %v", r.URL.Path, err)
		}
		select {
		case c.taken <- &request:
		default: // enough was seen
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// push pushes the metrics of r often.
func push(t *testing.T, c *taker, r *meter.Registry) (dropped *meter.Counter, stop func()) {
	t.Helper()
	dropped = program.Register(r)
	stop, err := Push{Endpoint: c.URL + "/v1/metrics", Every: 20 * time.Millisecond}.Start(t.Context(), r, program, dropped, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return dropped, stop
}

func TestCollectorTakesOTLP(t *testing.T) {
	t.Parallel()
	c, r := newTaker(t), meter.New()
	ended(NewBridge(r, ""), "gpt-4o", "rate_limited")
	_, stop := push(t, c, r)
	defer stop()
	request := <-c.taken
	got := map[string]bool{}
	for _, m := range request.ResourceMetrics[0].ScopeMetrics[0].Metrics {
		got[m.Name] = true
		if m.Name != operationDuration {
			continue
		}
		p := m.GetHistogram().DataPoints[0]
		if p.Count != 1 || p.GetSum() != 3 || !slices.Equal(p.ExplicitBounds, durationBounds) || len(p.BucketCounts) != len(durationBounds)+1 {
			t.Errorf("%s: got %v", m.Name, p)
		}
		labels := map[string]string{}
		for _, a := range p.Attributes {
			labels[a.Key] = a.Value.GetStringValue()
		}
		want := map[string]string{"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o", "error.type": "rate_limited"}
		if diff := cmp.Diff(want, labels); diff != "" {
			t.Errorf("%s (-want +got):\n%s", m.Name, diff)
		}
	}
	for _, want := range []string{operationDuration, tokenUsage, firstChunk, "refold.bridge.execute.duration", "refold.build"} {
		if !got[want] {
			t.Errorf("the collector did not get %s", want)
		}
	}
	if len(request.ResourceMetrics[0].Resource.Attributes) != 3 {
		t.Errorf("resource: got %v", request.ResourceMetrics[0].Resource)
	}
}

// When the collector accepts metrics again, it gets all counts of the meantime.
func TestCollectorThatRefusesIsCounted(t *testing.T) {
	t.Parallel()
	c, r := newTaker(t), meter.New()
	c.refuses.Store(true)
	measured := NewBridge(r, "")
	dropped, stop := push(t, c, r)
	defer stop()
	until(t, "two exports are dropped", func() bool { return dropped.Value(SignalMetrics) >= 2 })
	ended(measured, "m", "")
	c.refuses.Store(false)
	// The exporter may send a refused export again before it sends a new one.
	until(t, "what was counted while the collector refused arrives", func() bool {
		request := <-c.taken
		return slices.ContainsFunc(request.ResourceMetrics[0].ScopeMetrics[0].Metrics, func(m *metricspb.Metric) bool { return m.Name == operationDuration })
	})
	c.CloseClientConnections()
	c.Close()
	was := dropped.Value(SignalMetrics)
	until(t, "an export to nobody is dropped", func() bool { return dropped.Value(SignalMetrics) > was })
}

// A hanging collector does not delay counting, and delays the end of the process
// for a bounded time only.
func TestHangingCollectorDelaysNothing(t *testing.T) {
	t.Parallel()
	held, asked := make(chan struct{}), make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-held
	}))
	defer server.Close()
	defer close(held)
	r := meter.New()
	measured := NewBridge(r, "")
	dropped, stop := push(t, &taker{Server: server}, r)
	<-asked
	for range 10_000 {
		ended(measured, "m", "")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() { stop(); cancel() }()
	<-ctx.Done()
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Error("the last push waited for the collector without a bound")
	}
	if dropped.Value(SignalMetrics) == 0 {
		t.Error("no export was counted as dropped")
	}
}

// Histograms have the trace of a traced run, for OpenMetrics and collectors.
func TestExemplarsNameTraces(t *testing.T) {
	t.Parallel()
	r := meter.New()
	h := r.Histogram("refold.run.duration", "s", "x", []float64{1, 10})
	h.Record(3)
	h.RecordTraced(2, "00-245d83fd9bf661e6fd6ddcca6079fb0d-72e3310e010a19cf-01")
	h.Record(4)
	handler, end, err := Handler(r, program)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
	request.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	text := answer.Body.String()
	for _, want := range []string{"refold_run_duration_seconds_bucket{le=\"10.0\"} 3 # {", `trace_id="245d83fd9bf661e6fd6ddcca6079fb0d"`, `span_id="72e3310e010a19cf"`, "} 2.0 "} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	c := newTaker(t)
	_, stop := push(t, c, r)
	defer stop()
	for _, m := range (<-c.taken).ResourceMetrics[0].ScopeMetrics[0].Metrics {
		if m.Name != "refold.run.duration" {
			continue
		}
		if e := m.GetHistogram().DataPoints[0].Exemplars; len(e) != 1 || fmt.Sprintf("%x %v", e[0].TraceId, e[0].GetAsDouble()) != "245d83fd9bf661e6fd6ddcca6079fb0d 2" {
			t.Errorf("the collector got %v", e)
		}
	}
}

// until waits for a condition.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick, over := time.NewTicker(5*time.Millisecond), time.After(30*time.Second)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-over:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// Prometheus reads the names of Desc.Prometheus, which dashboards and docs use.
func TestPrometheusReadsTheNamesOfTheDocs(t *testing.T) {
	t.Parallel()
	r := meter.New()
	program.Register(r)
	engine.Register(r, 8)
	measured := NewBridge(r, "")
	measured.Reads(func() bridge.Stats {
		return bridge.Stats{Targets: map[string]bridge.TargetStats{"llm/openai": {Slots: 16}}}
	})
	ended(measured, "m", "")
	handler, end, err := Handler(r, program)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	for _, accept := range []string{"text/plain", "application/openmetrics-text;version=1.0.0"} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
		request.Header.Set("Accept", accept)
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		text := answer.Body.String()
		if answer.Code != http.StatusOK || !strings.HasPrefix(answer.Header().Get("Content-Type"), accept[:10]) {
			t.Fatalf("%s: status %d, %s", accept, answer.Code, answer.Header())
		}
		for _, m := range r.Collect() {
			name := m.Desc.Prometheus()
			if m.Desc.Kind == meter.KindHistogram {
				name += "_bucket"
			}
			if !strings.Contains(text, "\n"+name+"{") && !strings.Contains(text, "\n"+name+" ") {
				t.Errorf("%s: %s is not among what is read", accept, name)
			}
		}
	}
}

// Clients choose the names of models.
func TestSeriesOfABridgeAreBounded(t *testing.T) {
	t.Parallel()
	r := meter.New()
	program.Register(r)
	b := NewBridge(r, "")
	for i := range 100_000 {
		ended(b, fmt.Sprintf("m%d", i%1000), []string{"", "rate_limited", "network"}[i%3])
	}
	series := 0
	for _, m := range r.Collect() {
		for _, p := range m.Points {
			series++
			if p.Dist != nil {
				series += len(p.Dist.Buckets) + 1
			}
		}
	}
	t.Logf("%d series", series)
	if series > 6000 {
		t.Errorf("got %d series, want 6000 at most", series)
	}
}
