package bridge_test

// Large arguments in whole runs: a call refused for its size has a result, and
// the run goes on.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/devserver"
)

// writer is a model that calls a tool with arguments of these sizes, and then
// repeats what it was shown of them.
type writer []int

// Generate implements executor.Model.
func (w writer) Generate(_ context.Context, r executor.Request, _ func(string)) (executor.Answer, error) {
	var a executor.Answer
	if len(r.Messages) == 1 {
		for _, n := range w {
			a.Calls = append(a.Calls, executor.AnswerCall{Name: "note", Arguments: `{"t":"` + strings.Repeat("x", n-len(`{"t":""}`)) + `"}`})
		}
		return a, nil
	}
	said := r.Messages[1]
	for i, m := range r.Messages[2:] {
		text, _, _ := strings.Cut(m.Text, ": too large") // the detail of a refusal is the session's
		a.Text += fmt.Sprintf("%d → %s\n", max(len(said.Calls[i].Arguments), int(said.Calls[i].Omitted)), text)
	}
	return a, nil
}

// notes is a tool that returns the size of its arguments.
type notes struct{}

// Execute takes a note.
func (notes) Execute(_ context.Context, call executor.Call) (executor.Result, error) {
	return executor.Result{Output: fmt.Sprint("noted ", len(call.Arguments))}, nil
}

const notebook = `{
  "v": 1, "rules": 1, "profiles": [],
  "tools": [{"tool_id": "notes.add", "tool_name": "note", "description": "Takes a note.", "args_schema": {"type": "object"},
    "executor": {"kind": "effect", "target": "notes"}, "access": "read", "parallel_safe": true, "retry_safe": true}],
  "config": {"provider": "writer", "model": "any"}
}`

func TestLargeArgumentsInRuns(t *testing.T) {
	t.Parallel()
	const kib = 1 << 10
	for _, c := range []struct {
		name  string
		sizes writer
		want  string
	}{
		{"200 KiB", writer{200 * kib}, "204800 → noted 204800\n"},
		{"1 MiB", writer{1024 * kib}, "1048576 → error: invalid_arguments\n"},
		{"1 MiB beside little", writer{10, 1024 * kib}, "10 → noted 10\n1048576 → error: invalid_arguments\n"},
		{"800 KiB in all", writer{200 * kib, 200 * kib, 200*kib + 1, 200 * kib}, "204800 → noted 204800\n204800 → noted 204800\n204801 → error: invalid_arguments\n204800 → noted 204800\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			end := endOf(t, notebook, func(b *bridge.Bridge) error {
				return errors.Join(b.Tool("notes", notes{}), b.Model("writer", c.sizes))
			}, nil)
			if end.Lifecycle != "completed" || end.Output == nil || end.Output.Text != c.want {
				t.Errorf("got %+v with output %+v, want %q", end, end.Output, c.want)
			}
		})
	}
}

// endOf requests a run of a server with this install record and these targets, and
// returns its end. seen, if not nil, is called with each notice of the run.
func endOf(t *testing.T, record string, serve func(*bridge.Bridge) error, seen func(*client.Client, client.Notice)) client.RunEnd {
	t.Helper()
	server, err := devserver.Start(t.Context(), devserver.Options{Dir: t.TempDir(), Install: []byte(record), Serve: serve})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	c, err := client.Connect(t.Context(), client.Options{InProcess: server.InProcess()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	from, err := c.LastNotice(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seq, err := c.Run(t.Context(), "s1", "Take notes.", client.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	end, err := c.End(t.Context(), "s1", seq, from+1, func(n client.Notice) {
		if seen != nil {
			seen(c, n)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return end
}
