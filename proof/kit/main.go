// Command kit runs the proof kit with all of its flags, for long nights of chaos.
// From a checkout:
//
//	go run ./proof/kit chaos --twice 2 --points 20
//
// refold chaos has the flags that most people need.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/tools/sandbox"
	"github.com/refold/refold/proof/cli"
)

// commands has every command. Processes that are killed run chaos-part.
type commands struct {
	Chaos     cli.ChaosAll  `cmd:"" help:"Kill a session-actor and a bridge at every message that they send, on their own server, and check the outcome."`
	ChaosPart cli.ChaosPart `cmd:"" hidden:""`
	Bench     cli.Bench     `cmd:"" help:"Measure Refold on this machine, on servers of its own."`
}

func main() {
	sandbox.Child() // does not return in the child process of a command
	settings.Collect()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdin, settings.Terminal(os.Stdout), settings.Terminal(os.Stderr))
	stop()
	os.Exit(status)
}

// run runs one command and returns the exit status.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	parser, err := kong.New(&commands{}, kong.Name("kit"), kong.Writers(out, errOut), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		fmt.Fprintln(errOut, "kit:", err)
		return cli.Failed
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(errOut, "kit: %v; see kit --help\n", err)
		return cli.Usage
	}
	command.BindTo(ctx, (*context.Context)(nil))
	err = command.Run(cli.Streams{In: in, Out: out, Err: errOut})
	var wrong *cli.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &wrong):
		fmt.Fprintln(errOut, "kit:", wrong.Text)
		return wrong.Status
	case ctx.Err() != nil:
		return 130
	}
	fmt.Fprintln(errOut, "kit:", err)
	return cli.Failed
}
