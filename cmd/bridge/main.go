// Command bridge, built as refold-bridge, carries out effects of sessions: it
// calls models and runs tools. Run as many as you like. Bridges that serve the
// same targets share the work. They never run a call twice that must not run
// twice.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/tools/sandbox"
)

func main() {
	sandbox.Child() // does not return in the child process of a command
	if err := settings.HideEnvironment(); err != nil {
		fmt.Fprintln(os.Stderr, "refold-bridge:", err)
		os.Exit(1)
	}
	settings.Collect()
	quieten(log.Default(), os.Stderr)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(Main(ctx, os.Args[1:], os.Environ(), settings.Terminal(os.Stdout), settings.Terminal(os.Stderr)))
}
