package cli

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

// Program is the main function of refold, and with full of refold-full. It ends the
// process.
func Program(full *Full) {
	sandbox.Child()                                                          // does not return in the child process of a command
	if slices.Contains(os.Args, "dev") || slices.Contains(os.Args, "demo") { // they serve a shell
		if err := settings.HideEnvironment(); err != nil {
			fmt.Fprintln(os.Stderr, "refold:", err)
			os.Exit(1)
		}
	}
	settings.Collect()
	os.Exit(Run(untilSignal(), full, os.Args[1:], os.Stdin, settings.Terminal(os.Stdout), settings.Terminal(os.Stderr)))
}

// untilSignal returns a context that SIGTERM or SIGINT ends, with the signal as its
// cause. A second signal kills the process.
func untilSignal() context.Context {
	ctx, stop := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		got, _ := (<-signals).(syscall.Signal)
		signal.Stop(signals)
		stop(stoppedBy(got))
	}()
	return ctx
}
