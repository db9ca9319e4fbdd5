// Command session-actor, built as refold-session-actor, runs sessions: it owns
// lanes of the log, folds the events of each session, and publishes effects and
// notices. Run as many as you like; they share the lanes.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/refold/refold/cmd/settings"
)

func main() {
	settings.Collect()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	context.AfterFunc(ctx, stop) // a second signal does not wait for the drain
	os.Exit(Main(ctx, os.Args[1:], os.Environ(), settings.Terminal(os.Stdout), settings.Terminal(os.Stderr)))
}
