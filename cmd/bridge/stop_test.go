package main

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/bus/bustest"
)

// A bridge that is told to end while it still starts ends as one that was told
// to: whoever runs it must not take that for a failure.
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
