package mcp

import (
	"log/slog"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAttackTerminal: a server started by this process has no terminal to write
// escape sequences to, or to read.
func TestAttackTerminal(t *testing.T) {
	t.Parallel()
	p, err := startProgram(&Server{Command: "/bin/cat"}, nil, nil, slog.New(slog.DiscardHandler))
	must(t, err)
	defer p.stop()
	if session, err := unix.Getsid(p.pid); err != nil || session != p.pid {
		t.Errorf("the server is in session %d (%v), want one of its own, %d", session, err, p.pid)
	}
}
