package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/internal/tools/host"
	"github.com/refold/refold/planner"
)

// kinds are the kinds of models that the daemon bridge calls, with the variables
// of their keys. The daemon links the providers' libraries; this program does
// not.
type kinds []struct{ kind, variable string }

var networked = kinds{
	{"openai", "OPENAI_API_KEY"}, {"openai-chat", "OPENAI_API_KEY"}, {"anthropic", "ANTHROPIC_API_KEY"}, {"gemini", "GEMINI_API_KEY"},
}

// kinds returns their names.
func (all kinds) kinds() (names []string) {
	for _, k := range all {
		names = append(names, k.kind)
	}
	return names
}

// lacks returns a warning about a kind without a key. It is "" for other kinds,
// and if another server than the provider's is configured, which may need no key.
func (all kinds) lacks(kind string) string {
	for _, k := range all {
		other := strings.TrimSuffix(k.variable, "API_KEY") + "BASE_URL"
		if k.kind == kind && os.Getenv(k.variable) == "" && os.Getenv(other) == "" {
			return fmt.Sprintf("no key: %s is not set, and %s refuses requests without one: stop, set it, and start again", k.variable, kind)
		}
	}
	return ""
}

// networkedModel returns the kind and name of a model that the daemon calls, given
// as KIND:NAME. ok is false for any other.
func networkedModel(text string) (kind, name string, ok bool, err error) {
	kind, name, _ = strings.Cut(text, ":")
	if !slices.Contains(networked.kinds(), kind) {
		return "", "", false, nil
	}
	if name == "" {
		return "", "", true, fmt.Errorf("--model %s: name the model, as in %s:NAME", text, kind)
	}
	return kind, name, true, nil
}

// hostTools serves the built-in host tools alone. Its record's config names the
// model, and its policy has the given rules for approvals.
func hostTools(kind, name string, at hostDirs, approval ...planner.ApprovalRule) (*model, error) {
	tools := host.New(at.hosts, host.Options{WorkDir: at.workdir, Sandbox: at.box, NoShell: at.noShell})
	if err := tools.Prepare(); err != nil {
		return nil, err
	}
	record, err := withConfig(kind, name, approval...)
	if err != nil {
		return nil, err
	}
	return &model{
		install: record, close: func() error { return nil },
		serve: func(b *bridge.Bridge) error {
			tools.UseBlobs(b.Blob)
			return b.Tool("host", tools)
		},
	}, nil
}

// findBridge finds the daemon in this program's directory, else on the PATH.
func findBridge(self string) (string, error) {
	beside := filepath.Join(filepath.Dir(self), "bridge")
	if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
		return beside, nil
	}
	if path, err := exec.LookPath("bridge"); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("the daemon bridge calls providers' models, and it is neither at %s nor in the PATH: install both with go install ./cmd/... and start that refold", beside)
}

// bridgeStops is how long the daemon may take to finish its work.
const bridgeStops = 25 * time.Second

// startBridge starts the daemon for one model. ended receives an error if it ends
// by itself; stop stops it and waits. It has this process's environment, and with
// it the key, except for the variables that name another NATS user than config.
func startBridge(daemon, kind, config, durability string, out io.Writer) (ended <-chan error, stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, daemon, "--config", config, "--durability", durability,
		"--name", "dev", "--log-level", "warn", "--trace-ratio", "1", "--model", kind)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "NATS_") || strings.HasPrefix(v, "REFOLD_") })
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = bridgeStops
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, nil, fmt.Errorf("start %s: %w", daemon, err)
	}
	done, all := make(chan error, 1), make(chan struct{})
	go func() {
		err := cmd.Wait()
		if ctx.Err() == nil {
			done <- errors.Join(fmt.Errorf("%s ended", daemon), err)
		}
		close(all)
	}()
	return done, func() {
		cancel()
		<-all
	}, nil
}
