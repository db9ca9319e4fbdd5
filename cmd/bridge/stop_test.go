package main

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/bus/bustest"
)

// TestStopDuringStartIsNoFailure: a bridge that gets SIGTERM while it starts
// ends with status 0, so that its supervisor sees no failure.
func TestStopDuringStartIsNoFailure(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	told, stop := context.WithCancel(t.Context())
	stop()
	var log bytes.Buffer
	args := []string{"--model", "scripted=scripted:echo"}
	if status := Main(told, args, []string{"NATS_URL=" + node.URL()}, io.Discard, &log); status != settings.StatusDone {
		t.Errorf("status %d, want %d; it says %q", status, settings.StatusDone, &log)
	}
}
