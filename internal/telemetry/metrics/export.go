package metrics

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/refold/refold/internal/meter"
)

// Resource describes the program that produces the metrics.
type Resource struct {
	Service  string // service.name: refold-session-actor, refold-bridge
	Version  string // service.version
	Instance string // service.instance.id
}

// Values of refold.telemetry.dropped's label signal.
const (
	SignalMetrics = "metrics"
	SignalTraces  = "traces"
	SignalLogs    = "logs"
)

// Register registers refold.build and refold.telemetry.dropped. It returns the
// latter, for Push.Start.
func (r Resource) Register(in *meter.Registry) *meter.Counter {
	in.Read(meter.KindGauge, "refold.build", "{build}", "1, with the versions of the program and of Go.", []string{"version", "go"}, func(yield func(float64, ...string)) {
		yield(1, r.Version, runtime.Version())
	})
	return in.Counter("refold.telemetry.dropped", "{item}", "Exports of metrics, spans, and log lines, that the collector did not take.", meter.Closed("signal", SignalMetrics, SignalTraces, SignalLogs))
}

// OTel returns the resource for OpenTelemetry's SDK.
func (r Resource) OTel() *resource.Resource {
	return resource.NewSchemaless(
		attribute.String("service.name", r.Service), attribute.String("service.version", r.Version), attribute.String("service.instance.id", r.Instance),
	)
}

// Handler returns an http.Handler for Prometheus, which answers in OpenMetrics if
// the scraper requests it. closeHandler ends it.
func Handler(r *meter.Registry, of Resource) (h http.Handler, closeHandler func(), err error) {
	registry := prometheus.NewRegistry()
	reader, err := otelprom.New(otelprom.WithRegisterer(registry), otelprom.WithProducer(NewProducer(r)), otelprom.WithoutScopeInfo())
	if err != nil {
		return nil, nil, fmt.Errorf("set up metrics for Prometheus: %w", err)
	}
	provider := metric.NewMeterProvider(metric.WithReader(reader), metric.WithResource(of.OTel()))
	h = promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
	return h, func() { _ = provider.Shutdown(context.Background()) }, nil
}

// Push configures the push of metrics to a collector. Headers and the like come
// from OpenTelemetry's variables, such as OTEL_EXPORTER_OTLP_HEADERS.
type Push struct {
	Endpoint string        // of metrics, with its path
	Every    time.Duration // 0: a minute
}

// Time limits of one export, and of the last one at the end of the process.
const (
	pushWithin = 10 * time.Second
	lastWithin = 3 * time.Second
)

// Start pushes the metrics of r until stop is called, which pushes once more. A
// push that the collector does not accept is only counted, in
// refold.telemetry.dropped.
func (p Push) Start(ctx context.Context, r *meter.Registry, of Resource, dropped *meter.Counter, log *slog.Logger) (stop func(), err error) {
	exporter, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(p.Endpoint), otlpmetrichttp.WithTimeout(pushWithin),
		otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{})) // metrics are cumulative, so the next push has a lost one's
	if err != nil {
		return nil, fmt.Errorf("set up the push of metrics to %s: %w", p.Endpoint, err)
	}
	every := p.Every
	if every == 0 {
		every = time.Minute
	}
	reader := metric.NewPeriodicReader(&lossy{Exporter: exporter, log: log, dropped: dropped},
		metric.WithInterval(every), metric.WithTimeout(pushWithin), metric.WithProducer(NewProducer(r)))
	provider := metric.NewMeterProvider(metric.WithReader(reader), metric.WithResource(of.OTel()))
	return func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWithin)
		defer cancel()
		if err := provider.Shutdown(last); err != nil {
			log.Debug("metrics_not_shut_down", "error", err.Error())
		}
	}, nil
}

// lossy is an exporter that counts failed exports.
type lossy struct {
	metric.Exporter
	log     *slog.Logger
	dropped *meter.Counter
	failing atomic.Bool
}

// Export sends metrics. It counts every error, and logs the first in a row.
func (l *lossy) Export(ctx context.Context, all *metricdata.ResourceMetrics) error {
	err := l.Exporter.Export(ctx, all)
	switch was := l.failing.Swap(err != nil); {
	case err != nil && !was:
		l.log.Warn("metrics_not_pushed", "error", err.Error(), "do", "see to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names")
	case err == nil && was:
		l.log.Info("metrics_pushed_again")
	}
	if err != nil {
		l.dropped.Add(1, SignalMetrics)
	}
	return nil
}
