package e2e_test

// On the accounts that refold roles writes: bridges whose tools are programs
// and services, a step hook, and refold roles check at the same time.

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/micro"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
)

const outsideScript = `
turns:
  - shown: {tools: {include: [notes_find, orders_find]}}
    calls: [{tool: notes_find, arguments: {text: tea}}, {tool: orders_find, arguments: {number: 1}}]
  - shown: {results: [{tool: notes_find, error: false}, {tool: orders_find, error: false}]}
    say: Both answered.
`

// TestRolesRunOutsideTools: an MCP server, a NATS service and a step hook, each
// with its own user, serve a client's run. Then refold roles check tries
// everything while all of them work, and disturbs none.
func TestRolesRunOutsideTools(t *testing.T) {
	t.Parallel()
	g := startGuarded(t)
	s := g.start(object{"v": 1, "rules": 1, "tools": list{}, "config": object{"provider": "scripted", "model": "any", "step_hook": object{"hook": "mine", "deadline_ms": hookMS}}})
	s.at("s0", publish(t, s.nc, "refold.in.s0", []byte("{}"))) // all consumers are there
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ledger := filepath.Join(t.TempDir(), "ledger")
	servers := writeFile(t, "servers.yaml", fmt.Sprintf("servers:\n  notes:\n    command: %q\n    env: [%q]\n", self, mcpEnv+"="+ledger))
	service, err := micro.AddService(g.connect("orders"), micro.Config{Name: "orders", Version: "1.0.0"})
	if err == nil {
		err = service.AddEndpoint("find", micro.HandlerFunc(func(r micro.Request) { _ = r.RespondJSON(object{"number": 1}) }), micro.WithEndpointSubject("orders.find"),
			micro.WithEndpointMetadata(map[string]string{"refold.tool": `{"description": "Finds an order.", "schema": {"type": "object", "properties": {"number": {"type": "integer"}}}}`}))
	}
	if err != nil {
		t.Fatal(err)
	}
	startDaemon(t, "bridge", g.daemon("models", "--model", "scripted=scripted:"+writeFile(t, "script.yaml", outsideScript))...)
	startDaemon(t, "bridge", g.daemon("asks", "--tools", "services")...)
	g.serve("steps", func(b *bridge.Bridge) error {
		return b.Step("mine", executor.PrepareStep(func(context.Context, executor.StepRequest) (executor.StepChoice, error) {
			return executor.StepChoice{System: "Be brief."}, nil
		}))
	})
	for user, args := range map[string][]string{"notes": {"mcp", servers}, "asks": {"services"}} { // each adds to the record that there is
		record, _ := g.refold(user, 0, nil, append([]string{"tools", "import"}, args...)...)
		g.refold("operator", 0, []byte(record), "install", "-")
	}
	startDaemon(t, "bridge", g.daemon("notes", "--tools", "mcp:"+servers)...)
	g.refold("operator", 0, nil, "tools", "check", "--coverage", "fail")
	if out, errOut := g.refold("chat", 0, nil, "run", "s1", "go"); out != "Both answered.\n" || !strings.Contains(errOut, "notes_find") {
		t.Errorf("the run prints %q and %q", out, errOut)
	}
	g.wantNone()

	if out, errOut, status := run(t, endWithin, nil, "refold", "--nats", g.plain, "roles", "check", "--dir", g.dir); status != 0 || !strings.Contains(out, "0 differ") {
		t.Errorf("refold roles check: status %d\n%s%s", status, out, errOut)
	}
	g.refold("chat", 0, nil, "run", "s2", "go")
	s.wantEnd("s2", 1, session.Completed, "")
}

// TestRolesCheckFindsWhatDiffers: on servers with other accounts than the
// written ones, a permission too many and one too few are both reported.
func TestRolesCheckFindsWhatDiffers(t *testing.T) {
	t.Parallel()
	g := writeRoles(t, "tenants: {refold: {session-actors: [actor], clients: [chat], auditors: [auditor], admins: [admin]}}")
	path := filepath.Join(g.dir, "server", "accounts.conf")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(text), `REFOLD_LOG", "refold.in.*", "refold.view.*"]`, `REFOLD_LOG", "refold.in.*"]`, 1) // the client's
	edited = strings.Replace(edited, `subscribe: ["$SRV.>", `, `subscribe: ["refold.ctl.*", "$SRV.>", `, 1)                   // the session-actor's
	if err := os.WriteFile(path, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	g.startServer()
	out, errOut, status := run(t, endWithin, nil, "refold", "--nats", g.plain, "roles", "check", "--dir", g.dir)
	for _, want := range []string{
		"refold/chat (client), view: refold.view.check!: the servers refuse, the table let it publish",
		"refold/actor (session-actor), ctl: refold.ctl.check!: the servers let it subscribe, the table refuse",
		", 2 differ.",
	} {
		if status != 1 || !strings.Contains(out, want) {
			t.Errorf("status %d, want 1, and %q:\n%s%s", status, want, out, errOut)
		}
	}
}

// TestRolesOfNoFile: the users that refold roles writes without a file run a
// deployment with their files and the flags of docker-compose.yml. A check of
// the roles changes nothing.
func TestRolesOfNoFile(t *testing.T) {
	t.Parallel()
	g := writeRoles(t, "")
	g.startServer()
	s := g.start(nil)
	s.at("s0", publish(t, s.nc, "refold.in.s0", []byte("{}"))) // all consumers are there
	startDaemon(t, "bridge", g.daemon("models", "--model", "openai=scripted:"+writeFile(t, "script.yaml", `
rules:
  - shown: {tools: {include: [shell]}, last: user}
    calls: [{tool: shell, arguments: {command: echo hello}}]
  - shown: {last: user}
    calls: [{tool: open_session}]
  - shown: {tools: {include: [shell]}, results: [{tool: open_session}]}
    calls: [{tool: shell, arguments: {command: echo hello}}]
  - say: done
`))...)
	startDaemon(t, "bridge", g.daemon("tools", "--tools", "host", "--workdir", t.TempDir())...)
	runs := func() {
		t.Helper()
		if out, errOut := g.refold("client", 0, nil, "run", "s1", "go", "--provider", "openai", "--model", "m"); out != "done\n" || !strings.Contains(errOut, "shell") {
			t.Errorf("the run prints %q and %q", out, errOut)
		}
	}
	runs()
	g.wantNone()
	if out, errOut, status := run(t, endWithin, nil, "refold", "--nats", g.plain, "roles", "check", "--dir", g.dir); status != 0 || !strings.Contains(out, "0 differ") {
		t.Errorf("refold roles check: status %d\n%s%s", status, out, errOut)
	}
	runs()
	verifyAll(t, g.url)
}
