package mcp

import (
	"log/slog"
	"testing"
	"testing/synctest"
)

// A server may say that its tools changed while it is still being reached; and
// then it may not be reached at all.
func TestEarlyToolChangeIsHandled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		early := &session{log: slog.New(slog.DiscardHandler), connected: make(chan struct{}), ended: make(chan struct{})}
		early.changed()
		synctest.Wait()
		close(early.connected) // without a session: asking one that is not there would end the process
	})
}
