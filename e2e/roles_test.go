package e2e_test

// Servers on the accounts that refold roles writes. Real programs run on them,
// each with its user's files, and the servers' logs must have no permission
// violation.

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
)

// everyRole names a user of each role.
const everyRole = `
tenants:
  refold:
    session-actors: [actor]
    clients: [chat, chat2]
    approvers: [approver]
    operators: [operator]
    auditors: [auditor]
    erasers: [eraser]
    admins: [admin]
    models: {models: [openai, scripted]}
    tools:
      tools: [host, host-w1, host-w2]
      lab: [lab]
      asks: [services]
      notes: [mcp]
      shop: [shop]
    step-hooks: {steps: [mine]}
    app-asks: [shop]
    http: {front: [crm]}
    services: {orders: {bridge: asks, subjects: ["orders.*"]}}
`

// guarded is a server, or a cluster, with roles.
type guarded struct {
	t       *testing.T
	dir     string // of the users' files
	store   string // the server's files
	url     string // as the user "root" of the test, which is in the streams' account and may do everything
	plain   string // without a user
	refused *violations
}

// startGuarded starts a server with a user of each role.
func startGuarded(t *testing.T) *guarded {
	t.Helper()
	g := writeRoles(t, everyRole)
	g.startServer()
	return g
}

// startServer starts a server on the accounts.
func (g *guarded) startServer() *server.Server {
	g.t.Helper()
	srv := serve(g.t, g.options(), g.refused)
	g.plain = srv.ClientURL()
	g.url = as(g.t, g.plain, "root", true)
	return srv
}

// writeRoles runs refold roles on a file; empty: without one.
func writeRoles(t *testing.T, file string) *guarded {
	t.Helper()
	g := &guarded{t: t, dir: t.TempDir(), store: t.TempDir(), refused: &violations{}}
	args := []string{"roles", "--dir", g.dir}
	if file != "" {
		args = append(args, "--file", writeFile(t, "roles.yaml", file))
	}
	if out, errOut, status := run(t, endWithin, nil, "refold", args...); status != 0 {
		t.Fatalf("refold roles: %s%s", out, errOut)
	}
	return g
}

// options are those of a server that includes the accounts. The test has a user
// of its own in the streams' account, with a password, so that it can pass for
// programs that nobody has confined.
func (g *guarded) options() *server.Options {
	g.t.Helper()
	rights, err := server.ProcessConfigFile(filepath.Join(g.dir, "server", "accounts.conf"))
	if err != nil {
		g.t.Fatal(err)
	}
	options := natsOptions(g.store, server.RANDOM_PORT)
	options.FeatureFlags = map[string]bool{server.FeatureFlagJsAckFormatV2: true}
	options.Accounts, options.Users, options.Nkeys = rights.Accounts, rights.Users, rights.Nkeys
	home := slices.IndexFunc(options.Accounts, func(a *server.Account) bool { return a.Name == "REFOLD" })
	options.Users = append(options.Users, &server.User{Username: "root", Password: "change-me", Account: options.Accounts[home]})
	return options
}

// file returns a file of a user.
func (g *guarded) file(user, name string) string {
	return filepath.Join(g.dir, "users", "refold", user, name)
}

// as are the flags with which refold and the daemons connect as a user.
func (g *guarded) as(user string, args ...string) []string {
	return append([]string{"--nats", g.plain, "--context", g.file(user, "context.json")}, args...)
}

// daemon are the flags with which a daemon runs as a user.
func (g *guarded) daemon(user string, args ...string) []string {
	return append([]string{"--nats", g.plain, "--config", g.file(user, "config.yaml")}, args...)
}

// connect connects a plain client as a user.
func (g *guarded) connect(user string, options ...nats.Option) *nats.Conn {
	g.t.Helper()
	auth, err := nats.NkeyOptionFromSeed(g.file(user, "seed.nk"))
	if err != nil {
		g.t.Fatal(err)
	}
	nc, err := nats.Connect(g.plain, append(options, auth, nats.CustomInboxPrefix("_INBOX_"+user))...)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(nc.Close)
	return nc
}

