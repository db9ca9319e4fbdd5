// Package exports starts what a daemon exports about itself, besides its logs on
// standard error: metrics, traces, and logs for a collector. It links the
// libraries of OpenTelemetry and Prometheus.
package exports

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/meter"
	"github.com/refold/refold/internal/telemetry/listen"
	"github.com/refold/refold/internal/telemetry/logs"
	"github.com/refold/refold/internal/telemetry/metrics"
)

// Telemetry is what a daemon exports about itself, besides its logs.
type Telemetry struct {
	// Registry holds the daemon's metrics; nil: nothing is measured.
	Registry *meter.Registry
	dropped  *meter.Counter // nil: likewise
	of       metrics.Resource
	server   *listen.Server // nil: no --http
	closes   []func()
}

// Start serves --http, if it is given, and pushes metrics if OpenTelemetry's
// variables name a collector. When ctx ends, the daemon is not ready any more.
func Start(ctx context.Context, d *settings.Daemon, service string, env settings.Environment, log *slog.Logger) (*Telemetry, error) {
	t := &Telemetry{of: metrics.Resource{Service: service, Version: settings.Version(), Instance: instance()}}
	push, pushes, err := pushOf(env)
	if err != nil {
		return nil, err
	}
	if d.HTTP == "" && !pushes {
		return t, nil
	}
	t.Registry = meter.New()
	t.dropped = t.of.Register(t.Registry)
	if pushes {
		stop, err := push.Start(ctx, t.Registry, t.of, t.dropped, log)
		if err != nil {
			return nil, err
		}
		t.closes = append(t.closes, stop)
	}
	if d.HTTP == "" {
		return t, nil
	}
	handler, end, err := metrics.Handler(t.Registry, t.of)
	if err == nil {
		t.closes = append(t.closes, end)
		t.server, err = listen.New(listen.Options{Address: d.HTTP, Pprof: d.Pprof, Metrics: handler, Hosts: d.HTTPHosts})
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	log.Info("http_listens", "address", t.server.Address(), "pprof", d.Pprof)
	draining := context.AfterFunc(ctx, t.server.Drain)
	t.closes = append(t.closes, func() {
		draining()
		if err := t.server.Close(); err != nil {
			log.Debug("http_not_closed", "error", err.Error())
		}
	})
	return t, nil
}

// Logger returns a logger that writes to log, and also to a collector if
// OTEL_LOGS_EXPORTER is otlp. Lines to the collector get the trace ids that ids
// returns, as in [settings.Daemon.Logger].
func (t *Telemetry) Logger(ctx context.Context, d *settings.Daemon, env settings.Environment, log *slog.Logger, ids settings.TraceIDs) (*slog.Logger, error) {
	if env["OTEL_LOGS_EXPORTER"] != "otlp" {
		return log, nil
	}
	level, err := d.Level()
	if err != nil {
		return nil, err
	}
	handler, end, err := logs.Handler(ctx, logs.Options{
		Resource: t.of.OTel(), Level: level, Logger: log, Dropped: func(lines int) { t.dropped.Add(int64(lines), metrics.SignalLogs) },
	})
	if err != nil {
		return nil, err
	}
	t.closes = append(t.closes, end)
	return slog.New(slog.NewMultiHandler(log.Handler(), settings.WithIDs(handler, ids))), nil
}

// Address returns the address of --http, or "".
func (t *Telemetry) Address() string {
	if t.server == nil {
		return ""
	}
	return t.server.Address()
}

// SpansDropped adds n to the count of spans that were not exported.
func (t *Telemetry) SpansDropped(n int) {
	t.dropped.Add(int64(n), metrics.SignalTraces)
}

// Reads sets the function that returns why the daemon is not ready; none: it is.
func (t *Telemetry) Reads(notReady func(ctx context.Context) []string) {
	if t.server != nil {
		t.server.Reads(notReady)
	}
}

// Broken makes the daemon neither healthy nor ready, for this reason; an empty one: it
// is healthy again.
func (t *Telemetry) Broken(why string) {
	if t.server != nil {
		t.server.Broken(why)
	}
}

// Close ends all that Start started, in reverse order.
func (t *Telemetry) Close() {
	for i := len(t.closes) - 1; i >= 0; i-- {
		t.closes[i]()
	}
}

// instance returns the name of this process among those of its service.
func instance() string {
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	return name + "/" + strconv.Itoa(os.Getpid())
}

// pushOf reads where to push metrics, from OpenTelemetry's own variables. yes is
// false if they name no collector.
func pushOf(env settings.Environment) (push metrics.Push, yes bool, err error) {
	const all, own, every = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_METRIC_EXPORT_INTERVAL"
	push.Endpoint = env[own]
	if push.Endpoint == "" && env[all] != "" {
		push.Endpoint = strings.TrimSuffix(env[all], "/") + "/v1/metrics"
	}
	if push.Endpoint == "" || env["OTEL_METRICS_EXPORTER"] == "none" || strings.EqualFold(env["OTEL_SDK_DISABLED"], "true") {
		return metrics.Push{}, false, nil
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if protocol := env[name]; protocol != "" {
			if protocol != "http/protobuf" {
				return push, false, fmt.Errorf("%s=%s: only http/protobuf is supported; most collectors serve it on port 4318", name, protocol)
			}
			break
		}
	}
	if text := env[every]; text != "" {
		ms, err := strconv.Atoi(text)
		if err != nil || ms <= 0 {
			return push, false, fmt.Errorf("%s=%s: want milliseconds, such as 60000", every, text)
		}
		push.Every = time.Duration(ms) * time.Millisecond
	}
	return push, true, nil
}
