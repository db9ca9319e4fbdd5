// Package host has the built-in tools on a directory of this machine, for an agent of
// package refold: files, and with the option Only commands too.
//
//	helper, err := rt.Agent("helper", refold.Model(…), refold.ToolsFrom(host.Dir("work")))
//
// Each session has a directory of its own below the given one, which the model opens
// with the tool open_session. docs/tools.md describes the tools.
//
// # Laws
//
//   - File tools touch nothing outside of the session's directory.
//   - Commands run in a sandbox that keeps them from the network and from the rest of
//     the machine. Runtime.Agent fails on a system that can't enforce it, unless the
//     option Sandbox asks for less.
//   - With less of a sandbox, a command may read the environment that this process was
//     started with, and the keys in it: give keys by files (provider.KeyFile) then.
//   - The files are this process's alone: calls of a session go to the process that
//     has its directory. Processes that share a directory are one.
//   - Files stay when the process ends, and when the session does.
//
// # Programs
//
// The sandbox starts this same program again, in which this package takes over before
// main begins. So a program that imports it must not do its work in init functions.
package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/refold/refold"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/internal/source"
	"github.com/refold/refold/internal/tools/host"
	"github.com/refold/refold/internal/tools/hosting"
	"github.com/refold/refold/internal/tools/sandbox"
)

// In the child process of a command this does not return. Everywhere else it marks
// files that were open at the start as not to be inherited.
func init() { sandbox.Child() }

// Mode says what confines commands.
type Mode string

// The values of Sandbox.
const (
	Required Mode = Mode(sandbox.Required) // all of it, or Runtime.Agent fails; the default
	Auto     Mode = Mode(sandbox.Auto)     // as far as this system can, which is logged
	Off      Mode = Mode(sandbox.Off)      // nothing: commands may do what this process's user may
)

// Option is an option of Dir.
type Option struct{ apply func(*directory) }

// Only selects tools by the names that models call: read_file, grep, write_file,
// shell. The default is all but shell. The tools that open and close a directory come
// with them.
func Only(names ...string) Option {
	return Option{func(d *directory) { d.names = append(d.names, names...) }}
}

// Sandbox says what confines commands of the tool shell.
func Sandbox(m Mode) Option { return Option{func(d *directory) { d.mode = m }} }

// Network lets commands of the tool shell use the network. A command can then reach
// the servers of an embedded runtime, though not without a key.
func Network() Option { return Option{func(d *directory) { d.network = true }} }

// Dir returns the built-in tools on a directory, which is created if it doesn't exist.
func Dir(path string, o ...Option) refold.ToolSource {
	d := &directory{path: path, mode: Required}
	for _, option := range o {
		if option.apply != nil {
			option.apply(d)
		}
	}
	return d
}

// errOpenShell explains why this process must not serve a shell.
var errOpenShell = errors.New("commands would reach the network, and NATS accepts clients without credentials: a model could control every session. " +
	"Give the NATS server users (docs/operations.md), or keep commands from the network (without host.Network and host.Sandbox)")

type directory struct {
	path    string
	names   []string
	mode    Mode
	network bool
}

// OpenTools prepares the directory, if this process serves the tools.
func (d *directory) OpenTools(_ context.Context, o source.ToolOptions) (*source.Tools, error) {
	tools, err := d.open(o)
	if err != nil {
		return nil, fmt.Errorf("host.Dir(%q): %w", d.path, err)
	}
	return tools, nil
}

func (d *directory) open(o source.ToolOptions) (*source.Tools, error) {
	if d.path == "" {
		return nil, errors.New("name a directory")
	}
	target, err := o.Target(hosting.Target)
	if err != nil {
		return nil, err
	}
	names := d.names
	if len(names) == 0 {
		names = source.BuiltInNames()
		names = slices.DeleteFunc(names, func(name string) bool { return name == source.Shell })
	}
	tools := &source.Tools{}
	if tools.Specs, err = source.BuiltIn(target, names...); err != nil || !o.Serves {
		return tools, err
	}
	dir, err := filepath.Abs(d.path)
	if err != nil {
		return nil, err
	}
	var options host.Options
	dials := false // commands may use the network
	if slices.Contains(names, source.Shell) {
		var report sandbox.Report
		if options.Sandbox, report, err = sandbox.New(sandbox.Config{Mode: sandbox.Mode(d.mode), Network: d.network}); err != nil {
			return nil, fmt.Errorf("sandbox: %w; host.Sandbox asks for less", err)
		}
		o.Logger.Info("sandbox", "holds", report.String())
		dials = d.network || !report.Holds(sandbox.Network)
	} else {
		options.NoShell = "this program serves no shell"
	}
	h, err := hosting.Open(dir, bridge.Fleet{Target: target}, options)
	if err != nil {
		return nil, err
	}
	tools.Targets = []string{target, h.Fleet.Route()}
	tools.Serve = func(b *bridge.Bridge) error {
		if dials && b.LetsAnybodyIn() {
			return fmt.Errorf("host.Dir(%q): %w", d.path, errOpenShell)
		}
		return h.Serve(b)
	}
	tools.Run = func(ctx context.Context, b *bridge.Bridge) { h.Sweep(ctx, b, o.Logger) }
	return tools, nil
}
