// Package hosting makes a bridge serve the host tools on a directory of this machine:
// as one of several workers, or alone. The daemon bridge, `refold dev` and programs
// with package tools/host use it.
package hosting

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
	"github.com/refold/refold/internal/tools/host"
)

// Target is the target of the host tools, where nothing names another.
const Target = "host"

// workerFile holds the name of the worker that owns the directory.
const workerFile = ".worker"

// sweepEvery is the longest interval between two searches for unused host sessions.
const sweepEvery = 30 * time.Second

// Host is the host tools on a directory.
type Host struct {
	Fleet bridge.Fleet // Worker is empty if this process serves the target alone
	tools *host.Host
	ttl   time.Duration
}

// Open prepares a directory for the host sessions of one worker of a fleet, and ends
// what a killed process left in it. Without a name of the worker, the directory has it:
// the name stays with the files, and bridges that share a directory are one worker.
func Open(dir string, f bridge.Fleet, o host.Options) (*Host, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var err error
	if f.Worker, err = workerName(f.Worker, dir); err != nil {
		return nil, err
	}
	if err := f.Validate(); err != nil {
		return nil, err
	}
	o.Route = f.Route()
	return open(dir, f, o)
}

// Alone does the same for a process that serves the target [Target] alone.
func Alone(dir string, o host.Options) (*Host, error) {
	return open(dir, bridge.Fleet{Target: Target}, o)
}

func open(dir string, f bridge.Fleet, o host.Options) (*Host, error) {
	h := &Host{Fleet: f, tools: host.New(dir, o), ttl: o.IdleTTL}
	return h, h.tools.Prepare()
}

// Serve makes a bridge serve the tools. It may be called again, for the next bridge.
func (h *Host) Serve(b *bridge.Bridge, options ...bridge.ServeOption) error {
	h.tools.UseBlobs(b.BlobOf)
	if h.Fleet.Worker == "" {
		return b.Tool(h.Fleet.Target, h.tools, options...)
	}
	return b.Fleet(h.Fleet, h.tools, options...)
}

// Sweep ends unused host sessions, and those of ended sessions, until ctx ends.
func (h *Host) Sweep(ctx context.Context, b *bridge.Bridge, log *slog.Logger) {
	every := sweepEvery
	if h.ttl > 0 {
		every = min(every, max(h.ttl/4, time.Second))
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		h.tools.Sweep(ctx, b, log.With("target", h.Fleet.Target))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// workerName returns the name of this worker: the given one, else that in its
// directory, which gets one.
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
