// Orders is a NATS micro service that needs only one thing of Refold: a key in
// its endpoints' metadata, which makes them tools. See README.md.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "orders:", err)
		os.Exit(1)
	}
}

// The metadata of the endpoints: their arguments, and how their calls may run.
const (
	findTool = `{
		"description": "Finds an order by its number.",
		"schema": {"type": "object", "properties": {"number": {"type": "integer", "minimum": 1}}, "required": ["number"], "additionalProperties": false},
		"access": "read", "retry_safe": true, "parallel_safe": true, "deadline_ms": 10000
	}`
	placeTool = `{
		"description": "Orders an item.",
		"schema": {"type": "object", "properties": {
			"item": {"type": "string", "enum": ["tea", "coffee"]}, "pieces": {"type": "integer", "minimum": 1, "maximum": 100}
		}, "required": ["item", "pieces"], "additionalProperties": false},
		"resource_key": "orders"
	}`
)

// run serves until ctx ends.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("orders", flag.ContinueOnError)
	url := flags.String("nats", "nats://127.0.0.1:4222", "address of NATS")
	seed := flags.String("nkey", "", "file with the seed of a NATS user")
	if err := flags.Parse(args); err != nil {
		return err
	}
	options := []nats.Option{nats.Name("orders")}
	if *seed != "" {
		user, err := nats.NkeyOptionFromSeed(*seed)
		if err != nil {
			return err
		}
		options = append(options, user)
	}
	nc, err := nats.Connect(*url, options...)
	if err != nil {
		return err
	}
	defer nc.Close()
	service, err := micro.AddService(nc, micro.Config{Name: "orders", Version: "1.0.0", Description: "Orders of a shop"})
	if err != nil {
		return err
	}
	b := &book{numbers: map[string]int{}}
	for _, e := range []struct {
		name, tool string
		answer     micro.HandlerFunc
	}{{"find", findTool, b.find}, {"place", placeTool, b.place}} {
		if err := service.AddEndpoint(e.name, e.answer, micro.WithEndpointSubject("orders."+e.name),
			micro.WithEndpointMetadata(map[string]string{"refold.tool": e.tool})); err != nil {
			return err
		}
	}
	if err := nc.Flush(); err != nil {
		return err
	}
	fmt.Println("orders serves", *url)
	<-ctx.Done()
	return service.Stop()
}

// order is the arguments and results of the tools.
type order struct {
	Number int    `json:"number,omitempty"`
	Item   string `json:"item,omitempty"`
	Pieces int    `json:"pieces,omitempty"`
}

// book holds the orders. It stands for a database.
type book struct {
	mu      sync.Mutex
	orders  []order
	numbers map[string]int // by idempotency key
}

func (b *book) find(r micro.Request) {
	var asked order
	if err := json.Unmarshal(r.Data(), &asked); err != nil {
		answer(r.Error("400", err.Error(), nil))
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if asked.Number < 1 || asked.Number > len(b.orders) {
		answer(r.Error("404", fmt.Sprintf("there is no order %d", asked.Number), nil))
		return
	}
	answer(r.RespondJSON(b.orders[asked.Number-1]))
}

// place is the tool orders.place. The key makes sure that a call is one order,
// even if it is received several times.
func (b *book) place(r micro.Request) {
	var asked order
	if err := json.Unmarshal(r.Data(), &asked); err != nil {
		answer(r.Error("400", err.Error(), nil))
		return
	}
	key := r.Headers().Get("Refold-Idempotency-Key")
	b.mu.Lock()
	defer b.mu.Unlock()
	number, again := b.numbers[key]
	if !again || key == "" {
		number = len(b.orders) + 1
		asked.Number = number
		b.orders = append(b.orders, asked)
		b.numbers[key] = number
	}
	answer(r.RespondJSON(b.orders[number-1]))
}

// answer logs that an answer was not sent: the caller will time out.
func answer(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "orders: not answered:", err)
	}
}
