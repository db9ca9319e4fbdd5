package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/tools/host"
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

// hosting is --tools [NAME=]host: its tools, and the name of this worker.
type hosting struct {
	fleet bridge.Fleet
	tools *host.Host
}

// openHost opens --tools [NAME=]host. It logs what confines commands.
func (o *offers) openHost(of offer, f *flags, log *slog.Logger) (executor.Executor, error) {
	if of.file != "" {
		return nil, errors.New("it takes no file: write host, and name the directory of host sessions with --workdir")
	}
	box, report, err := sandbox.New(sandbox.Config{
		Mode: sandbox.Mode(f.Sandbox), Network: f.SandboxNetwork, Read: f.SandboxRead,
		Limits: sandbox.Limits{CPU: f.ShellCPU, Memory: int64(f.ShellMemory), FileSize: int64(f.ShellFileSize), Processes: f.ShellProcesses},
	})
	if err != nil {
		return nil, fmt.Errorf("--sandbox %s: %w", f.Sandbox, err)
	}
	level := slog.LevelInfo
	if box == nil || len(report.Missing) > 0 {
		level = slog.LevelWarn
	}
	log.Log(context.Background(), level, "sandbox", "holds", report.String())
	o.shellDials = f.SandboxNetwork || !report.Holds(sandbox.Network)
	h := hosting{fleet: bridge.Fleet{Target: of.name, Lost: f.WorkerLost}}
	options := host.Options{Sandbox: box, IdleTTL: f.HostTTL, Keep: f.HostKeep, OutputMax: int64(f.ShellOutput)}
	if err := os.MkdirAll(f.Workdir, 0o755); err != nil {
		return nil, err
	}
	if h.fleet.Worker, err = workerName(f.Worker, f.Workdir); err != nil {
		return nil, err
	}
	if err := h.fleet.Validate(); err != nil {
		return nil, fmt.Errorf("--worker: %w", err)
	}
	options.Route = h.fleet.Route()
	h.tools = host.New(f.Workdir, options)
	if err := h.tools.Prepare(); err != nil {
		return nil, err
	}
	o.hosts = append(o.hosts, h)
	return h.tools, nil
}

// workerFile holds the name of the worker that owns the directory.
const workerFile = ".worker"

// workerName returns the name of this worker: from the flag, else from its
// directory. The name stays with the files: a worker that is moved with them
// keeps it, and bridges that share a directory are one worker.
func workerName(given, dir string) (string, error) {
	if given != "" {
		return given, nil
	}
	name := filepath.Join(dir, workerFile)
	fresh := filepath.Join(dir, workerFile+"."+rand.Text())
	if err := os.WriteFile(fresh, []byte(strings.ToLower(rand.Text()[:16])+"\n"), 0o644); err != nil {
		return "", err
	}
	defer os.Remove(fresh)
	// Unlike a rename, a link doesn't replace: of two starting bridges, one wins.
	if err := os.Link(fresh, name); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	text, err := os.ReadFile(name)
	if err == nil && strings.TrimSpace(string(text)) == "" {
		err = fmt.Errorf("%s is empty: write the name of this worker into it, or remove it", name)
	}
	return strings.TrimSpace(string(text)), err
}

// sweepEvery is the interval between two searches for unused host sessions.
const sweepEvery = 30 * time.Second

// startHosts starts a goroutine that ends unused host sessions, and those of
// ended sessions. stop ends it.
func (o *offers) startHosts(ctx context.Context, b *bridge.Bridge, f *flags, log *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		every := sweepEvery
		if f.HostTTL > 0 {
			every = min(every, max(f.HostTTL/4, time.Second))
		}
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			for _, h := range o.hosts {
				h.tools.Sweep(ctx, b, log.With("target", h.fleet.Target))
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
