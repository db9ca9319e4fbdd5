//go:build peers

package e2e_test

// The bridge of clients/typescript: it passes refold bridge check, as the example uses
// it, and its deaths and those of the server cost what docs/bridges.md says.

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
)

// nodeProgram returns the path of Node.js.
func nodeProgram(t *testing.T) string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// TestPeersBridgeInTypeScript: examples/bridge-js passes all checks.
func TestPeersBridgeInTypeScript(t *testing.T) {
	t.Parallel()
	checkBridge(t, nodeProgram(t), filepath.Join("..", "examples", "bridge-js", "text.js"))
}

// TestPeersExampleBridgeJS does what the README of examples/bridge-js says: the run ends
// with the answer that stands there.
func TestPeersExampleBridgeJS(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "examples", "bridge-js")
	s := startServiceSystem(t, dir)
	node := linkNode(t)
	startDaemonWith(t, []string{"NATS_URL=" + s.url}, node, filepath.Join(dir, "text.js"))
	base, err := os.ReadFile(filepath.Join(dir, "record.json"))
	if err != nil {
		t.Fatal(err)
	}
	record, said, status := run(t, time.Minute, base, node, filepath.Join(dir, "text.js"), "--install")
	if status != 0 {
		t.Fatalf("--install: %s", said)
	}
	if out, errOut, status := run(t, time.Minute, []byte(record), "refold", "--nats", s.url, "install", "-"); status != 0 {
		t.Fatalf("install: %s%s", out, errOut)
	}
	out, errOut, status := run(t, time.Minute, nil, "refold", "--nats", s.url, "run", "t1", "Say it three times.")
	if want := "Done: hohoho\n"; status != 0 || out != want {
		t.Errorf("the run prints %q and %q, status %d; want %q", out, errOut, status, want)
	}
}

// TestPeersBridgeInTypeScriptAsItsUser: the rights that refold roles gives a bridge of tools
// suffice, and it tries nothing else.
func TestPeersBridgeInTypeScriptAsItsUser(t *testing.T) {
	t.Parallel()
	g := writeRoles(t, "tenants: {refold: {session-actors: [actor], clients: [chat], models: {models: [scripted]}, tools: {text: [text]}}}")
	g.startServer()
	dir := filepath.Join("..", "examples", "bridge-js")
	record, said, status := run(t, time.Minute, []byte(`{"v":1,"rules":1,"config":{"provider":"scripted","model":"any"}}`), linkNode(t), filepath.Join(dir, "text.js"), "--install")
	if status != 0 {
		t.Fatalf("--install: %s", said)
	}
	var install object
	if err := json.Unmarshal([]byte(record), &install); err != nil {
		t.Fatal(err)
	}
	s := g.start(install)
	startDaemon(t, "bridge", g.daemon("models", "--model", "scripted=scripted:"+filepath.Join(dir, "model.yaml"))...)
	env := []string{"NATS_URL=" + g.plain, "NATS_CONTEXT=" + g.file("text", "context.json")}
	startDaemonWith(t, env, "node-"+t.Name(), filepath.Join(dir, "text.js"))
	if out, errOut := g.refold("chat", 0, nil, "run", "s1", "Say it three times."); out != "Done: hohoho\n" {
		t.Errorf("the run prints %q and %q", out, errOut)
	}
	s.wantEnd("s1", 1, session.Completed, "")
	g.wantNone()
}

// TestPeersReadmeOfTypeScript runs the tool of clients/typescript/README.md.
func TestPeersReadmeOfTypeScript(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "clients", "typescript")
	page, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile("(?s)```javascript\n(.*?)```").FindSubmatch(page)
	if code == nil {
		t.Fatal("the README has no example")
	}
	script := filepath.Join(dir, "example-bridge.mjs") // it imports the package by its name
	if err := os.WriteFile(script, code[1], 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(script) })
	s := startSystem(t, object{"v": 1, "rules": 1, "config": scripted, "tools": list{tool("get", object{
		"tool_id": "weather.get", "tool_name": "weather_get", "executor": object{"kind": "effect", "target": "weather"},
	})}})
	s.models("turns: [{calls: [{tool: weather_get, arguments: {city: Bergen}}]}, {say: \"${result}\"}]", "scripted")
	startDaemonWith(t, []string{"NATS_URL=" + s.url}, linkNode(t), script)
	out, errOut, status := run(t, time.Minute, nil, "refold", "--nats", s.url, "run", "s1", "Weather in Bergen?")
	if want := "rain in Bergen\n"; status != 0 || out != want {
		t.Errorf("the run prints %q and %q, status %d; want %q", out, errOut, status, want)
	}
}

// linkNode makes Node.js a program of the test's own, and returns its name.
func linkNode(t *testing.T) string {
	t.Helper()
	name := "node-" + strings.ReplaceAll(t.Name(), "/", "-")
	if err := os.Symlink(nodeProgram(t), program(name)); err != nil {
		t.Fatal(err)
	}
	return name
}

// labJS is clients/typescript/testdata/lab.js as a daemon that a test kills.
type labJS struct {
	*system
	ledger string
	bridge *daemon
}

// startLabJS starts the bridge on a system whose model plays a script.
func startLabJS(t *testing.T, s *system, script string) *labJS {
	t.Helper()
	s.models(script, "scripted")
	ctx, stop := context.WithCancel(context.Background())
	kept := make(chan struct{})
	go func() { defer close(kept); s.keepLeaseShort(ctx) }()
	t.Cleanup(func() { stop(); <-kept })
	l := &labJS{system: s, ledger: filepath.Join(t.TempDir(), "ledger")}
	l.bridge = startDaemonWith(t, []string{"NATS_URL=" + s.url}, linkNode(t), filepath.Join("..", "clients", "typescript", "testdata", "lab.js"), l.ledger)
	return l
}

