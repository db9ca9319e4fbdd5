package cli

// refold tools import mcp: the output can be published, and the lock that
// bridges compare tools with is written next to the file.

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/internal/tools/mcp"
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
	bustest.OK(t, os.WriteFile(file, fmt.Appendf(nil, "servers:\n  notes:\n    url: %s\n", server.URL), 0o600))
	return file
}

func TestImportMCP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var schema atomic.Value
	schema.Store(`{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"text": {"type": "string"}, "n": {"maximum": 9007199254740993}}}`)
	file := mcpServer(t, &schema)
	w.does(statusUsage, "tools", "import", "mcp", file, "--registry", "--base", "-")
	record, errOut := w.does(0, "tools", "import", "mcp", file)
	like(t, "said", errOut, `^mcp.notes.find: tool find of server notes, called notes_find\nrefold: models are shown some schemas of these 1 tools in another form, and calls are checked against the original: gemini 1, openai-chat 1\n$`)
	like(t, "record", record, `(?s)"access": "read".*"maximum": 9007199254740993.*"target": "mcp".*"parallel_safe": true.*"retry_safe": true.*"tool_id": "mcp.notes.find".*"tool_name": "notes_find"`)
	out, _ := w.end(w.begin(record, "install", "-"), 0)
	like(t, "installed", out, `^published at 2: hash [0-9a-f]{64}, 1 tools`)
	lock, err := os.ReadFile(file + ".lock")
	bustest.OK(t, err)
	like(t, "lock", string(lock), `(?s)"mcp.notes.find": \{\s*"tool": "find",\s*"schema": "sha256-[0-9a-f]{64}",\s*"hints": \[\s*"read_only"\s*\]`)

	out, _ = w.does(0, "bridge", "doctor", "--within", "1ms", "--mcp", file)
	like(t, "as it was", out, `\nmcp: 1 imported tools are unchanged\n$`)
	doctorJSON := []string{"bridge", "doctor", "--within", "1ms", "--json", "--mcp", file}
	out, _ = w.does(0, doctorJSON...)
	like(t, "as it was, as JSON", out, `^\{"mcp":"`+file+`","unchanged":1\}\n$`)

	schema.Store(`{"type": "object", "properties": {"text": {"type": "string", "pattern": "(?=a)"}}}`)
	_, errOut = w.does(statusFailed, "tools", "import", "mcp", file)
	like(t, "left out", errOut, `^refold: left out: server notes, tool find: .*RE2`)
	schema.Store(`{"type": "object"}`)
	out, _ = w.does(statusFailed, "bridge", "doctor", "--within", "1ms", "--mcp", file)
	like(t, "doctor", out, `\nmcp: server notes, tool find \(mcp.notes.find\): schema \(schema pinned sha256-[0-9a-f]{64}, found sha256-[0-9a-f]{64}\)\n`+
		`mcp: calls of changed tools are refused: review them, then refold tools import mcp .* \| refold install -, and start the bridges again\nmcp: 0 imported tools are unchanged\n$`)
	out, _ = w.does(statusFailed, doctorJSON...)
	like(t, "doctor, as JSON", out, `^\{"mcp":"`+file+`","server":"notes","tool":"find","tool_id":"mcp\.notes\.find","what":"schema .*"\}\n\{"mcp":"`+file+`","unchanged":0\}\n$`)
	out, errOut = w.does(0, "tools", "import", "mcp", file, "--registry", "--target", "box")
	like(t, "changed", errOut, `refold: mcp.notes.find has changed since it was imported: schema\nrefold: models are shown .*: gemini 1, openai 1, openai-chat 1\n$`)
	like(t, "registry", out, `^\{"tools":\[\{.*"target":"box".*\}\]\}\n$`)
}

// TestDoctorMCP: a server that does not answer is reported without a long wait,
// and so are the findings of bridges.
func TestDoctorMCP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hold := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(hold); server.Close() })
	file := filepath.Join(t.TempDir(), "servers.yaml")
	_, errOut := w.does(statusFailed, "bridge", "doctor", "--within", "1ms", "--mcp", writeServers(t, file, server.URL))
	like(t, "not imported", errOut, `^refold: .*servers.yaml.lock is not there`)
	lock := mcp.Lock{"mcp.mute.find": {Tool: "find", Hints: []string{}}, "mcp.old.find": {Tool: "find", Hints: []string{}}}
	bustest.OK(t, mcp.WriteLock(file, lock))
	stop, err := w.bus.Register(w.ctx, presence.Service{Kind: "bridge", Version: "1.0.0", Metadata: map[string]string{"name": "b1", "targets": "tool/mcp"}, Stats: func() any {
		return bridge.Stats{Targets: map[string]bridge.TargetStats{"tool/mcp": {Troubles: []string{"server mute is not there: refused"}}}}
	}}, presence.Endpoint{Name: "stats", Subject: "refold.test.stats", Answer: func(string, []byte) ([]byte, error) { return nil, nil }})
	bustest.OK(t, err)
	out, _ := w.does(statusFailed, "bridge", "doctor", "--within", "1ms", "--mcp", file, "--mcp-within", "50ms")
	like(t, "doctor", out, `\ntrouble: tool/mcp \(b1\): server mute is not there: refused\n(?s).*\nmcp: mcp.old.find: its server is not in the file any more\n`+
		`mcp: server gone: it is not reached, so its imported tools \(0\) can't be compared: .*\nmcp: server mute: it is not reached, so its imported tools \(1\) can't be compared: .*deadline.*`+
		`\nmcp: 0 imported tools are unchanged\n$`)
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// writeServers writes a config of a server that does not answer, and of a program
// that there is not.
func writeServers(t *testing.T, file, url string) string {
	t.Helper()
	text := fmt.Appendf(nil, "servers:\n  mute:\n    url: %s\n  gone:\n    command: %s\n", url, filepath.Join(t.TempDir(), "none"))
	bustest.OK(t, os.WriteFile(file, text, 0o600))
	return file
}
