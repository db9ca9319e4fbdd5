package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/cmd/settings/exports"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/streams"
)

// Main runs the daemon until ctx ends, and returns the exit status.
func Main(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	env := settings.ReadEnvironment(environ)
	return settings.Run(ctx, program, stderr,
		func() (flags, bool, error) { return parse(args, env, stdout, stderr) },
		func(f flags) error { return run(ctx, f, env, stderr) })
}

// run runs the daemon until ctx ends.
func run(ctx context.Context, f flags, env settings.Environment, stderr io.Writer) (err error) {
	log, err := f.Logger(stderr, f.TraceIDs(env, f.Prefix))
	if err != nil {
		return err
	}
	record, source := session.BuiltinInstall(), "built-in"
	if f.Install != "" {
		if record, err = os.ReadFile(f.Install); err != nil {
			return fmt.Errorf("--install %s: %w", f.Install, err)
		}
		if _, err := session.ParseInstall(record); err != nil {
			return fmt.Errorf("--install %s: %w", f.Install, err)
		}
		source = f.Install
	}
	telemetry, err := exports.Start(ctx, &f.Daemon, program.Name, env, log)
	if err != nil {
		return err
	}
	defer telemetry.Close()
	if log, err = telemetry.Logger(ctx, &f.Daemon, env, log, f.TraceIDs(env, f.Prefix)); err != nil {
		return err
	}
	options := engine.Options{
		Version: settings.Version(), Memory: int64(f.Memory), NoScrub: !f.SnapshotVerify, Doubt: f.VerifyLoads,
		Meters: engine.Register(telemetry.Registry, 0),
	}
	tracer, err := f.Start(ctx, env, program.Name, f.Prefix, telemetry, log)
	if err != nil {
		return err
	}
	if tracer != nil {
		options.Traces = tracer
		defer func() { err = errors.Join(err, tracer.Close()) }()
	}
	return f.Reopen(ctx, log, telemetry, func(ctx context.Context, up func()) error {
		return host(ctx, f, log, record, source, options, telemetry, up)
	})
}

// host connects, provisions and runs the engine until ctx or the connection ends. It
// calls up when the engine begins.
func host(ctx context.Context, f flags, log *slog.Logger, record []byte, source string, options engine.Options, telemetry *exports.Telemetry, up func()) error {
	b, err := connect(ctx, f, log)
	if err != nil {
		return err
	}
	defer b.Close()
	conf, err := streams.ParseConf(streams.File, b.Names())
	if err != nil {
		return err
	}
	if err := conf.Accept(f.Accept...); err != nil {
		return err
	}
	if err := b.Provision(ctx, conf, f.Replicas); err != nil {
		return err
	}
	for _, c := range f.Consumers {
		class, target := consumerOf(c)
		if _, err := b.EnsureBridge(ctx, conf, class, target); err != nil {
			return err
		}
	}
	stored, err := engine.EnsureInstall(ctx, b, record)
	if err != nil {
		return err
	}
	h := engine.New(b, log, options)
	telemetry.Reads(h.NotReady)
	log.Info("session_actor_starts", "version", settings.Version(), "instance", h.Instance(), "url", b.URL(), "server", b.ServerVersion(),
		"prefix", b.Names().Prefix(), "replicas", f.Replicas, "install", source, "install_published", stored, "closed_exit", f.ClosedExit.String(),
		"memory", f.Memory.String(), "gogc", settings.Collecting(), "snapshot_verify", f.SnapshotVerify, "traces", options.Traces != nil, "trace_ratio", f.TraceRatio, "log_level", f.LogLevel)
	up()
	if err := h.Run(ctx); err != nil {
		return err
	}
	log.Info("session_actor_stopped", "instance", h.Instance())
	return nil
}

func connect(ctx context.Context, f flags, log *slog.Logger) (*bus.Bus, error) {
	wanted, err := natsio.ParseDurability(f.Durability)
	if err != nil {
		return nil, err
	}
	monitors, err := streams.ParseMonitors(f.Monitor)
	if err != nil {
		return nil, err
	}
	return bus.Connect(ctx, natsio.Options{
		URL: f.NATS, Creds: f.Creds, Context: f.Context, Prefix: f.Prefix, InboxPrefix: f.Inbox, Name: "session-actor", Logger: log,
		Durability: wanted, Monitor: monitors, SystemCreds: f.SystemCreds,
	})
}
