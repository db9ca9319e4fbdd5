// Package logs sends log lines to an OpenTelemetry collector, as OTLP over HTTP.
package logs

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"
)

// Time limits of one export, and of the last ones at the end of the process.
const (
	within    = 5 * time.Second
	endWithin = 3 * time.Second
)

// Options configure the export of log lines.
type Options struct {
	Resource *resource.Resource
	Level    slog.Leveler
	Dropped  func(lines int) // called for lines that the collector did not accept
	Logger   *slog.Logger    // for failures of the collector; it must not log to Handler's result
}

// Handler returns a slog.Handler that sends lines to the collector that
// OpenTelemetry's variables name. It never waits for the collector. Beyond 2,048
// pending lines it drops the oldest. end sends the pending lines, for at most a
// few seconds.
func Handler(ctx context.Context, o Options) (h slog.Handler, end func(), err error) {
	exporter, err := otlploghttp.New(ctx, otlploghttp.WithTimeout(within), otlploghttp.WithRetry(otlploghttp.RetryConfig{}))
	if err != nil {
		return nil, nil, fmt.Errorf("set up the export of logs: %w", err)
	}
	batches := log.NewBatchProcessor(&lossy{Exporter: exporter, opts: o}, log.WithExportTimeout(within))
	provider := log.NewLoggerProvider(log.WithProcessor(batches), log.WithResource(o.Resource))
	sends := otelslog.NewHandler("github.com/refold/refold", otelslog.WithLoggerProvider(provider))
	return &lines{Handler: sends, level: o.Level}, func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
		defer cancel()
		_ = provider.Shutdown(last) // lossy counts lost lines
	}, nil
}

// lines is a slog.Handler that sends log lines of a level and above. A line with a
// trace_id and a span_id belongs to that span.
type lines struct {
	slog.Handler
	level slog.Leveler
}

// Enabled reports whether lines of a level are sent.
func (h *lines) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level.Level() }

// Handle sends a line.
func (h *lines) Handle(ctx context.Context, r slog.Record) error {
	of := trace.SpanContextConfig{TraceFlags: trace.FlagsSampled}
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "trace_id":
			of.TraceID, _ = trace.TraceIDFromHex(a.Value.String()) // invalid on error
		case "span_id":
			of.SpanID, _ = trace.SpanIDFromHex(a.Value.String())
		}
		return true
	})
	if of.TraceID.IsValid() {
		ctx = trace.ContextWithSpanContext(ctx, trace.NewSpanContext(of))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *lines) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &lines{h.Handler.WithAttrs(attrs), h.level}
}

// WithGroup implements slog.Handler.
func (h *lines) WithGroup(name string) slog.Handler {
	return &lines{h.Handler.WithGroup(name), h.level}
}

// lossy is an exporter that counts lost lines.
type lossy struct {
	log.Exporter
	opts    Options
	failing atomic.Bool
}

// Export sends lines. It counts the lines of every error, and logs the first in a
// row.
func (l *lossy) Export(ctx context.Context, records []log.Record) error {
	err := l.Exporter.Export(ctx, records)
	switch was := l.failing.Swap(err != nil); {
	case err != nil && !was:
		l.opts.Logger.Warn("logs_not_exported", "error", err.Error(), "do", "see to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names")
	case err == nil && was:
		l.opts.Logger.Info("logs_exported_again")
	}
	if err != nil {
		l.opts.Dropped(len(records))
	}
	return nil
}
