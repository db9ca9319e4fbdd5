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
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/sessionactor"
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
	o := sessionactor.Options{
		Replicas: f.Replicas, Accept: f.Accept, Install: record, ClosedExit: f.ClosedExit, Broken: telemetry.Broken,
		Engine: engine.Options{
			Version: settings.Version(), Memory: int64(f.Memory), NoScrub: !f.SnapshotVerify, Doubt: f.VerifyLoads,
			Meters: engine.Register(telemetry.Registry, 0),
		},
		Settings: []any{
			"install", source, "memory", f.Memory.String(), "gogc", settings.Collecting(), "snapshot_verify", f.SnapshotVerify,
			"trace_ratio", f.TraceRatio, "log_level", f.LogLevel,
		},
	}
	for _, c := range f.Consumers {
		class, target := consumerOf(c)
		o.Consumers = append(o.Consumers, sessionactor.Consumer{Class: class, Target: target})
	}
	if o.Connect, err = f.connect(log); err != nil {
		return err
	}
	tracer, err := f.Start(ctx, env, program.Name, f.Prefix, telemetry, log)
	if err != nil {
		return err
	}
	if tracer != nil {
		o.Engine.Traces = tracer
		defer func() { err = errors.Join(err, tracer.Close()) }()
	}
	actor := sessionactor.New(o)
	telemetry.Reads(actor.NotReady)
	return actor.Run(ctx)
}

// connect returns how to connect.
func (f *flags) connect(log *slog.Logger) (o natsio.Options, err error) {
	o = natsio.Options{
		URL: f.NATS, Creds: f.Creds, Context: f.Context, Prefix: f.Prefix, InboxPrefix: f.Inbox, Name: "session-actor", Logger: log,
		SystemCreds: f.SystemCreds,
	}
	if o.Durability, err = natsio.ParseDurability(f.Durability); err != nil {
		return o, err
	}
	o.Monitor, err = streams.ParseMonitors(f.Monitor)
	return o, err
}
