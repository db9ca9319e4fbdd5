package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"

	"github.com/refold/refold/internal/meter"
	"github.com/refold/refold/internal/telemetry/metrics"
	"github.com/refold/refold/internal/telemetry/traces"
	"github.com/refold/refold/proof/bench"
)

// benchTraceRatio is the part of the runs that is traced: the daemons' default.
const benchTraceRatio = 0.1

// startTelemetry starts the daemons' metrics and traces, and sends spans to a
// collector on loopback that drops them. The metrics are not read.
func startTelemetry(ctx context.Context) (*bench.Watch, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	collector := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusOK)
	})}
	go collector.Serve(l) //nolint:errcheck // it ends with Stop
	tracer, err := traces.New(ctx, traces.Options{
		Ratio: benchTraceRatio, Service: "refold-bench", To: traces.HTTP("http://" + l.Addr().String() + "/v1/traces"), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, errors.Join(err, collector.Close())
	}
	registry := meter.New()
	return &bench.Watch{
		Metrics: registry, Traces: tracer,
		Observe: metrics.Observers{tracer.Observer(), metrics.NewBridge(registry, "")},
		Stop: func() {
			_ = tracer.Close() // unsent spans don't matter
			_ = collector.Close()
		},
	}, nil
}
