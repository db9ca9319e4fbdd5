package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/devserver"
	"github.com/refold/refold/internal/llm/scripted"
)

// start runs Refold with the example's record and model.
func start(t *testing.T) (ctx context.Context, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	record, err := os.ReadFile("record.json")
	if err != nil {
		t.Fatal(err)
	}
	model, err := scripted.Load("model.yaml")
	if err != nil {
		t.Fatal(err)
	}
	server, err := devserver.Start(ctx, devserver.Options{Dir: t.TempDir(), Install: record, Serve: func(b *bridge.Bridge) error {
		return b.Model("scripted", scripted.NewModel(model))
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return ctx, server.URL()
}

// TestHostLoop: the calls run in the order of the plan, are settled one by one
// or as a whole, and the model sees this program's results.
func TestHostLoop(t *testing.T) {
	t.Parallel()
	const want = `r1t1c0 read_text {"name":"notes.txt"}
r1t1c1 read_text {"name":"todo.txt"}
r1t1c2 write_text {"name":"notes.txt","text":"Nothing left.\n"}
r1t2c0 write_text {"name":"todo.txt","text":"- water the plants\n- ask Ann about Tuesday\n"}
r1t2c1 read_text {"name":"nosuch.txt"}
Done: your list has two entries now.
`
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(want) {
		if !strings.Contains(string(readme), "    "+line) {
			t.Errorf("README.md does not say that it prints %q", line)
		}
	}
	for name, args := range map[string][]string{"one by one": nil, "as a whole": {"-whole"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, url := start(t)
			var out bytes.Buffer
			if err := run(ctx, append(args, "-nats", url), &out); err != nil {
				t.Fatal(err)
			}
			if out.String() != want {
				t.Errorf("got\n%s\nwant\n%s", out.String(), want)
			}
			said := notices(ctx, t, url)
			// A whole batch leaves nothing to be said of its second group.
			planned := map[string]int{"one by one": 3, "as a whole": 2}[name]
			if said[session.NoticeCallsPlanned] != planned || said[session.NoticeEventRejected] != 0 {
				t.Errorf("notices: got %v, want %d of CallsPlanned and no EventRejected", said, planned)
			}
		})
	}
}

// TestStoppedHostLoop: a program that ends in the middle can be started again,
// and finds the open calls in the view.
func TestStoppedHostLoop(t *testing.T) {
	t.Parallel()
	ctx, url := start(t)
	c, err := client.Connect(ctx, client.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	loop := hostLoop{client: c, sid: "editor", out: &bytes.Buffer{}, settled: map[string]bool{}, texts: map[string]string{"notes.txt": "Ask Ann", "todo.txt": "water the plants"}}
	if err := loop.publish(ctx, session.DoorCtl, session.TypeToolRegistrySet, json.RawMessage(registry)); err != nil {
		t.Fatal(err)
	}
	from, err := c.LastNotice(ctx)
	if err != nil {
		t.Fatal(err)
	}
	seq, err := c.Run(ctx, "editor", "Tidy up my notes.", client.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// It saw that there is something to do, and stopped. Each further program
	// does one round by what it finds.
	rounds := 0
	end, err := c.End(ctx, "editor", seq, from+1, func(n client.Notice) {
		if n.Type != session.NoticeCallsPlanned {
			return
		}
		rounds++
		again := hostLoop{client: c, sid: "editor", out: &bytes.Buffer{}, settled: map[string]bool{}, texts: loop.texts}
		if err := again.turn(ctx); err != nil {
			t.Error(err)
		}
		if err := again.turn(ctx); err != nil { // looking twice does nothing twice
			t.Error(err)
		}
	})
	if err != nil || end.Output == nil || !strings.HasPrefix(end.Output.Text, "Done") || rounds != 3 {
		t.Errorf("got %+v, %v after %d rounds, want the answer after 3", end, err, rounds)
	}
}

// notices counts what was said of the session until its run ended.
func notices(ctx context.Context, t *testing.T, url string) map[string]int {
	t.Helper()
	c, err := client.Connect(ctx, client.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	said := map[string]int{}
	for n, err := range c.Notices(ctx, "editor", 1) {
		if err != nil {
			t.Fatal(err)
		}
		said[n.Type]++
		if n.Type == session.NoticeRunFinished {
			break
		}
	}
	return said
}