// labRecord is an install record with the tools of lab.js.
func labRecord() object {
	unsafe := object{"retry_safe": false}
	return object{"v": 1, "rules": 1, "config": scripted, "tools": list{
		tool("kill", nil), tool("note", unsafe), tool("hold", nil), tool("once", unsafe),
	}}
}

// began returns how often a tool began, and that all times had one key.
func (l *labJS) began(name string) (n int) {
	l.t.Helper()
	key := ""
	for _, line := range lines(l.t, l.ledger) {
		if tool, of, _ := strings.Cut(string(line), " "); tool == name {
			if n++; n > 1 && of != key {
				l.t.Errorf("%s began under the keys %s and %s", name, key, of)
			}
			key = of
		}
	}
	return n
}

// release lets the tool once return.
func (l *labJS) release() {
	l.t.Helper()
	if err := os.WriteFile(l.ledger+".go", nil, 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// wantOutcomes checks how the calls of a session ended, in alphabetical order.
func (l *labJS) wantOutcomes(sid, want string) {
	l.t.Helper()
	got := strings.Split(outcomes(l.t, l.system, sid), ", ")
	slices.Sort(got)
	if got := strings.Join(got, ", "); got != want {
		l.t.Errorf("calls of %s: got %q, want %q", sid, got, want)
	}
}

const holdScript = `
rules:
  - shown: {last: tool}
    say: over
  - calls: [{tool: hold, arguments: {}}, {tool: once, arguments: {}}]
`

// TestPeersBridgeInTypeScriptKilled: killed in the middle of two calls and started again,
// it runs the retry-safe one again, under the same key, and reports the other as unknown.
func TestPeersBridgeInTypeScriptKilled(t *testing.T) {
	t.Parallel()
	l := startLabJS(t, startSystem(t, labRecord()), holdScript)
	l.run(session.DoorIn, "s1", "go", nil)
	until(t, time.Minute, "both calls run", func() bool { return l.began("hold") == 1 && l.began("once") == 1 })
	l.bridge.kill()
	l.bridge.start()
	l.wantEnd("s1", 1, session.Completed, "")
	l.wantOutcomes("s1", "outcome_unknown outcome_unknown, succeeded")
	if hold, once := l.began("hold"), l.began("once"); hold != 2 || once != 1 {
		t.Errorf("hold began %d times, want 2; once %d times, want 1", hold, once)
	}
	verifyAll(t, l.url)
}

// TestPeersBridgeInTypeScriptToolKillsIt: the call fails after three deaths; a call beside
// it, which may not run twice, is kept away from the second.
func TestPeersBridgeInTypeScriptToolKillsIt(t *testing.T) {
	t.Parallel()
	l := startLabJS(t, startSystem(t, labRecord()), `
rules:
  - shown: {last: tool}
    say: over
  - shown: {asked: ^kill}
    calls: [{tool: kill, arguments: {}}]
  - calls: [{tool: note, arguments: {}}]
`)
	l.run(session.DoorIn, "killer", "kill", nil)
	for death := 1; death <= 3; death++ {
		until(t, time.Minute, "a death", func() bool { return l.began("kill") == death })
		if death == 1 {
			l.run(session.DoorIn, "other", "note", nil)
			l.view("other", "the other's call", func(v session.View) bool { return v.Batch != nil })
		}
		_ = l.bridge.cmd.Wait()
		l.bridge.cmd = nil
		l.bridge.start()
	}
	l.wantEnd("other", 1, session.Completed, "")
	l.wantEnd("killer", 1, session.Completed, "")
	l.wantOutcomes("killer", "failed bridge_lost")
	l.wantOutcomes("other", "succeeded")
	if kill, note := l.began("kill"), l.began("note"); kill != 3 || note != 1 {
		t.Errorf("kill began %d times, want 3; note %d times, want 1", kill, note)
	}
	verifyAll(t, l.url)
}

// TestPeersBridgeInTypeScriptServerKilled: the server is killed and started again while a
// call runs, and its consumer is deleted. The call goes on, and so do later ones.
func TestPeersBridgeInTypeScriptServerKilled(t *testing.T) {
	t.Parallel()
	srv := startNATSProcess(t)
	l := startLabJS(t, startSystemOn(t, srv.url, []string{"--nats", srv.url}, labRecord()), `
rules:
  - shown: {last: tool}
    say: over
  - calls: [{tool: once, arguments: {}}]
`)
	l.run(session.DoorIn, "s1", "go", nil)
	until(t, time.Minute, "the call runs", func() bool { return l.began("once") == 1 })
	srv.kill()
	srv.start()
	l.release()
	l.wantEnd("s1", 1, session.Completed, "")
	l.wantOutcomes("s1", "succeeded")
	if once := l.began("once"); once != 1 {
		t.Errorf("once began %d times, want 1", once)
	}
	if err := l.js.DeleteConsumer(t.Context(), l.names.EffectsStream(), "tool-lab"); err != nil {
		t.Fatal(err)
	}
	l.run(session.DoorIn, "s2", "go", nil)
	l.wantEnd("s2", 1, session.Completed, "")
	l.wantOutcomes("s2", "succeeded")
	if err := l.bridge.drain(10 * time.Second); err != nil {
		t.Errorf("SIGTERM: %v", err)
	}
}
