package cli

// The daemons that `refold bridge serve` and `refold actor serve` start. That they
// take arguments, signals and the exit status is a test of e2e.

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/internal/bus/bustest"
)

// TestDaemonIsBesideThisProgram and nowhere else: a bridge on the PATH is another
// package's program.
func TestDaemonIsBesideThisProgram(t *testing.T) {
	path, dir := t.TempDir(), t.TempDir()
	t.Setenv("PATH", path)
	program := func(at ...string) string {
		t.Helper()
		name := filepath.Join(at...)
		bustest.OK(t, os.WriteFile(name, []byte("#!/bin/sh\n"), 0o755))
		return name
	}
	program(path, "bridge")
	program(path, bridgeDaemon)
	program(dir, "bridge")
	bustest.OK(t, os.Mkdir(filepath.Join(dir, actorDaemon), 0o700))
	self := filepath.Join(dir, "refold")
	for name, from := range programPaths {
		beside := filepath.Join(dir, name)
		got, err := findProgram(self, name)
		if err == nil || !strings.Contains(err.Error(), "no program at "+beside+":") || !strings.Contains(err.Error(), "go build -o "+beside+" "+from) {
			t.Errorf("%s isn't there: got %q, %v", name, got, err)
		}
	}
	if _, err := findProgram("/tmp/go-build1/b001/exe/refold", bridgeDaemon); err == nil || !strings.Contains(err.Error(), "make build, and start bin/refold") {
		t.Errorf("under go run: %v", err)
	}
	want := program(dir, bridgeDaemon)
	if got, err := findProgram(self, bridgeDaemon); err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// TestDaemonConnectsAsItsCommandLine: the flags in front of the command win over
// the environment, and the default prefix over nothing.
func TestDaemonConnectsAsItsCommandLine(t *testing.T) {
	t.Parallel()
	env := []string{"HOME=/h", "NATS_URL=nats://old", "NATS_CREDS=c"}
	got := connection{NATS: "nats://new", Creds: "c", Prefix: "refold"}.environ(env)
	if want := []string{"HOME=/h", "NATS_URL=nats://new", "NATS_CREDS=c"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	got = connection{Context: "ctx", Prefix: "p"}.environ(nil)
	if want := []string{"NATS_CONTEXT=ctx", "REFOLD_PREFIX=p"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestServeWithoutADaemon names the path, whatever the arguments.
func TestServeWithoutADaemon(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"bridge", "serve", "--model", "openai"}, {"actor", "serve", "--help"}, {"bridge", "serve"}} {
		var out, errOut text
		if status := Main(t.Context(), args, nil, &out, &errOut); status != statusFailed || !strings.Contains(errOut.String(), "refold looks for refold-") {
			t.Errorf("%q: status %d: %s%s", args, status, out.String(), errOut.String())
		}
	}
}

// TestProgramsOfGoRunAreKnown by their path; no other program builds another one.
func TestProgramsOfGoRunAreKnown(t *testing.T) {
	t.Parallel()
	for self, want := range map[string]bool{
		"/tmp/go-build123/b001/exe/refold":                             true,
		"/c/0a/" + strings.Repeat("0123456789abcdef", 4) + "-d/refold": true,
		"/tmp/go-build123/b001/cli.test":                               false,
		"/usr/local/bin/refold":                                        false,
		"/home/ann/go-build/bin/refold":                                false,
	} {
		if got := underGoRun(self); got != want {
			t.Errorf("%s: got %t, want %t", self, got, want)
		}
	}
}
