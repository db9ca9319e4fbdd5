// Direct-refs starts a run whose tools it names by descriptor, and so chooses
// the tool and its description for the model. See README.md.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "direct-refs:", err)
		os.Exit(1)
	}
}

// run lists the descriptors of a record, and starts a run with one of them.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("direct-refs", flag.ContinueOnError)
	url := flags.String("nats", "", "address of NATS; empty: the context's, else this machine")
	user := flags.String("context", os.Getenv("NATS_CONTEXT"), "context of the nats tool, or its file: the user to connect as")
	sid := flags.String("session", "refs", "the session")
	record := flags.String("record", "examples/direct-refs/record.json", "the install record that Refold was started with")
	name := flags.String("tool", "start_work", "the name of the descriptor to offer; or a ref, sha256-…, as it is")
	if err := flags.Parse(args); err != nil {
		return err
	}
	text, err := os.ReadFile(*record)
	if err != nil {
		return err
	}
	install, err := session.ParseInstall(text)
	if err != nil {
		return err
	}
	chosen, err := codec.ParseRef(*name)
	if err != nil {
		if chosen, err = find(install.Registry, *name, out); err != nil {
			return err
		}
	}
	c, err := client.Connect(ctx, client.Options{URL: *url, Context: *user, Name: "direct-refs"})
	if err != nil {
		return err
	}
	defer c.Close()
	return ask(ctx, c, *sid, chosen, out)
}

// find prints every descriptor of a registry and returns the one with a name. A
// descriptor's ref is the hash of its content, so every program can compute it.
func find(registry *planner.Registry, name string, out io.Writer) (chosen codec.Ref, err error) {
	found := false
	for _, blob := range registry.Blobs() {
		var descriptor struct {
			ToolName string `json:"tool_name"`
		}
		if err := json.Unmarshal(blob.Content, &descriptor); err != nil {
			return chosen, err
		}
		tool, _ := registry.LookupRef(blob.Ref)
		fmt.Fprintf(out, "%s  %s of %s\n", blob.Ref, descriptor.ToolName, registry.Tool(tool).ToolID)
		if descriptor.ToolName == name {
			chosen, found = blob.Ref, true
		}
	}
	if !found {
		return chosen, fmt.Errorf("the record has no descriptor named %q", name)
	}
	return chosen, nil
}

// ask starts a run with one tool and prints its result.
func ask(ctx context.Context, c *client.Client, sid string, ref codec.Ref, out io.Writer) error {
	config, err := json.Marshal(map[string]any{"provider": "scripted", "model": "worker", "tool_refs": []string{ref.String()}})
	if err != nil {
		return err
	}
	from, err := c.LastNotice(ctx)
	if err != nil {
		return err
	}
	// The record's policy lets clients choose among bound descriptors.
	seq, err := c.Run(ctx, sid, "Begin.", client.RunOptions{Config: config})
	if err != nil {
		return err
	}
	end, err := c.End(ctx, sid, seq, from+1, nil)
	var rejected *client.RejectedError
	switch {
	case errors.As(err, &rejected):
		fmt.Fprintln(out, rejected)
		return nil
	case err != nil:
		return err
	case end.Lifecycle != session.Completed:
		return fmt.Errorf("the run %s: %s: %s", end.Lifecycle, end.Code, end.Detail)
	}
	view, err := c.View(ctx, sid)
	if err != nil {
		return err
	}
	for _, tool := range view.Tools {
		fmt.Fprintf(out, "%s as %s: %s\n", tool.ToolID, tool.ToolName, tool.Why)
	}
	if end.Output != nil {
		fmt.Fprintln(out, end.Output.Text)
	}
	return nil
}
