// Pack serves a pack of one Go function, which needs a secret. See README.md.
//
//	pack -record | refold install -       lets models enable the pack
//	pack -key FILE                        serves it
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
	"syscall"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/bridge/function"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

// run serves the pack until ctx ends, or prints an install record.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("pack", flag.ContinueOnError)
	url := flags.String("nats", "", "address of NATS; empty: the context's, else this machine")
	user := flags.String("context", os.Getenv("NATS_CONTEXT"), "context of the nats tool, or its file: the user to connect as")
	key := flags.String("key", "", "file with the secret CRM_KEY; it is read for each call")
	record := flags.Bool("record", false, "print an install record that lets models enable the pack, and end")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *record {
		return printRecord(out)
	}
	options := bridge.Options{URL: *url, Context: *user, Name: "pack"}
	if *key != "" {
		options.Secrets = []bridge.Secrets{bridge.SecretFile("CRM_KEY", *key)}
	}
	b, err := bridge.Connect(ctx, options)
	if err != nil {
		return err
	}
	defer b.Close()
	if err := b.Pack(crm()); err != nil {
		return err
	}
	fmt.Fprintln(out, "serving", b.Targets())
	return b.Run(ctx) // until it is stopped; it finishes running calls first
}

func crm() bridge.Pack {
	return bridge.Pack{
		Name: "crm", Version: "1.0.0", Description: "Customers and what they bought.", DisplayName: "CRM", Category: "sales",
		Tools: []*function.Function{function.New("crm.lookup", lookup,
			function.Description("Finds a customer by number."), function.Needs("secret:CRM_KEY"), function.ReadOnly(), function.RetrySafe())},
	}
}

type lookupArguments struct {
	Customer string `json:"customer" description:"The customer's number." pattern:"^[0-9]+$"`
}

// lookup looks up a customer in a CRM. This one has one customer, and repeats
// the key in its answer, as some do.
func lookup(ctx context.Context, in lookupArguments) (string, error) {
	call, _ := function.CallOf(ctx)
	key, _ := call.Secret("CRM_KEY")
	if in.Customer != "7" {
		return "", &executor.Error{Code: "unknown_customer", Detail: "ask for customer 7"}
	}
	return "customer 7 is Ada (asked with the key " + key + ")", nil
}

// printRecord prints an install record with a grant that trusts exactly this
// pack, and lets models enable it.
func printRecord(out io.Writer) error {
	hash, err := crm().Hash()
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(map[string]any{
		"v": 1, "rules": 1, "tools": []any{},
		"config": map[string]string{"provider": "scripted", "model": "any"},
		"spaces": []any{map[string]any{"space": "crm", "kind": "pack", "attach": []string{"operator", "model"}, "digests": []string{hash}}},
	}, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", text)
	return err
}
