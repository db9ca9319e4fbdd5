package client_test

// What the examples begin with: a whole system in this process. It is not in their
// files, since a user of the package can't import it; `refold dev` is the same.

import (
	"context"
	"os"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/devserver"
	"github.com/refold/refold/internal/llm/scripted"
)

// startRefold runs a whole system in this process, with a model that repeats its
// input.
func startRefold(ctx context.Context) (url string, stop func()) {
	dir, err := os.MkdirTemp("", "refold-example-")
	if err != nil {
		panic(err)
	}
	server, err := devserver.Start(ctx, devserver.Options{
		Dir:     dir,
		Install: []byte(`{"v":1,"rules":1,"tools":[],"config":{"provider":"scripted","model":"echo"}}`),
		Serve:   func(b *bridge.Bridge) error { return b.Model("scripted", scripted.NewModel(scripted.Echo())) },
	})
	if err != nil {
		panic(err)
	}
	return server.URL(), func() {
		server.Stop()
		if err := os.RemoveAll(dir); err != nil {
			panic(err)
		}
	}
}

// startWithoutModel runs a server and a session-actor in this process: the
// example itself publishes the model's answers.
func startWithoutModel(ctx context.Context, install string) (c *client.Client, stop func()) {
	return startServing(ctx, install, nil)
}

// startServing starts a server with a bridge, to which serve adds targets; nil:
// no bridge runs.
func startServing(ctx context.Context, install string, serve func(*bridge.Bridge) error) (c *client.Client, stop func()) {
	dir, err := os.MkdirTemp("", "refold-example-")
	if err != nil {
		panic(err)
	}
	server, err := devserver.Start(ctx, devserver.Options{Dir: dir, Install: []byte(install), Serve: serve})
	if err != nil {
		panic(err)
	}
	if c, err = client.Connect(ctx, client.Options{InProcess: server.InProcess()}); err != nil {
		panic(err)
	}
	return c, func() {
		c.Close()
		server.Stop()
		if err := os.RemoveAll(dir); err != nil {
			panic(err)
		}
	}
}
