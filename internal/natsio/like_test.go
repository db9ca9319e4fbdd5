package natsio_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/natsio"
)

// A connection like another one has its address and credentials, and leaves it and its
// callbacks alone.
func TestConnectionLikeAnother(t *testing.T) {
	t.Parallel()
	node := bustest.Configured(t, `
		jetstream { store_dir: "DIR" }
		authorization { user: u, password: secret }`)
	called := make(chan string, 8)
	tell := func(what string) nats.ConnHandler { return func(*nats.Conn) { called <- what } }
	nc, err := nats.Connect(strings.Replace(node.URL(), "nats://", "nats://u:secret@", 1), nats.Name("the program"),
		nats.ClosedHandler(tell("closed")), nats.ReconnectHandler(tell("reconnected")), nats.ConnectHandler(tell("connected")),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { called <- "disconnected" }))
	bustest.OK(t, err)
	defer nc.Close()
	if got := <-called; got != "connected" {
		t.Fatalf("got %s", got)
	}
	b, err := bus.Connect(testbus.Context(t), natsio.Options{Like: nc, URL: "nats://host.invalid:1", Name: "ours"})
	bustest.OK(t, err)
	if got := b.NC.Opts.Name; got != "ours" {
		t.Errorf("the connection has the name %q, want ours", got)
	}
	b.Close()
	if !nc.IsConnected() || nc.Opts.Name != "the program" {
		t.Errorf("the program's connection: %v, %q", nc.Status(), nc.Opts.Name)
	}
	select {
	case got := <-called:
		t.Errorf("the program was told %s of a connection that is not its own", got)
	default:
	}
}

func TestConnectionLikeAnotherInProcess(t *testing.T) {
	t.Parallel()
	node := bustest.Configured(t, `jetstream { store_dir: "DIR" }`)
	nc, err := nats.Connect("", nats.InProcessServer(node))
	bustest.OK(t, err)
	defer nc.Close()
	b, err := bus.Connect(testbus.Context(t), natsio.Options{Like: nc})
	bustest.OK(t, err)
	b.Close()
}
