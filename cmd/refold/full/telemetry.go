package full

import (
	"context"
	"log/slog"
	"os"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/cmd/refold/cli"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/cmd/settings/exports"
)

// startTelemetry serves metrics and health at --http, and exports all of it, with
// every run traced, to a collector that OpenTelemetry's variables name.
func startTelemetry(ctx context.Context, d *settings.Daemon, service, prefix string, log *slog.Logger) (*cli.Telemetry, error) {
	env := settings.ReadEnvironment(os.Environ())
	exported, err := exports.Start(ctx, d, service, env, log)
	if err != nil {
		return nil, err
	}
	tracer, err := (&exports.Traces{TraceRatio: 1}).Start(ctx, env, service, prefix, exported, log)
	if err != nil {
		exported.Close()
		return nil, err
	}
	observe, measured := exports.Observe(tracer, exported, env)
	t := &cli.Telemetry{
		Registry: exported.Registry, Observe: observe, Address: exported.Address(),
		Reads: func(stats func() bridge.Stats, notReady func(context.Context) []string) {
			if measured != nil && stats != nil {
				measured.Reads(stats)
			}
			exported.Reads(notReady)
		},
		Close: func() (err error) {
			if tracer != nil {
				err = tracer.Close()
			}
			exported.Close()
			return err
		},
	}
	if tracer != nil {
		t.Traces = tracer
	}
	return t, nil
}
