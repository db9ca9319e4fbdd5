package cli

import (
	"context"
	"testing"
	"time"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
)

// A run against a server without streams says at once what it waits for. It is stored
// when a session-actor has created them.
func TestRunSaysThatItWaitsForStreams(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, node: bustest.Server(t)}
	run := w.begin("", "run", "s1", "hi", "--no-follow")
	run.err.shows(t, `^waiting: no stream takes the request yet: .*refold actor serve\n$`)
	testbus.Provisioned(t, w.node)
	run.stop()
	<-run.ended
}
