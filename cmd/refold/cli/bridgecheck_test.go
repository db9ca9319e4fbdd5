package cli

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/refold/refold/internal/bus/bustest"
)

// TestBridgeCheckRefusesArguments: invalid arguments are a usage error, and
// nothing is started.
func TestBridgeCheckRefusesArguments(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`target "a.b" has`:             {"a.b"},
		"--arguments 1: want a JSON":   {"text", "--arguments", "1"},
		"--slow [1]: want a JSON":      {"text", "--slow", "[1]"},
		`--large null: want a JSON`:    {"text", "--large", "null"},
		`expected "<target>`:           {},
		"unknown flag --nothing":       {"text", "--nothing"},
		"bridge check: --slow {: want": {"text", "--slow", "{"},
	} {
		var out, errOut bytes.Buffer
		status := Main(t.Context(), append([]string{"bridge", "check"}, args...), strings.NewReader(""), &out, &errOut)
		if status != statusUsage || !strings.Contains(errOut.String(), want) {
			t.Errorf("%q: status %d, %q; want %d and %q", args, status, errOut.String(), statusUsage, want)
		}
	}
}

// TestBridgeCheckOfProgramThatEnds: a command that serves nothing fails with
// the reason.
func TestBridgeCheckOfProgramThatEnds(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("false")
	bustest.OK(t, err)
	var out, errOut bytes.Buffer
	status := Main(t.Context(), []string{"bridge", "check", "text", "--", program}, strings.NewReader(""), &out, &errOut)
	if status != statusFailed || !strings.Contains(errOut.String(), "the bridge ended by itself") {
		t.Errorf("status %d, %q and %q", status, out.String(), errOut.String())
	}
}
