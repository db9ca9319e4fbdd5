//go:build peers

package e2e_test

// Tools of foreign MCP servers from npm: see make check-peers. A session calls
// them through a bridge, as a user sets it up.

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
)

// mcpPeer returns the program of a server that npm has installed.
func mcpPeer(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("peers-mcp", "node_modules", "@modelcontextprotocol", "server-"+name, "dist", "index.js"))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%v: make check-peers installs it", err)
	}
	return path
}

// playMCP lets a session play a script with the tools of a file of servers, and
// returns the bridge that serves them.
func playMCP(t *testing.T, servers, script, answer string, calls ...string) (s *system, d *daemon) {
	t.Helper()
	s = startSystem(t, object{"v": 1, "rules": 1, "tools": list{}, "config": object{"provider": "scripted", "model": "any"}})
	s.models(script, "scripted")
	file := filepath.Join(t.TempDir(), "servers.yaml")
	if err := os.WriteFile(file, []byte(servers), 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, time.Minute, "the install record is stored", func() bool {
		m, err := s.nc.Request("$JS.API.DIRECT.GET.REFOLD_LOG", []byte(`{"last_by_subj":"refold.install"}`), time.Second)
		return err == nil && m.Header.Get("Status") == ""
	})
	record, said, status := run(t, 2*time.Minute, nil, "refold", "--nats", s.url, "tools", "import", "mcp", file)
	if status != 0 {
		t.Fatalf("import: %s", said)
	}
	if out, errOut, status := run(t, time.Minute, []byte(record), "refold", "--nats", s.url, "install", "-"); status != 0 {
		t.Fatalf("install: %s%s", out, errOut)
	}
	d = startDaemon(t, "bridge", "--nats", s.url, "--tools", "mcp:"+file)
	s.playsMCP("s1", answer, calls...)
	return s, d
}

// playsMCP plays the script in one session.
func (s *system) playsMCP(sid, answer string, calls ...string) {
	s.t.Helper()
	out, errOut, status := run(s.t, 2*time.Minute, nil, "refold", "--nats", s.url, "run", sid, "Do as your script says.")
	if status != 0 || !strings.Contains(out, answer) {
		s.t.Errorf("the run prints %q and %q, status %d; want %q", out, errOut, status, answer)
	}
	s.wantCalls(sid, calls...)
}

const everythingScript = `
turns:
  - calls:
      - {tool: everything_echo, arguments: {message: hello}}
      - {tool: everything_get-sum, arguments: {a: 2, b: 40}}
      - {tool: everything_get-tiny-image}
      - {tool: everything_get-structured-content, arguments: {location: Chicago}}
      - {tool: everything_get-resource-reference, arguments: {resourceType: Blob, resourceId: 1}}
      - {tool: everything_get-env}
      - {tool: everything_get-sum, arguments: {a: two, b: 40}}
  - shown:
      results:
        - {tool: everything_echo, error: false, text: "Echo: hello"}
        - {tool: everything_get-sum, error: false, text: "42"}
        - {tool: everything_get-tiny-image, error: false, matches: 'image/png, \d+ bytes, sha256-'}
        - {tool: everything_get-structured-content, error: false, text: '"humidity"'}
        - {tool: everything_get-resource-reference, error: false, text: "demo://resource/dynamic/blob"}
        - {tool: everything_get-env, error: false, lacks: NOT_FOR_SERVERS}
        - {tool: everything_get-sum, error: true, text: invalid_arguments}
    calls:
      - {tool: everything_trigger-long-running-operation, arguments: {duration: 1, steps: 4}}
  - shown:
      results:
        - {tool: everything_trigger-long-running-operation, error: false, text: completed}
    say: All of everything.
`

// everythingCalls are those that a bridge is asked for: the session refuses one.
func everythingCalls() []string {
	return []string{
		"everything_echo", "everything_get-sum", "everything_get-tiny-image", "everything_get-structured-content",
		"everything_get-resource-reference", "everything_get-env", "everything_trigger-long-running-operation",
	}
}

// TestPeersMCPEverything: the reference server over pipes. It ends with the
// bridge.
func TestPeersMCPEverything(t *testing.T) {
	t.Setenv("NOT_FOR_SERVERS", "a secret")
	servers := fmt.Sprintf("servers:\n  everything:\n    command: node\n    args: [%q]\n    idle: 30s\n", mcpPeer(t, "everything"))
	_, d := playMCP(t, servers, everythingScript, "All of everything.", everythingCalls()...)
	bridge := d.cmd.Process.Pid
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", bridge, bridge))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.drain(time.Minute); err != nil {
		t.Error(err)
	}
	for _, pid := range strings.Fields(string(children)) {
		if _, err := os.Stat("/proc/" + pid); err == nil {
			t.Errorf("process %s of the bridge is left", pid)
		}
	}
}

