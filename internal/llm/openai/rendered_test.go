package openai

// Whole runs against a test server: the bridge keeps the rendered tools, so
// that turns with the same tools render them once.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/devserver"
	"github.com/refold/refold/internal/llm/endpoint"
)

const record = `{
  "v": 1, "rules": 1, "profiles": [],
  "tools": [
    {"tool_id": "a.look", "tool_name": "look", "description": "Looks <here>.", "args_schema": {"type": "object", "properties": {"n": {"type": "number"}}},
     "executor": {"kind": "effect", "target": "a"}, "access": "read", "retry_safe": true},
    {"tool_id": "a.stop", "tool_name": "stop", "description": "Stops.", "args_schema": {"type": "object"},
     "executor": {"kind": "effect", "target": "a"}}
  ],
  "config": {"provider": "openai", "model": "m-1", "params": {"seed": 7}}
}`

// done is a tool that does nothing.
type done struct{}

func (done) Execute(context.Context, executor.Call) (executor.Result, error) {
	return executor.Result{Output: "done"}, nil
}

func TestToolsAreRenderedOnce(t *testing.T) {
	t.Parallel()
	call := stream(
		`{"model":"m-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"look","arguments":"{}"}}]}}]}`,
		`{"model":"m-1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, "[DONE]")
	// Three runs of three turns; the last one is offered one tool only.
	s := newServer(t, call, call, text("one"), call, call, text("two"), call, call, text("three"))
	model, err := New(Config{Chat: true, Config: endpoint.Config{BaseURL: s.URL}}, slog.New(slog.DiscardHandler))
	must(t, err)
	var served *bridge.Bridge
	dev, err := devserver.Start(t.Context(), devserver.Options{Dir: t.TempDir(), Install: []byte(record), Serve: func(b *bridge.Bridge) error {
		served = b
		return errors.Join(b.Model("openai", model), b.Tool("a", done{}))
	}})
	must(t, err)
	defer dev.Stop()
	c, err := client.Connect(t.Context(), client.Options{InProcess: dev.InProcess()})
	must(t, err)
	defer c.Close()
	for _, run := range []struct {
		sid, want string
		options   client.RunOptions
	}{{sid: "s1", want: "one"}, {sid: "s2", want: "two"}, {"s3", "three", client.RunOptions{Config: json.RawMessage(`{"provider":"openai","model":"m-1","params":{"seed":7},"active_tools":["look"]}`)}}} {
		from, err := c.LastNotice(t.Context())
		must(t, err)
		seq, err := c.Run(t.Context(), run.sid, "go", run.options)
		must(t, err)
		end, err := c.End(t.Context(), run.sid, seq, from+1, nil)
		if err != nil || end.Output == nil || end.Output.Text != run.want {
			t.Fatalf("%s: got %+v, %v", run.sid, end, err)
		}
	}
	if got := served.Stats(); got.Rendered.Misses != 4 || got.Rendered.Hits != 14 || got.Descriptors.Misses != 2 || got.Descriptors.Hits != 13 {
		t.Errorf("rendered: got %+v; descriptors: got %+v", got.Rendered, got.Descriptors)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var sent []json.RawMessage
	for i, body := range s.bodies {
		var request struct {
			Tools json.RawMessage
			Seed  int
		}
		if err := json.Unmarshal(body, &request); err != nil || request.Seed != 7 {
			t.Errorf("request %d: %s (%v)", i, body, err)
		}
		sent = append(sent, request.Tools)
	}
	for i := range sent {
		if same := bytes.Equal(sent[i], sent[0]); same != (i < 6) {
			t.Errorf("request %d: tools %s", i, sent[i])
		}
	}
	const one = `[{"function":{"name":"look","description":"Looks \u003chere\u003e.","parameters":{"properties":{"n":{"type":"number"}},"type":"object"}},"type":"function"}]`
	if string(sent[8]) != one {
		t.Errorf("tools: got %s, want %s", sent[8], one)
	}
}
