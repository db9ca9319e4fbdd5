package cli

import (
	"strings"
	"testing"
)

// TestAdviceForLostWorkerNamesThatWorker: only a lost worker itself can serve
// its effects; the advice for other targets would not help.
func TestAdviceForLostWorkerNamesThatWorker(t *testing.T) {
	t.Parallel()
	if got, want := howToServeTarget("tool/host-w1"), "start refold bridge serve --tools host --worker w1 again"; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q …", got, want)
	}
	if got, want := howToServeTarget("tool/host"), "start refold bridge serve --tools host --workdir DIR"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