// TestPeersMCPOverHTTP: the same over streamable HTTP; then it is killed, and a
// call waits for the next one.
func TestPeersMCPOverHTTP(t *testing.T) {
	t.Setenv("NOT_FOR_SERVERS", "a secret")
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	_, port, _ := net.SplitHostPort(address)
	out := &output{}
	start := func() (kill func()) {
		server := exec.Command(node, mcpPeer(t, "everything"), "streamableHttp")
		server.Env = []string{"PATH=" + os.Getenv("PATH"), "PORT=" + port}
		server.Stdout, server.Stderr = out, out
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		return func() {
			_ = server.Process.Kill()
			_ = server.Wait()
		}
	}
	kill := start()
	t.Cleanup(func() {
		kill()
		if t.Failed() {
			t.Logf("the server:\n%s", tail(out.String(), 4000))
		}
	})
	until(t, time.Minute, "the server listens", func() bool {
		r, err := http.Get("http://" + address + "/mcp")
		if err == nil {
			r.Body.Close()
		}
		return err == nil
	})
	t.Setenv("MCP_TOKEN", "t0ken")
	servers := fmt.Sprintf("servers:\n  everything:\n    url: http://%s/mcp\n    headers: {Authorization: \"Bearer ${MCP_TOKEN}\"}\n", address)
	s, d := playMCP(t, servers, everythingScript, "All of everything.", everythingCalls()...)
	kill()
	s.run(session.DoorIn, "s2", "Do as your script says.", nil)
	s.view("s2", "its first calls", func(v session.View) bool { return v.Batch != nil })
	kill = start()
	s.wantEnd("s2", 1, session.Completed, "")
	if strings.Contains(d.out.String(), "t0ken") {
		t.Error("the bridge's log has the token")
	}
}

// TestPeersMCPFilesAndMemory: two servers of one file, each with its own
// target.
func TestPeersMCPFilesAndMemory(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	servers := fmt.Sprintf(`
servers:
  files:
    command: node
    args: [%q, %q]
    target: files
    tools: {write_file: {approval: never}}
  memory:
    command: node
    args: [%q]
    env: ["MEMORY_FILE_PATH=%s"]
`, mcpPeer(t, "filesystem"), dir, mcpPeer(t, "memory"), filepath.Join(dir, "memory.jsonl"))
	path := filepath.Join(dir, "list.txt")
	script := fmt.Sprintf(`
turns:
  - calls:
      - {tool: files_write_file, arguments: {path: %q, content: "tea\nbread\n"}}
      - {tool: files_read_text_file, arguments: {path: %q}}
      - {tool: files_read_text_file, arguments: {path: /etc/hostname}}
      - {tool: memory_create_entities, arguments: {entities: [{name: Ada, entityType: person, observations: [likes tea]}]}}
      - {tool: memory_search_nodes, arguments: {query: Ada}}
  - shown:
      results:
        - {tool: files_write_file, error: false}
        - {tool: files_read_text_file, error: false, text: bread}
        - {tool: files_read_text_file, error: true, text: tool_error}
        - {tool: memory_create_entities, error: false}
        - {tool: memory_search_nodes, error: false, text: likes tea}
    say: Written and remembered.
`, path, path)
	playMCP(t, servers, script, "Written and remembered.",
		"files_write_file", "files_read_text_file", "files_read_text_file", "memory_create_entities", "memory_search_nodes")
	if text, err := os.ReadFile(path); err != nil || string(text) != "tea\nbread\n" {
		t.Errorf("the file: %q, %v", text, err)
	}
}

// TestPeersMCPDemo: refold demo --mcp, with the server from npm.
func TestPeersMCPDemo(t *testing.T) {
	t.Parallel()
	out, errOut, status := run(t, 2*time.Minute, nil, "refold", "demo", "--mcp", "--mcp-server", mcpPeer(t, "filesystem"))
	for _, want := range []string{"14 of its tools are imported", "It is written down. The directory has: [FILE] shopping.txt", "replay: identical"} {
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("status %d, %s%s\nwant %q", status, out, errOut, want)
		}
	}
}
