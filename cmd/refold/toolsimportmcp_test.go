package main

// refold tools import mcp: what is printed can be published, and what a bridge
// holds tools against is written beside the file.

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// mcpServer is an MCP server with one tool, and as much of the protocol as that
// takes. It returns a config file that names it.
func mcpServer(t *testing.T, schema *atomic.Value) (file string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if json.NewDecoder(r.Body).Decode(&asked) != nil || asked.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		answer := `"error": {"code": -32601, "message": "no such method"}`
		switch asked.Method {
		case "initialize":
			answer = `"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "notes", "version": "1"}}`
		case "tools/list":
			answer = fmt.Sprintf(`"result": {"tools": [{"name": "find", "description": "Finds a note.", "inputSchema": %s, "annotations": {"readOnlyHint": true}}]}`, schema.Load())
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc": "2.0", "id": %s, %s}`, asked.ID, answer)
	}))
	t.Cleanup(server.Close)
	file = filepath.Join(t.TempDir(), "servers.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "servers:\n  notes:\n    url: %s\n", server.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestImportMCP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var schema atomic.Value
	schema.Store(`{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"text": {"type": "string"}}}`)
	file := mcpServer(t, &schema)
	w.does(statusUsage, "tools", "import", "mcp", file, "--registry", "--base", "-")
	record, errOut := w.does(0, "tools", "import", "mcp", file)
	like(t, "said", errOut, `^mcp.notes.find: tool find of server notes, called notes_find\n$`)
	like(t, "record", record, `(?s)"access": "read".*"target": "mcp".*"parallel_safe": true.*"retry_safe": true.*"tool_id": "mcp.notes.find".*"tool_name": "notes_find"`)
	out, _ := w.end(w.begin(record, "install", "-"), 0)
	like(t, "installed", out, `^published at 2: hash [0-9a-f]{64}, 1 tools`)
	lock, err := os.ReadFile(file + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	like(t, "lock", string(lock), `(?s)"mcp.notes.find": \{\s*"tool": "find",\s*"schema": "sha256-[0-9a-f]{64}",\s*"hints": \[\s*"read_only"\s*\]`)

	schema.Store(`{"type": "object", "properties": {"text": {"type": "string", "pattern": "(?=a)"}}}`)
	_, errOut = w.does(statusFailed, "tools", "import", "mcp", file)
	like(t, "left out", errOut, `^refold: left out: server notes, tool find: .*RE2`)
	schema.Store(`{"type": "object"}`)
	out, errOut = w.does(0, "tools", "import", "mcp", file, "--registry", "--target", "box")
	like(t, "changed", errOut, `refold: mcp.notes.find has changed since it was imported: schema\n$`)
	like(t, "registry", out, `^\{"tools":\[\{.*"target":"box".*\}\]\}\n$`)
}
