package e2e_test

// refold bridge check against Refold's own bridge: every check passes.

import (
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/function"
)

// bridgeEnv, if set, makes the test binary a bridge with the tool text.repeat.
const bridgeEnv = "E2E_BRIDGE"

// serveText is what examples/bridge-js does, in Go.
func serveText() error {
	type arguments struct {
		Text    string `json:"text"`
		Times   int    `json:"times,omitempty"`
		PauseMS int    `json:"pause_ms,omitempty"`
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	b, err := bridge.Connect(ctx, bridge.Options{URL: os.Getenv("NATS_URL")})
	if err != nil {
		return err
	}
	defer b.Close()
	repeat := function.New("text.repeat", func(ctx context.Context, in arguments) (string, error) {
		timer := time.NewTimer(time.Duration(in.PauseMS) * time.Millisecond)
		defer timer.Stop()
		select {
		case <-timer.C:
			return strings.Repeat(in.Text, max(in.Times, 1)), nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	if err := b.Functions([]*function.Function{repeat}, bridge.Concurrency(8)); err != nil {
		return err
	}
	return b.Run(ctx)
}

func TestBridgeCheckOfGoBridge(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	checkBridge(t, "env", bridgeEnv+"=1", self)
}

// checkBridge runs refold bridge check on a bridge of the tool text.repeat: all
// checks pass, and none is skipped.
func checkBridge(t *testing.T, command ...string) {
	t.Helper()
	args := []string{
		"bridge", "check", "text", "--json", "--tool", "text.repeat", "--arguments", `{"text":"hi"}`,
		"--slow", `{"text":"hi","pause_ms":11000}`, "--large", `{"text":"hello ","times":60000}`, "--",
	}
	out, said, status := run(t, 5*time.Minute, nil, "refold", append(args, command...)...)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, line := range lines {
		var r struct{ Check, Verdict, Seen string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %q; %s", err, line, tail(said, 2000))
		}
		if r.Verdict != "ok" {
			t.Errorf("%s: %s: %s", r.Check, r.Verdict, r.Seen)
		}
	}
	if status != 0 || len(lines) < 18 {
		t.Errorf("status %d after %d checks:\n%s", status, len(lines), tail(said, 2000))
	}
}
