package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/internal/llm/provider"
	"github.com/refold/refold/internal/tools/host"
	"github.com/refold/refold/internal/tools/hosting"
	"github.com/refold/refold/planner"
)

// lacksKey returns an error about a missing key. It is nil if another server than
// the provider's is configured, which may need no key.
func lacksKey(p provider.Provider) error {
	if p.LacksKey(p.Server(os.Getenv, "")) {
		return fmt.Errorf("no key: set %s, since %s refuses requests without one", p.KeyVariable(), p.Kind)
	}
	return nil
}

// networkedModel is a model that the daemon calls.
type networkedModel struct {
	served   string // the value of the daemon's --model
	provider string // under which the daemon serves it
	name     string // of the model in new sessions; "": each run names its own
}

// tell prints how to name the model in each run, if new sessions have none.
func (m networkedModel) tell(out io.Writer) {
	if m.provider != "" && m.name == "" {
		fmt.Fprintf(out, "Sessions have no model of their own: refold run hello \"hi\" --provider %s --model NAME\n\n", m.provider)
	}
}

// parseNetworked parses a value of --model: KIND:NAME, or NAME=KIND and
// NAME=KIND:URL as the daemon has them. ok is false for a model that this process
// serves.
func parseNetworked(text string) (m networkedModel, ok bool, err error) {
	head, rest, _ := strings.Cut(text, ":")
	name, kind, named := strings.Cut(head, "=")
	if !named {
		kind = name
	}
	called, ok := provider.Of(kind)
	if !ok {
		return m, false, nil
	}
	isURL := strings.HasPrefix(rest, "http://") || strings.HasPrefix(rest, "https://")
	switch {
	case named && rest != "" && !isURL:
		err = fmt.Errorf("%q is not an address: write %s:NAME, or %s:https://HOST/… for another server", rest, kind, head)
	case named:
		m = networkedModel{served: text, provider: name}
	case isURL:
		err = fmt.Errorf("name the provider that this server is, as in local=%s", text)
	case rest == "":
		err = fmt.Errorf("name the model, as in %s:NAME", kind)
	default:
		m = networkedModel{served: kind, provider: kind, name: rest}
	}
	if err == nil && !isURL {
		err = lacksKey(called)
	}
	if err != nil {
		return networkedModel{}, true, fmt.Errorf("--model %s: %w", text, err)
	}
	return m, true, nil
}

// hostTools serves the built-in host tools alone. Its record's config names the
// model, and its policy has the given rules for approvals.
func hostTools(kind, name string, at hostDirs, approval ...planner.ApprovalRule) (*model, error) {
	tools, err := hosting.Alone(at.hosts, host.Options{WorkDir: at.workdir, Sandbox: at.box, NoShell: at.noShell})
	if err != nil {
		return nil, err
	}
	record, err := withConfig(kind, name, approval...)
	if err != nil {
		return nil, err
	}
	return &model{
		install: record, close: func() error { return nil },
		serve: func(b *bridge.Bridge) error { return tools.Serve(b) },
	}, nil
}

// bridgeStops is how long the daemon may take to finish its work.
const bridgeStops = 25 * time.Second

// startBridge starts the daemon for one model. ended receives an error if it ends
// by itself; stop stops it and waits. It has this process's environment, and with
// it the key, except for the variables that name another NATS user than config.
func startBridge(daemon, model, config, durability string, out io.Writer) (ended <-chan error, stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, daemon, "--config", config, "--durability", durability,
		"--name", "dev", "--log-level", "warn", "--trace-ratio", "1", "--model", model)
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
