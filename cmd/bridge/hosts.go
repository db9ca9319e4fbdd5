package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/internal/tools/host"
	"github.com/refold/refold/internal/tools/hosting"
	"github.com/refold/refold/internal/tools/sandbox"
)

// errOpenShell explains why this bridge must not serve a shell.
var errOpenShell = errors.New("commands of the shell would reach the network, and NATS accepts clients without credentials: a model could publish any event of any session. " +
	"Give the NATS server users (docs/operations.md), or keep commands from the network (without --sandbox-network, and with --sandbox required or auto where it can). " +
	"--model-may-control-every-session serves the shell all the same")

// mayServeShell returns an error if the shell would let a model control sessions.
func (o *offers) mayServeShell(b *bridge.Bridge, f *flags) error {
	if !o.shellDials || f.LetModels || !b.LetsAnybodyIn() {
		return nil
	}
	return fmt.Errorf("--tools host: %w", errOpenShell)
}

// openHost opens --tools [NAME=]host. It logs what confines commands.
func (o *offers) openHost(of offer, f *flags, log *slog.Logger) error {
	if err := o.free(of.name); err != nil {
		return err
	}
	if of.file != "" {
		return errors.New("it takes no file: write host, and name the directory of host sessions with --workdir")
	}
	box, report, err := sandbox.New(sandbox.Config{
		Mode: sandbox.Mode(f.Sandbox), Network: f.SandboxNetwork, Read: f.SandboxRead,
		Limits: sandbox.Limits{CPU: f.ShellCPU, Memory: int64(f.ShellMemory), FileSize: int64(f.ShellFileSize), Processes: f.ShellProcesses},
	})
	if err != nil {
		return fmt.Errorf("--sandbox %s: %w", f.Sandbox, err)
	}
	level := slog.LevelInfo
	if box == nil || len(report.Missing) > 0 {
		level = slog.LevelWarn
	}
	log.Log(context.Background(), level, "sandbox", "holds", report.String())
	o.shellDials = f.SandboxNetwork || !report.Holds(sandbox.Network)
	h, err := hosting.Open(f.Workdir, bridge.Fleet{Target: of.name, Worker: f.Worker, Lost: f.WorkerLost},
		host.Options{Sandbox: box, IdleTTL: f.HostTTL, Keep: f.HostKeep, OutputMax: int64(f.ShellOutput)})
	if err != nil {
		return err
	}
	o.hosts = append(o.hosts, h)
	return nil
}

// startHosts starts goroutines that end unused host sessions, and those of ended
// sessions. stop ends them.
func (o *offers) startHosts(ctx context.Context, b *bridge.Bridge, log *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var sweeping sync.WaitGroup
	for _, h := range o.hosts {
		sweeping.Go(func() { h.Sweep(ctx, b, log) })
	}
	return func() {
		cancel()
		sweeping.Wait()
	}
}
