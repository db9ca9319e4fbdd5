// Import-conversation goes on with a conversation that was held elsewhere.
//
//	import-conversation conversation.json "And how high?"
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/refold/refold"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/embedded"
)

func main() {
	if err := run(context.Background(), "data", os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run imports a file into a new session, with the log in the folder dir, and asks.
func run(ctx context.Context, dir string, args []string, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("usage: import-conversation FILE TEXT")
	}
	messages, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	rt, err := refold.Open(ctx, embedded.Dir(dir))
	if err != nil {
		return err
	}
	defer rt.Close()
	gardener, err := rt.Agent("gardener", refold.Model(model))
	if err != nil {
		return err
	}
	garden := gardener.Session("garden")
	if err := garden.Import(ctx, messages); err != nil {
		return err
	}
	asked, err := garden.Ask(ctx, args[1])
	if err != nil {
		return err
	}
	answer, err := asked.Wait(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, answer.Text)
	return err
}

// model is a stand-in for a real one: it tells what it was shown.
var model = refold.ModelRef{Provider: "stand-in", Model: "gardener", Open: func() (executor.Model, error) { return gardener{}, nil }}

type gardener struct{}

// Generate implements executor.Model.
func (gardener) Generate(_ context.Context, req executor.Request, _ func(string)) (executor.Answer, error) {
	var shown strings.Builder
	for _, m := range req.Messages {
		fmt.Fprintf(&shown, "\n%s: %s", m.Role, m.Text)
		for _, c := range m.Calls {
			fmt.Fprintf(&shown, "%s %s", c.Name, c.Arguments)
		}
	}
	return executor.Answer{Text: "I was shown:" + shown.String()}, nil
}
