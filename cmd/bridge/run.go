package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/cmd/settings/exports"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/tools/sessiontools"
)

// Main runs the daemon until ctx ends, and returns the exit status.
func Main(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	env := settings.ReadEnvironment(environ)
	return settings.Run(ctx, program, stderr,
		func() (flags, bool, error) { return parse(args, env, stdout, stderr) },
		func(f flags) error { return run(ctx, &f, env, stderr) })
}

func run(ctx context.Context, f *flags, env settings.Environment, stderr io.Writer) (err error) {
	log, err := f.Logger(stderr, f.TraceIDs(env, f.Prefix))
	if err != nil {
		return err
	}
	telemetry, err := exports.Start(ctx, &f.Daemon, program.Name, env, log)
	if err != nil {
		return err
	}
	defer telemetry.Close()
	if log, err = telemetry.Logger(ctx, &f.Daemon, env, log, f.TraceIDs(env, f.Prefix)); err != nil {
		return err
	}
	offered, err := open(f, env, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, offered.close()) }()
	tracer, err := f.Start(ctx, env, program.Name, f.Prefix, telemetry, log)
	if err != nil {
		return err
	}
	if tracer != nil {
		defer func() { err = errors.Join(err, tracer.Close()) }()
	}
	observer, measured := exports.Observe(tracer, telemetry, env)
	reads := func(b *bridge.Bridge) {
		if measured != nil {
			measured.Reads(b.Stats)
		}
		telemetry.Reads(b.NotReady)
	}
	return natsio.Reopen(ctx, f.ClosedExit, log, telemetry.Broken, func(ctx context.Context, up func()) error {
		return carryOut(ctx, f, env, log, offered, observer, reads, up)
	})
}

// carryOut connects and runs a bridge that serves what is offered, until ctx or a
// connection ends. It calls reads when it is connected, and up when the bridge is about to pull effects.
func carryOut(
	ctx context.Context, f *flags, env settings.Environment, log *slog.Logger, offered *offers, observer executor.Observer,
	reads func(*bridge.Bridge), up func(),
) error {
	b, err := bridge.Connect(ctx, bridge.Options{
		URL: f.NATS, Creds: f.Creds, Context: f.Context, Prefix: f.Prefix, InboxPrefix: f.Inbox, Name: f.Name,
		Provision: f.Provision, Replicas: f.Replicas, AcceptStreamSettings: f.Accept, Grace: f.Grace, Version: settings.Version(), Logger: log,
		Secrets: offered.given(f, env), SecretNames: offered.secretNames(f), SecretsCatalogs: f.SecretsCatalog, LookupEnv: env.Lookup,
		Slots: f.Slots, Durability: f.Durability, Monitor: f.Monitor, SystemCreds: f.SystemCreds, Observe: observer,
	})
	if err != nil {
		return err
	}
	defer b.Close()
	reads(b)
	if err := offered.mayServeShell(b, f); err != nil {
		return err
	}
	if err := offered.serve(b, f, env); err != nil {
		return err
	}
	ctx, stop, err := offered.startServices(ctx, f, log)
	if err != nil {
		return err
	}
	defer stop()
	defer offered.startHosts(ctx, b, log)()
	if !f.NoTools {
		if err := sessiontools.Serve(ctx, b, log, f.options("tool/"+sessiontools.Target)...); err != nil {
			return err
		}
	}
	announce(log, b, f, env)
	up()
	err = b.Run(ctx)
	if closed := (*natsio.ClosedError)(nil); err == nil && errors.As(context.Cause(ctx), &closed) {
		err = closed // the connection to the services
	}
	if err != nil {
		return err
	}
	stats := b.Stats()
	log.Info("bridge_stopped", "started", stats.Started, "settled", stats.Settled, "given_back", stats.GivenBack,
		"conflicts", stats.Conflicts, "foreign", stats.Foreign)
	return nil
}

// announce logs the effective configuration. It has no secrets.
func announce(log *slog.Logger, b *bridge.Bridge, f *flags, env settings.Environment) {
	attrs := []any{"version", settings.Version()}
	for _, c := range b.Config() {
		attrs = append(attrs, c.Key, c.Value)
	}
	attrs = append(attrs, "models", strings.Join(f.Models, " "), "tools", strings.Join(f.Tools, " "),
		"rate", strings.Join(f.Rates, " "), "breaker_faults", f.BreakerFaults, "breaker_pause", f.BreakerPause, "fair", f.Fair,
		"slots", f.Slots, "priority", strings.Join(f.Priorities, " "),
		"closed_exit", f.ClosedExit.String(), "concurrency", f.Concurrency, "provision", f.Provision, "replicas", f.Replicas, "gogc", settings.Collecting(), "log_level", f.LogLevel)
	if f.Workdir != "" {
		attrs = append(attrs, "workdir", f.Workdir)
	}
	if f.Ledger != "" {
		attrs = append(attrs, "ledger", f.Ledger)
	}
	attrs = append(attrs, announceModels(f, env)...)
	log.Info("bridge_starts", attrs...)
}
