package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	refold "github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/host"
)

// Exit statuses.
const (
	statusDone   = 0 // it was told to stop, and did
	statusFailed = 1 // it can't run
	statusUsage  = 2 // the arguments are wrong
)

// Main runs the daemon until ctx ends, and what it has until then to its end.
// It returns the exit status; what is wrong is on stderr.
func Main(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	f, done, err := parse(args, environ, stdout, stderr)
	switch {
	case done:
		return statusDone
	case err != nil:
		program.Complain(stderr, err)
		return statusUsage
	}
	err = run(ctx, f, stderr)
	if err == nil || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return statusDone // perhaps while it still started
	}
	program.Complain(stderr, err)
	return statusFailed
}

// run connects, provisions and runs a host until ctx ends.
func run(ctx context.Context, f flags, stderr io.Writer) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.LogLevel)); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	record, source := session.BuiltinInstall(), "built-in"
	if f.Install != "" {
		var err error
		if record, err = os.ReadFile(f.Install); err != nil {
			return fmt.Errorf("--install %s: %w", f.Install, err)
		}
		if _, err := session.ParseInstall(record); err != nil {
			return fmt.Errorf("--install %s: %w", f.Install, err)
		}
		source = f.Install
	}
	b, err := connect(ctx, f, log)
	if err != nil {
		return err
	}
	defer b.Close()
	conf, err := bus.ParseConf(refold.StreamsConf, b.Names())
	if err != nil {
		return err
	}
	if err := b.Provision(ctx, conf, f.Replicas); err != nil {
		return err
	}
	for _, c := range f.Consumers {
		class, target := consumerOf(c)
		if err := b.ProvisionBridge(ctx, conf, class, target); err != nil {
			return err
		}
	}
	stored, err := host.EnsureInstall(ctx, b, record)
	if err != nil {
		return err
	}
	h := host.New(b, log, host.Options{Version: settings.Version(), Memory: int64(f.Memory), VerifyPart: f.SnapshotVerify, Doubt: f.VerifyLoads})
	log.Info("session_actor_starts", "version", settings.Version(), "instance", h.Instance(), "url", b.URL(), "server", b.ServerVersion(),
		"prefix", b.Names().Prefix(), "replicas", f.Replicas, "install", source, "install_published", stored,
		"memory", f.Memory.String(), "gogc", settings.Collecting(), "snapshot_verify", f.SnapshotVerify, "log_level", f.LogLevel)
	if err := h.Run(ctx); err != nil {
		return err
	}
	log.Info("session_actor_stopped", "instance", h.Instance())
	return nil
}

// connect connects as the flags say.
func connect(ctx context.Context, f flags, log *slog.Logger) (*bus.Bus, error) {
	wanted, err := bus.ParseDurability(f.Durability)
	if err != nil {
		return nil, err
	}
	monitors, err := bus.ParseMonitors(f.Monitor)
	if err != nil {
		return nil, err
	}
	return bus.Connect(ctx, bus.Options{
		URL: f.NATS, Creds: f.Creds, Context: f.Context, Prefix: f.Prefix, InboxPrefix: f.Inbox, Name: "session-actor", Logger: log,
		Durability: wanted, Monitor: monitors, SystemCreds: f.SystemCreds,
	})
}
