package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/devserver"
	"github.com/refold/refold/internal/llm/scripted"
)

// TestViewer: the program shows the output in README.md, live and from the log.
func TestViewer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	model, err := scripted.Load("model.yaml")
	if err != nil {
		t.Fatal(err)
	}
	server, err := devserver.Start(ctx, devserver.Options{
		Dir: t.TempDir(), Install: []byte(`{"v":1,"rules":1,"tools":[],"config":{"provider":"scripted","model":"any"}}`),
		Serve: func(b *bridge.Bridge) error { return b.Model("scripted", scripted.NewModel(model)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, said, _ := strings.Cut(string(readme), "The viewer shows\n\n")
	said, _, _ = strings.Cut(said, "\n\n")
	want := strings.ReplaceAll("\n"+said, "\n    ", "\n")[1:] + "\n"

	c, err := client.Connect(ctx, client.Options{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	seq, err := c.Run(ctx, "chat", "What is a fold?", client.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // while it goes on, or when it is over
		var out bytes.Buffer
		if err := run(ctx, []string{"-nats", server.URL(), "-from", "1", "-runs", "1", "chat"}, &out); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != want {
			t.Errorf("it shows %q, README.md says %q", got, want)
		}
		if _, err := c.End(ctx, "chat", seq, 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	stopped, stop := context.WithCancel(ctx)
	stop()
	if err := run(stopped, []string{"-nats", server.URL(), "chat"}, new(bytes.Buffer)); err == nil {
		t.Error("it connects though it is to stop")
	}
	if err := run(ctx, nil, new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "name one session") {
		t.Errorf("without a session: %v", err)
	}
}
