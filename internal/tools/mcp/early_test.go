package mcp

import (
	"log/slog"
	"testing"
	"testing/synctest"
)

// A server may report changed tools before its connection is complete, and the
// connection may then fail.
func TestEarlyToolChangeIsHandled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		early := &session{log: slog.New(slog.DiscardHandler), connected: make(chan struct{}), ended: make(chan struct{})}
		early.changed()
		synctest.Wait()
		close(early.connected) // without a session: asking one that is not there would end the process
	})
}
