package mcp

// A server whose entries and answers no library can decode, as public reports
// describe them: one of them costs one tool, or one call.

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/bridge/function"
)

// oddTools is what the server lists. Each tool answers with oddAnswers.
const oddTools = `[
	{"name": "null_properties", "inputSchema": {"type": "object", "properties": null, "required": null}},
	{"name": 5, "inputSchema": {"type": "object"}},
	{"inputSchema": {"type": "object"}},
	null,
	{"name": "bad_entry", "inputSchema": {"type": "object"}, "annotations": "none"},
	{"name": "bad_schema", "inputSchema": {"type": "object", "properties": {"a": {"type": "unknown"}}}},
	{"name": "no_schema"},
	{"name": "wait", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
	{"name": "hologram", "inputSchema": {"type": "object"}}, {"name": "id_text", "inputSchema": {"type": "object"}},
	{"name": "no_version", "inputSchema": {"type": "object"}}, {"name": "text_content", "inputSchema": {"type": "object"}},
	{"name": "text_result", "inputSchema": {"type": "object"}}, {"name": "null_content", "inputSchema": {"type": "object"}},
	{"name": "bad_image", "inputSchema": {"type": "object"}}, {"name": "error_text", "inputSchema": {"type": "object"}},
	{"name": "old_result", "inputSchema": {"type": "object"}}, {"name": "stray", "inputSchema": {"type": "object"}},
	{"name": "batch", "inputSchema": {"type": "object"}}, {"name": "odd_batch", "inputSchema": {"type": "object"}}]`

// oddAnswers are messages, by tool, with the request's id for ID.
var oddAnswers = map[string]string{
	// https://github.com/modelcontextprotocol/python-sdk/issues/1111 and others: content of a type that came later
	"hologram":     `{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": "seen"}, {"type": "hologram", "depth": 3}]}}`,
	"id_text":      `{"jsonrpc": "2.0", "id": "ID", "result": {"content": [{"type": "text", "text": "seen"}]}}`,
	"no_version":   `{"id": ID, "result": {"content": [{"type": "text", "text": "seen"}]}}`,
	"text_content": `{"jsonrpc": "2.0", "id": ID, "result": {"content": "seen"}}`,
	"text_result":  `{"jsonrpc": "2.0", "id": ID, "result": "seen"}`,
	"null_content": `{"jsonrpc": "2.0", "id": ID, "result": {"content": null, "structuredContent": {"seen": 1}}}`,
	"bad_image":    `{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "image", "mimeType": "image/png", "data": "no base64!"}, {"type": "text", "text": "seen"}]}}`,
	"error_text":   `{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": "seen"}], "isError": "true"}}`,
	"old_result":   `{"jsonrpc": "2.0", "id": ID, "result": {"toolResult": {"seen": 1}}}`,
	// https://modelcontextprotocol.io/specification/2025-03-26/basic: messages may come in a batch
	"batch": `[{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}, {"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": "seen"}]}}]`,
	"odd_batch": `[]
[5, null, [], {"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "Parse error"}}, {"jsonrpc": "2.0", "id": "ID", "result": {"content": "seen"}}]`,
	"stray": `{"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "Parse error"}}
{"jsonrpc": "2.0", "id": {"a": 1}, "result": {}}
{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": "seen"}]}}`,
}

// serveOdd is the server. It answers wait after another call.
func serveOdd(in io.Reader, out io.Writer) error {
	fmt.Fprint(out, "\ufeff") // as some programs on Windows begin
	waiting, others := "", 0
	release := func() {
		if waiting != "" && others > 0 {
			fmt.Fprintf(out, `{"jsonrpc": "2.0", "id": %s, "result": {"content": [{"type": "text", "text": "waited"}]}}`+"\n", waiting)
			waiting, others = "", others-1
		}
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var r struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Name string `json:"name"`
			} `json:"params"`
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return err
		}
		switch {
		case r.ID == nil:
		case r.Method == "initialize":
			fmt.Fprintf(out, `{"jsonrpc": "2.0", "id": %s, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "odd", "version": "1"}}}`+"\n", r.ID)
		case r.Method == "tools/list":
			fmt.Fprintf(out, `{"jsonrpc": "2.0", "id": %s, "result": {"tools": %s}}`+"\n", r.ID, strings.ReplaceAll(oddTools, "\n", ""))
		case r.Params.Name == "wait":
			waiting = string(r.ID)
			release()
		default:
			answer, ok := oddAnswers[r.Params.Name]
			if !ok {
				answer = `{"jsonrpc": "2.0", "id": ID, "error": {"code": -32601, "message": "no such method"}}`
			}
			fmt.Fprintln(out, strings.ReplaceAll(answer, "ID", string(r.ID)))
			if r.Method == "tools/call" {
				others++
			}
			release()
		}
	}
	return nil
}