// start starts a session-actor with its own rights, and waits until it has
// created the consumers of bridges, which may create none themselves.
func (g *guarded) start(record object) *system {
	g.t.Helper()
	s := startSystemOn(g.t, g.url, g.daemon("actor"), record)
	until(g.t, time.Minute, "a session-actor", func() bool { return strings.Contains(s.actor.out.String(), "session_actor_starts") })
	return s
}

// wantNone wants that the servers refused nobody anything.
func (g *guarded) wantNone() {
	g.t.Helper()
	g.refused.mu.Lock()
	defer g.refused.mu.Unlock()
	seen := map[string]bool{}
	for _, line := range g.refused.all {
		if _, what, _ := strings.Cut(line, "nkey"); !seen[what] {
			seen[what] = true
			g.t.Errorf("the server refused: %s", line)
		}
	}
}

// refold runs the program as a user and returns what it printed.
func (g *guarded) refold(user string, status int, stdin []byte, args ...string) (out, errOut string) {
	g.t.Helper()
	out, errOut, got := run(g.t, endWithin, stdin, "refold", g.as(user, args...)...)
	if got != status {
		g.t.Errorf("refold %v as %s: status %d, want %d\n%s%s", args, user, got, status, out, errOut)
	}
	return out, errOut
}

// firstEvent returns the sequence of a session's first event.
func (g *guarded) firstEvent(sid string) string {
	g.t.Helper()
	out, _ := g.refold("operator", 0, nil, "log", sid, "--json")
	line, _, _ := strings.Cut(out, "\n")
	var e struct{ Seq uint64 }
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		g.t.Fatalf("%q: %v", line, err)
	}
	return strconv.FormatUint(e.Seq, 10)
}

// clock reads the server's clock as a user, as commands do that tell since when a
// session waits.
func (g *guarded) clock(user string) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), time.Minute)
	defer cancel()
	c, err := client.Connect(ctx, client.Options{URL: g.plain, Context: g.file(user, "context.json"), CoreOnly: true})
	if err != nil {
		g.t.Fatal(err)
	}
	defer c.Close()
	c.Clock(ctx)()
}

// serve runs a program with package bridge as a user.
func (g *guarded) serve(user string, give func(b *bridge.Bridge) error) {
	g.t.Helper()
	serveBridge(g.t, bridge.Options{URL: g.plain, Context: g.file(user, "context.json"), Name: user, Grace: time.Second}, give)
}

// builtinAnd is the built-in record, with a default config and more tools.
func builtinAnd(t *testing.T, tools ...object) object {
	t.Helper()
	text, err := codec.ToJSON(session.BuiltinInstall())
	if err != nil {
		t.Fatal(err)
	}
	var record object
	if err := json.Unmarshal(text, &record); err != nil {
		t.Fatal(err)
	}
	all := record["tools"].(list)
	for _, tool := range tools {
		all = append(all, tool)
	}
	return object{"v": 1, "rules": record["rules"], "tools": all, "config": scripted}
}

// rolesScript opens a host session, prints 400 KB, asks a person, an MCP server
// and a NATS service.
const rolesScript = `
rules:
  - shown: {asked: ^open, last: user}
    calls: [{tool: open_session}]
  - shown: {asked: ^print, last: user}
    calls: [{tool: shell, arguments: {command: "head -c 400000 /dev/zero | tr '\\0' x"}}, {tool: write_file, arguments: {path: a.txt, content: a}}]
  - shown: {asked: ^pay, last: user}
    calls: [{tool: pay, arguments: {amount: 5}}]
  - shown: {asked: ^shop, last: user}
    calls: [{tool: sell, arguments: {}}]
  - say: done
`

