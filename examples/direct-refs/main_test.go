package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/internal/devserver"
	"github.com/refold/refold/internal/llm/scripted"
	"github.com/refold/refold/internal/tools/host"
)

// TestDirectRefs: the model sees the description that the run names, calls the
// tool by that name, and the tool's one binding carries it out. A descriptor
// that the registry doesn't bind is refused.
func TestDirectRefs(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	record, err := os.ReadFile("record.json")
	if err != nil {
		t.Fatal(err)
	}
	model, err := scripted.Load("model.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tools := host.New(t.TempDir(), host.Options{})
	if err := tools.Prepare(); err != nil {
		t.Fatal(err)
	}
	server, err := devserver.Start(ctx, devserver.Options{Dir: t.TempDir(), Install: record, Serve: func(b *bridge.Bridge) error {
		return errors.Join(b.Model("scripted", scripted.NewModel(model)), b.Tool("host", tools))
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	quoted := []string{
		"host.session.close as close_session: step 2: the client's request leaves it out\n", "host.session.open as start_work: offered\n",
		"I started, with the words that were made for me.\n",
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range quoted {
		if !strings.Contains(string(readme), "    "+line) {
			t.Errorf("README.md does not say that it prints %q", line)
		}
	}
	for _, c := range []struct {
		session, tool string
		want          []string
	}{
		{"s1", "start_work", append([]string{"  start_work of host.session.open\n", "  open_session of host.session.open\n"}, quoted...)},
		{"s2", "open_session", []string{"host.session.open as open_session: offered\n", "I opened a session.\n"}},
		{"s3", "close_session", []string{"I was offered nothing to begin with.\n"}},
		{"s4", "sha256-" + strings.Repeat("0", 64), []string{"rejected: unknown_tool: config.tool_refs[0]: the registry binds no descriptor sha256-0000"}},
	} {
		var out bytes.Buffer
		if err := run(ctx, []string{"-nats", server.URL(), "-session", c.session, "-record", "record.json", "-tool", c.tool}, &out); err != nil {
			t.Errorf("%s: %v", c.tool, err)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: got\n%s\nwant %q in it", c.tool, out.String(), want)
			}
		}
	}
}
