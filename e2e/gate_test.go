//go:build unix

package e2e_test

// Real tools that run for as long as a test wants: shell commands of a host
// bridge that wait at a named pipe.

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
)

// opening are the rules of a script that opens a host session on `open`.
const opening = `rules:
  - shown: {asked: ^open, last: user}
    calls: [{tool: open_session}]
  - shown: {results: [{tool: open_session, error: false}]}
    say: open
`

// host starts a bridge that serves the host's tools. Its commands wait at pipes
// outside of their directories.
func (s *system) host(work string) *daemon {
	s.t.Helper()
	return startDaemon(s.t, "bridge", "--nats", s.url, "--tools", "host", "--workdir", work, "--sandbox", "off", "--model-may-control-every-session")
}

// startHost starts a system whose model says the rules of a script, and whose
// session s1 has a host session, opened by its first run.
func startHost(t *testing.T, rules string) *system {
	t.Helper()
	s := startSystem(t, nil)
	s.models(opening+rules, "scripted")
	s.host(t.TempDir())
	s.run(session.DoorIn, "s1", "open", scripted)
	s.wantEnd("s1", 1, session.Completed, "")
	return s
}

// gate is a named pipe that a command reads a line from.
type gate struct {
	t    *testing.T
	path string
	side *os.File // to write; nil until a command waits
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{t: t, path: filepath.Join(t.TempDir(), "gate")}
	if err := syscall.Mkfifo(g.path, 0o600); err != nil {
		t.Fatal(err)
	}
	// Also keeps the side open for as long as the test runs: a file that nothing
	// refers to any more is closed, and the command goes on.
	t.Cleanup(func() {
		if g.side != nil {
			_ = g.side.Close()
		}
	})
	return g
}

// in puts the gate's path where a script says GATE.
func (g *gate) in(script string) string { return strings.ReplaceAll(script, "GATE", g.path) }

// reached waits until a command waits at the gate: so its call is in progress.
func (g *gate) reached() {
	g.t.Helper()
	until(g.t, time.Minute, "a command at the gate", func() bool {
		side, err := os.OpenFile(g.path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		g.side = side
		return err == nil // else nobody has it open to read
	})
}

// pass lets the command go on.
func (g *gate) pass() {
	g.t.Helper()
	_, err := g.side.WriteString("go\n")
	if err == nil {
		err = g.side.Close()
	}
	if err != nil {
		g.t.Fatal(err)
	}
}
