package main

import (
	"strings"
	"testing"
)

// What waits for a worker that is gone is served by that worker alone: the advice
// for any other target would start something that serves nobody.
func TestAdviceForLostWorkerNamesThatWorker(t *testing.T) {
	t.Parallel()
	if got, want := howToServeTarget("tool/host-w1"), "start bridge --tools host --worker w1 again"; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q …", got, want)
	}
	if got, want := howToServeTarget("tool/host"), "start bridge --tools host --workdir DIR"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