// TestFaultyEntriesCostThemselves: the others are imported, and each fault is
// reported with the name of its tool, or its place.
func TestFaultyEntriesCostThemselves(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeOdd)
	all := w.imports()
	var names, problems []string
	for _, tool := range all.Tools {
		names = append(names, tool.Name)
	}
	for _, p := range all.Problems {
		problems = append(problems, p.Error())
	}
	for name := range oddAnswers {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not imported", name)
		}
	}
	if !slices.Contains(names, "null_properties") || !slices.Contains(names, "wait") {
		t.Errorf("imported are %v", names)
	}
	for _, want := range []string{"tool 2 of its list: it has no name", "tool 3 of its list: it has no name", "tool 4 of its list: it has no name", "tool bad_entry: its entry in the list can't be read", "tool bad_schema: ", "tool no_schema: "} {
		if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, want) }) {
			t.Errorf("no problem says %q: %q", want, problems)
		}
	}
}

// TestOddResultHurtsOneCall: the model gets what could be read, another call in
// progress ends as if nothing had happened, and the program is not stopped.
func TestOddResultHurtsOneCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeOdd)
	w.imports()
	for name := range oddAnswers {
		other := make(chan string, 1)
		go func() { r := w.call(t.Context(), "wait", `{}`, true); other <- r.Status + " " + r.Shown }()
		w.until("the other call waits", func() bool { return w.inProgress() == 1 })
		status, code := "succeeded", ""
		if name == "error_text" {
			status, code = "failed", CodeToolError
		}
		r := w.call(t.Context(), name, `{}`, false)
		if w.want(r, status, code, "seen"); name == "hologram" && !strings.Contains(r.Shown, "hologram") {
			t.Errorf("%s: the part that can't be read is not told: %s", name, r.Shown)
		}
		if got := <-other; got != "succeeded waited" {
			t.Errorf("%s: the other call: %s", name, got)
		}
	}
	if ended := w.logged("mcp_server_ended"); ended() {
		t.Error("the program has ended")
	}
}

// TestSilentServerIsReported: which request is not answered, after two seconds.
func TestSilentServerIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modeMute)
	silent := make(chan string, 1)
	servers, err := New(w.config, nil, Options{Env: w.env, Silent: func(server, request string) { silent <- server + " " + request }})
	must(t, err)
	defer servers.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := time.Now()
	ended := make(chan error, 1)
	go func() { _, err := servers.Import(ctx); ended <- err }()
	select {
	case got := <-silent:
		if after := time.Since(began); got != "peer initialize" || after < silenceTold {
			t.Errorf("after %v: got %q", after, got)
		}
	case err := <-ended:
		t.Fatalf("it ended: %v", err)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("the import of a silent server succeeds")
	}
}

// TestOneNameForModels: two servers' tools that models would see under one name.
func TestOneNameForModels(t *testing.T) {
	t.Parallel()
	all := &Imported{Lock: Lock{}}
	for _, of := range []struct{ server, tool string }{{"peer", "odd_name"}, {"peer_odd", "name"}, {"peer_odd", "other"}} {
		id := toolID(of.server, of.tool)
		f := function.New(id, func(context.Context, struct{}) (string, error) { return "", nil }, function.ToolName(toolName(of.server, of.tool)))
		all.Tools, all.Lock[id] = append(all.Tools, &Tool{Function: f, Server: of.server, Name: of.tool}), Pin{Tool: of.tool}
	}
	all.separate()
	if len(all.Tools) != 2 || len(all.Lock) != 2 || len(all.Problems) != 1 || !strings.Contains(all.Problems[0].Error(), "models would see it as peer_odd_name, as tool odd_name of server peer") {
		t.Errorf("got %d tools, %v, %v", len(all.Tools), all.Lock, all.Problems)
	}
}

// inProgress returns how many calls the server's session has.
func (w *world) inProgress() int {
	s := w.servers.servers["peer"]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == nil {
		return 0
	}
	s.session.mu.Lock()
	defer s.session.mu.Unlock()
	return len(s.session.calls)
}
