// Chat-web serves a page with useChat of the AI SDK, on an agent that is durable: its log
// is in the folder data.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// With a key: openai.Model("gpt-4.1"), of package provider/openai.
	err := run(ctx, "127.0.0.1:8080", embedded.Dir("data"), desk())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves the page until ctx ends.
func run(ctx context.Context, address string, at refold.Source, model refold.ModelRef) error {
	rt, err := refold.Open(ctx, at)
	if err != nil {
		return err
	}
	handler, err := serve(rt, model, "dist")
	if err != nil {
		return errors.Join(err, rt.Close())
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return errors.Join(err, rt.Close())
	}
	fmt.Printf("Open http://%s\n", listener.Addr())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Close() // pages connect again
	}()
	err = server.Serve(listener)
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, rt.Close())
}

// serve returns the handler of the API and of the page in a folder.
func serve(rt *refold.Runtime, model refold.ModelRef, page string) (http.Handler, error) {
	_, err := rt.Agent("desk",
		refold.System("You plan and book trips in Norway."),
		refold.Model(model),
		refold.Tools(
			refold.Func("weather.get", weather, refold.Description("The weather in a city."), refold.RetrySafe()),
			refold.Func("train.book", book, refold.Description("Books a train."), refold.NeedsApproval()),
		))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/v1/", web.Handler(rt, web.Options{Auth: anyone}))
	mux.Handle("/", http.FileServer(http.Dir(page)))
	return mux, nil
}

// anyone lets everybody on this machine in. A server for others looks at web.Bearer(r).
func anyone(*http.Request) (*web.Caller, error) {
	return &web.Caller{Subject: "you", Rights: web.Rights}, nil
}

type place struct {
	City string `json:"city"`
}

type forecast struct {
	Sky  string `json:"sky"`
	High string `json:"high"`
	Wind string `json:"wind"`
}

func weather(_ context.Context, in place) (forecast, error) {
	return cmp.Or(map[string]forecast{
		"Bergen": {"Rain, clearing late", "11 °C", "Fresh, from the west"},
		"Tromsø": {"Clear", "-3 °C", "Calm"},
	}[in.City], forecast{"Cloudy", "8 °C", "Light"}), nil
}

type trip struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Leave string `json:"leaves"`
	Price string `json:"price"`
}

type ticket struct {
	Reference string `json:"reference"`
	Seat      string `json:"seat"`
}

func book(_ context.Context, _ trip) (ticket, error) {
	return ticket{Reference: "NO-4711", Seat: "Coach 3, 21 A"}, nil
}
