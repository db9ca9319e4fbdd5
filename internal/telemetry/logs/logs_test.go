package logs

// A collector in the test reads lines with OTLP's own types, or hangs.

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/resource"
	collector "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/protobuf/proto"
)

func TestCollectorTakesLinesWithTheirSpans(t *testing.T) {
	taken := make(chan *collector.ExportLogsServiceRequest, 4)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
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
		var request collector.ExportLogsServiceRequest
		if err != nil || proto.Unmarshal(data, &request) != nil {
			t.Errorf("%s: no OTLP: %v", r.URL.Path, err)
		}
		taken <- &request
	}))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	h, end, err := Handler(t.Context(), Options{Resource: resource.Empty(), Level: slog.LevelInfo})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(h).With("session", "s1")
	log.Debug("not_sent")
	log.Warn("effect_failed", "effect", "r1t1", "trace_id", "245d83fd9bf661e6fd6ddcca6079fb0d", "span_id", "72e3310e010a19cf")
	end()
	request := <-taken
	lines := request.ResourceLogs[0].ScopeLogs[0].LogRecords
	if len(lines) != 1 {
		t.Fatalf("got %d lines, want 1: %v", len(lines), lines)
	}
	got := fmt.Sprintf("%s %s %x %x %d", lines[0].Body.GetStringValue(), lines[0].SeverityText, lines[0].TraceId, lines[0].SpanId, len(lines[0].Attributes))
	if want := "effect_failed WARN 245d83fd9bf661e6fd6ddcca6079fb0d 72e3310e010a19cf 4"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The end of the process waits for a hanging collector for a bounded time, and
// the lost lines are counted.
func TestHangingCollectorDelaysNoLine(t *testing.T) {
	held := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-held }))
	defer server.Close()
	defer close(held)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dropped := make(chan int, 1000)
	h, end, err := Handler(ctx, Options{Resource: resource.Empty(), Level: slog.LevelInfo, Logger: slog.New(slog.DiscardHandler), Dropped: func(n int) { dropped <- n }})
	if err != nil {
		t.Fatal(err)
	}
	for range 10_000 {
		slog.New(h).Info("effect_settled")
	}
	end()
	if ctx.Err() != nil {
		t.Error("the lines, or the end, waited for the collector without a bound")
	}
	select {
	case <-dropped:
	case <-ctx.Done():
		t.Error("no line was counted as dropped")
	}
}
