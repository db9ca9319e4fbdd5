// Chat-agui is a page with HttpAgent of AG-UI on a durable agent. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/refold/refold"
	"github.com/refold/refold/embedded"
	"github.com/refold/refold/web"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "chat-agui:", err)
		os.Exit(1)
	}
}

// run serves the page until ctx ends.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("chat-agui", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:8080", "address of the page: on loopback, since it asks for no password")
	dir := flags.String("dir", "data", "directory of the log")
	if err := flags.Parse(args); err != nil {
		return err
	}
	rt, err := refold.Open(ctx, embedded.Dir(*dir))
	if err != nil {
		return err
	}
	defer rt.Close()
	// With a key: openai.Model("gpt-4.1"), of package provider/openai.
	pages, err := handler(rt, demo(40*time.Millisecond))
	if err != nil {
		return err
	}
	at, err := new(net.ListenConfig).Listen(ctx, "tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Open http://%s in a browser.\n", at.Addr())
	server := &http.Server{Handler: pages, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // pages repeat their requests
	defer stop()
	if err := server.Serve(at); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// handler serves the agent helper and its page, which npm run build makes.
func handler(rt *refold.Runtime, model refold.ModelRef) (http.Handler, error) {
	_, err := rt.Agent("helper", refold.Model(model), refold.System("You are a travel desk in Bergen."), refold.Tools(
		refold.Func("weather.get", weather, refold.Description("The weather in a city today."), refold.ReadOnly()),
		refold.Func("tickets.book", book, refold.Description("Books tickets."), refold.NeedsApproval()),
	))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/v1/", web.Handler(rt, web.Options{Auth: you}))
	mux.Handle("/", http.FileServer(http.Dir("dist")))
	return mux, nil
}

// you is whoever reaches this machine's loopback.
func you(*http.Request) (*web.Caller, error) {
	return &web.Caller{Subject: "you", Rights: []web.Right{web.RightRead, web.RightAsk, web.RightApprove}}, nil
}

type city struct {
	City string `json:"city"`
}

func weather(_ context.Context, in city) (string, error) {
	return in.City + ": rain until noon, then clear, 11 °C", nil
}

type order struct {
	What    string `json:"what"`
	Tickets int    `json:"tickets"`
	When    string `json:"when"`
}

func book(_ context.Context, in order) (string, error) {
	return fmt.Sprintf("Booked: %d × %s, %s. Number 4711.", in.Tickets, in.What, in.When), nil
}
