package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/devserver"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/telemetry/metrics"
)

// devTelemetry is what dev exports: metrics and health at --http, and all of it,
// with every run traced, to a collector that OpenTelemetry's variables name.
type devTelemetry struct {
	*settings.Telemetry
	traces   engine.Traces
	observe  executor.Observer
	measured *metrics.Bridge
	end      func() error
}

func (d devCommand) startTelemetry(ctx context.Context, prefix string, log *slog.Logger) (t devTelemetry, err error) {
	env := settings.ReadEnvironment(os.Environ())
	daemon := settings.Daemon{HTTP: d.HTTP, HTTPHosts: d.HTTPHosts}
	if err := daemon.Validate(); err != nil {
		return t, err
	}
	if t.Telemetry, err = daemon.StartTelemetry(ctx, settings.Program{Name: "refold-dev"}, env, log); err != nil {
		return t, err
	}
	tracer, err := (&settings.Traces{TraceRatio: 1}).Start(ctx, env, "refold-dev", prefix, t.Telemetry, log)
	if err != nil {
		t.Close()
		return t, err
	}
	t.end = func() (err error) {
		if tracer != nil {
			err = tracer.Close()
		}
		t.Close()
		return err
	}
	if tracer != nil {
		t.traces = tracer
	}
	t.observe, t.measured = settings.Observe(tracer, t.Telemetry, env)
	return t, nil
}

// tell prints the address of the metrics.
func (t *devTelemetry) tell(out io.Writer) {
	if address := t.Address(); address != "" {
		fmt.Fprintf(out, "Metrics: http://%s/metrics\n", address)
	}
}

// reads sets the sources of a server's metrics and health.
func (t *devTelemetry) reads(server *devserver.Server) {
	if t.measured != nil {
		t.measured.Reads(server.Stats)
	}
	t.Reads(server.NotReady)
}