// TestRolesRunEverything: a model, two workers of a fleet, blobs, approvals,
// timers, an app and all commands of people, each as its own user. The server
// refuses nothing.
func TestRolesRunEverything(t *testing.T) {
	t.Parallel()
	g := startGuarded(t)
	s := g.start(builtinAnd(t, tool("pay", object{"approval": "always"}), tool("sell", object{"executor": object{"kind": "effect", "target": "shop"}})))
	s.at("s0", publish(t, s.nc, "refold.in.s0", []byte("{}"))) // all consumers are there
	startDaemon(t, "bridge", g.daemon("models", "--model", "scripted=scripted:"+writeFile(t, "script.yaml", rolesScript))...)
	worker := func(name string) *daemon {
		return startDaemon(t, "bridge", g.daemon("tools", "--tools", "host", "--worker", name, "--workdir", t.TempDir(), "--worker-lost", "5s")...)
	}
	first := worker("w1")
	pays, sells := &lab{}, &lab{}
	g.serve("lab", func(b *bridge.Bridge) error { return b.Tool("lab", pays) })
	g.serve("shop", func(b *bridge.Bridge) error { return b.Tool("shop", sells) })

	g.refold("chat", 0, nil, "run", "s1", "open")
	if out, _ := g.refold("chat", 0, nil, "run", "s1", "print"); !strings.Contains(out, "done") {
		t.Errorf("the run prints %q", out)
	}
	s.wantEnd("s1", 2, session.Completed, "")
	g.refold("chat2", 0, nil, "run", "s2", "shop")
	g.refold("shop", 0, nil, "run", "s5", "shop")
	asks := listen(t, g.connect("chat"), "refold.out.s3")
	publish(t, g.connect("chat2"), "refold.in.s3", envelope(t, session.TypeRunRequested, object{"input": object{"text": "pay"}}))
	asked := asks.approvals(t, 1)
	g.refold("approver", 0, nil, "approve", "s3", asked[0].Call, "--yes")
	s.wantEnd("s3", 1, session.Completed, "")
	if pays.ran() != "pay" || sells.ran() != "sell sell" {
		t.Errorf("ran %q and %q", pays.ran(), sells.ran())
	}

	// The second worker answers for the first.
	first.kill()
	worker("w2")
	g.refold("chat", 0, nil, "run", "s1", "print")
	s.wantHost("s1", "error", "host-w1")
	g.refold("chat", 0, nil, "run", "s6", "open")
	s.wantHost("s6", "ready", "host-w2")

	for _, user := range []string{"chat", "approver", "auditor", "operator"} {
		g.clock(user)
	}
	redacted := g.firstEvent("s1")
	archives := t.TempDir()
	policy := writeFile(t, "retain.yaml", fmt.Sprintf("rules: [{prefix: s2, idle_after: 0s, archive_to: %s, delete_after: 0s}]", archives))
	for user, commands := range map[string][][]string{
		"operator": {
			{"view", "s1"}, {"replay", "s1", "--verify"}, {"replay", "--all", "--verify"}, {"verify", "--all"}, {"tools", "s1"}, {"why", "s1", "shell"},
			{"install", "--list"}, {"install", "--show"}, {"approvals", "s3"}, {"approvals"}, {"queue", "s1"}, {"bridge", "doctor"}, {"tools", "check"}, {"streams"},
			{"sessions"}, {"sessions", "--all"}, {"transcript", "s1"}, {"log", "s1"}, {"tail", "--all"},
			{"run", "s4", "hi", "--operator"}, {"steer", "s4", "more"}, {"close", "s4"},
		},
		"auditor": {{"view", "s1"}, {"replay", "s1", "--verify"}, {"tools", "s1"}, {"why", "s1", "shell"}, {"bridge", "doctor"}, {"approvals", "s3"},
			{"sessions"}, {"sessions", "--all"}, {"transcript", "s1"}, {"log", "s1"}, {"tail", "--all"}},
		"chat":   {{"view", "s1"}},
		"eraser": {{"redact", "s1", redacted, "--yes"}, {"retain", "--policy", policy}, {"blobs", "sweep"}},
	} {
		for _, args := range commands {
			out, errOut, status := run(t, endWithin, nil, "refold", g.as(user, args...)...)
			t.Logf("%s: refold %s: status %d: %s", user, strings.Join(args, " "), status, tail(errOut, 200))
			if status == 2 || strings.Contains(errOut, "allow this user") {
				t.Errorf("%s: refold %s: status %d\n%s%s", user, strings.Join(args, " "), status, tail(out, 500), errOut)
			}
		}
	}
	if shown, _ := g.refold("operator", 0, nil, "log", "s1", "--from", redacted, "--to", redacted, "--json"); !strings.Contains(shown, "[redacted]") && !strings.Contains(shown, "xxx") {
		t.Errorf("refold redact as eraser has left the text of event %s: %s", redacted, shown)
	}
	if _, err := os.Stat(filepath.Join(archives, "s2.refold")); err != nil {
		t.Errorf("refold retain as eraser has archived nothing: %v", err)
	}
	g.wantNone()
}
