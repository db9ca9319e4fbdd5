package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/bridgetest"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/devserver"
	"github.com/refold/refold/internal/llm/scripted"
)

const key = "a-key-that-nobody-sees"

// TestPack: a session whose model requests the pack, with the operator's
// approval, uses its tool in the same run. The key is in none of its events.
func TestPack(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var record bytes.Buffer
	if err := run(ctx, []string{"-record"}, &record); err != nil {
		t.Fatal(err)
	}
	model, err := scripted.Load("model.yaml")
	if err != nil {
		t.Fatal(err)
	}
	server, err := devserver.Start(ctx, devserver.Options{Dir: t.TempDir(), Install: record.Bytes(), Serve: func(b *bridge.Bridge) error {
		return b.Model("scripted", scripted.NewModel(model))
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	var said bytes.Buffer
	go func() { ended <- run(serving, []string{"-nats", server.URL(), "-key", file}, &said) }()

	c, err := client.Connect(ctx, client.Options{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	const want = "Done: customer 7 is Ada (asked with the key *****)"
	if !strings.Contains(string(readme), "    "+want) {
		t.Errorf("README.md does not say that it answers %q", want)
	}
	from, err := c.LastNotice(ctx)
	if err != nil {
		t.Fatal(err)
	}
	seq, err := c.Run(ctx, "p1", "Who is customer 7?", client.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	end, err := c.End(ctx, "p1", seq, from+1, func(n client.Notice) {
		if n.Type != "ApprovalRequested" {
			return
		}
		waiting, err := c.Approvals(ctx, "p1")
		if err != nil || len(waiting) != 1 || waiting[0].Call != "r1t1c0" {
			t.Errorf("what waits: got %+v, %v", waiting, err)
			return
		}
		if _, err := c.Approve(ctx, waiting[0], client.DecideOptions{}); err != nil {
			t.Error(err)
		}
	})
	if err != nil || end.Output == nil || end.Output.Text != want {
		t.Errorf("got %+v, %v, want %q", end, err, want)
	}
	last, err := c.LastEvent(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for seq := uint64(1); seq <= last; seq++ {
		if e, err := c.Event(ctx, seq); err != nil || bytes.Contains(e.Payload, []byte(key)) {
			t.Errorf("event %d: %v, or it holds the key", seq, err)
		}
	}
	stop()
	if err := <-ended; err != nil || said.String() != "serving [space/crm tool/crm-v1]\n" {
		t.Errorf("the program ended with %v and said %q", err, said.String())
	}
}

// TestLookup is a unit test of the tool: one call.
func TestLookup(t *testing.T) {
	t.Parallel()
	tool := crm().Tools[0]
	given := bridgetest.Secrets(map[string]string{"CRM_KEY": key})
	if r := bridgetest.Call(t, tool, lookupArguments{"7"}, given); r.Shown != "customer 7 is Ada (asked with the key *****)" {
		t.Errorf("shown %q", r.Shown)
	}
	if r := bridgetest.Call(t, tool, lookupArguments{"8"}, given); r.Shown != "error: unknown_customer: ask for customer 7" {
		t.Errorf("shown %q", r.Shown)
	}
}
