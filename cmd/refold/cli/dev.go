package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/devserver"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/tools/sandbox"
)

// devCommand runs everything in one process.
type devCommand struct {
	Dir       string   `default:".refold" type:"path" help:"Directory for the files of JetStream and of host sessions; a later start resumes its sessions."`
	Port      int      `default:"4222" help:"Port of NATS on 127.0.0.1; 0 is any free one."`
	Model     string   `default:"echo" placeholder:"MODEL" help:"echo, demo, scripted:FILE, recorded:FILE, or a real one, with its key in the environment: ${real_models}; or NAME=KIND:URL, as in local=openai-chat:http://127.0.0.1:11434/v1, a server of that kind as the provider NAME."`
	Workdir   string   `type:"path" placeholder:"DIR" help:"Working directory of all host sessions; --dir may not lie in it. Default: one a session, under --dir."`
	Sandbox   string   `enum:"required,auto,off" default:"auto" help:"Confinement of the shell of host sessions: required, all of it or dev does not start; auto, as far as this system can; off, none."`
	Network   bool     `name:"sandbox-network" help:"Let commands of the shell use the network."`
	LetModels bool     `name:"model-may-control-every-session" help:"Serve a shell with network access: NATS needs no credentials here, so a command can publish any event of any session."`
	Install   string   `type:"existingfile" placeholder:"FILE" help:"Install record to publish if the log has none."`
	Workspace string   `type:"existingdir" placeholder:"DIR" help:"Folder of prompts, catalogs and context that every new session starts with: a workspace."`
	HTTP      string   `name:"http" placeholder:"HOST:PORT" help:"Address to serve /metrics, /healthz and /readyz on, such as 127.0.0.1:9464. Default: none."`
	HTTPHosts []string `name:"http-host" placeholder:"NAME" help:"Name by which clients may address --http; IP addresses and localhost always may. May be repeated."`
	Serve     string   `placeholder:"HOST:PORT|off" help:"Loopback address to serve the HTTP API and the inspector on, without tokens: any program of this machine may do everything. Default: 127.0.0.1:4280, if it is free."`
	Verbose   bool     `help:"Print the daemons' logs."`

	Durability string        `enum:"always,interval" default:"always" help:"When NATS syncs to disk: always, before it acknowledges, or interval, every two minutes, which is faster but may lose acknowledged messages in a power failure."`
	Memory     settings.Size `default:"256MiB" placeholder:"SIZE" help:"About how much memory sessions may take; beyond it the least recently used ones are evicted. Such as 64MiB."`
	modelFlags
	provingFlags
}

func (d devCommand) Run(ctx context.Context, s streams, conn connection, full *Full) (err error) {
	s = s.unguarded() // the servers continue if their banner can't be printed
	if d.Memory < 1<<20 {
		return &statusError{statusUsage, "dev: --memory is at least 1MiB"}
	}
	if err := d.checkWorkdir(); err != nil {
		return err
	}
	lock, err := devserver.Lock(d.Dir) // before touching files that another dev may use
	if err != nil {
		return fmt.Errorf("dev: %w", err)
	}
	defer lock.Release()
	box, report, err := sandbox.New(sandbox.Config{Mode: sandbox.Mode(d.Sandbox), Network: d.Network})
	if err != nil {
		return fmt.Errorf("dev: --sandbox %s: %w", d.Sandbox, err)
	}
	work := hostDirs{hosts: filepath.Join(d.Dir, "hosts"), workdir: d.Workdir, box: box}
	if (d.Network || !report.Holds(sandbox.Network)) && !d.LetModels {
		work.noShell = noShell
	}
	m, daemon, remote, err := d.openModel(work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	install, err := d.record(m.install)
	if err != nil {
		return err
	}
	space, err := d.openWorkspace(ctx, s)
	if err != nil {
		return err
	}
	durability, err := natsio.ParseDurability(d.Durability)
	if err != nil {
		return err
	}
	telemetry, err := startTelemetry(ctx, full, d.HTTP, d.HTTPHosts, "refold-dev", conn.Prefix, d.logger(s.err))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, telemetry.Close()) }()
	server, err := devserver.Start(ctx, devserver.Options{
		Dir: d.Dir, Lock: lock, Port: d.Port, Prefix: conn.Prefix, Install: install, Logger: d.logger(s.err), Version: settings.Version(), Durability: durability,
		Memory: int64(d.Memory), Roles: true, Model: remote.provider,
		Metrics: telemetry.Registry, Traces: telemetry.Traces, Observe: telemetry.Observe,
		Prepare: func(ctx context.Context, b *bus.Bus) error { return space.install(ctx, s, b, install) },
		Serve:   func(b *bridge.Bridge) error { return errors.Join(m.serve(b), space.serve(ctx, b, d.logger(s.err))) },
	})
	if err != nil {
		return err
	}
	defer server.Stop()
	telemetry.Reads(server.Stats, server.NotReady)
	var ended <-chan error // nil: there is none
	if daemon != "" {
		var stop func()
		if ended, stop, err = startBridge(daemon, remote.served, server.Config(devserver.Models), d.Durability, s.err); err != nil {
			return err
		}
		defer stop()
	}
	work.tell(s.out, report)
	if telemetry.Address != "" {
		fmt.Fprintf(s.out, "Metrics: http://%s/metrics\n", telemetry.Address)
	}
	space.tell(s.out)
	fmt.Fprintf(s.out, devBanner, server.URL(), d.Dir, d.Model, server.Context(devserver.Admin), conn.Prefix, conn.Prefix)
	remote.tell(s.out)
	return d.untilStopped(ctx, s, server, conn.Prefix, ended)
}

