// Command refold is for people: it tries Refold out, asks for runs, follows
// them, shows sessions, and folds their histories again.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/tools/sandbox"
)

func main() {
	sandbox.Child()                                                          // never returns where this process is the one of a command
	if slices.Contains(os.Args, "dev") || slices.Contains(os.Args, "demo") { // which serve a shell
		if err := settings.HideEnvironment(); err != nil {
			fmt.Fprintln(os.Stderr, "refold:", err)
			os.Exit(1)
		}
	}
	settings.Collect()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	os.Exit(Main(ctx, os.Args[1:], os.Stdin, settings.Terminal(os.Stdout), settings.Terminal(os.Stderr)))
}