// startTelemetry starts what a program exports, if that is anything.
func startTelemetry(ctx context.Context, full *Full, address string, hosts []string, service, prefix string, log *slog.Logger) (*Telemetry, error) {
	daemon := &settings.Daemon{HTTP: address, HTTPHosts: hosts}
	if err := daemon.Validate(); err != nil {
		return nil, err
	}
	if full == nil {
		return &Telemetry{Reads: func(func() bridge.Stats, func(context.Context) []string) {}, Close: func() error { return nil }}, nil
	}
	return full.Telemetry(ctx, daemon, service, prefix, log)
}

// record returns the record to publish: that of --install, else the model's.
func (d devCommand) record(ofModel []byte) ([]byte, error) {
	if d.Install == "" {
		return ofModel, nil
	}
	return os.ReadFile(d.Install)
}

// tell prints how the shell is confined.
func (p hostDirs) tell(out io.Writer, report sandbox.Report) {
	if p.noShell != "" {
		fmt.Fprintln(out, "Shell: off:", p.noShell)
	} else {
		fmt.Fprintln(out, "Shell:", report)
	}
}

// untilStopped serves HTTP until dev is stopped or a part of it ends.
func (d devCommand) untilStopped(ctx context.Context, s streams, server *devserver.Server, prefix string, ended <-chan error) error {
	stop, err := d.serve(ctx, s, server, prefix)
	switch {
	case err == nil:
		defer stop()
	case ctx.Err() == nil: // else it was stopped while the pages were opened
		return err
	}
	select {
	case <-ctx.Done():
		fmt.Fprintln(s.out, "Stopping; work that has begun is finished first.")
		return nil
	case err := <-server.Failed():
		return err
	case err := <-ended:
		return err
	}
}

func (d devCommand) logger(w io.Writer) *slog.Logger {
	if !d.Verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(w, nil))
}

// openModel opens the model. If a daemon calls it, daemon is that program; else
// daemon and remote are empty.
func (d devCommand) openModel(work hostDirs) (m *model, daemon string, remote networkedModel, err error) {
	remote, daemonAsks, err := parseNetworked(d.Model)
	switch {
	case err != nil:
	case daemonAsks:
		if daemon, err = programBeside(bridgeDaemon); err == nil {
			m, err = hostTools(remote.provider, remote.name, work)
		}
	default:
		m, err = d.open(d.Model, work, d.Dir)
	}
	return m, daemon, remote, err
}

// noShell is why dev runs no commands where they would reach the network.
const noShell = "commands would reach the network, and NATS accepts clients without credentials here: a model could control every session; --model-may-control-every-session lets them"

const devBanner = `NATS with JetStream, a session-actor and a bridge run at %s
Files: %s    Model: %s    Stop with Ctrl-C; a later start resumes its sessions.

From another terminal:

  export NATS_CONTEXT='%s'
  refold run hello "What is here?"            start a run and follow it
  refold tail                                 what happens, in all sessions
  refold view hello                           what the session looks like now
  refold tools hello                          which tools it has now, and why not the others
  refold replay hello --verify                fold it again from the first event

  nats pub %s.in.hello '{"type":"RunRequested","data":{"input":{"text":"hi"}}}'
  nats sub '%s.out.>'

NATS_CONTEXT makes you the administrator; the other users' folders are next to it. Programs without a key may do what clients and approvers may.

`
