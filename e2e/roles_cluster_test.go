//go:build unix

package e2e_test

// On the accounts that refold roles writes: three servers, and a cancel that
// reaches a running command.

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
)

// TestRolesCancel: an operator's cancel reaches the bridge of tools, each in
// its own account, and the command ends.
func TestRolesCancel(t *testing.T) {
	t.Parallel()
	g := startGuarded(t)
	s := g.start(builtinAnd(t))
	s.at("s0", publish(t, s.nc, "refold.in.s0", []byte("{}"))) // all consumers are there
	ids := filepath.Join(t.TempDir(), "ids")
	script := strings.ReplaceAll(`
rules:
  - shown: {asked: ^open, last: user}
    calls: [{tool: open_session}]
  - shown: {asked: ^sleep, last: user}
    calls: [{tool: shell, arguments: {command: "echo $$ > IDS.new; mv IDS.new IDS; exec sleep 60"}}]
  - say: done
`, "IDS", ids)
	startDaemon(t, "bridge", g.daemon("models", "--model", "scripted=scripted:"+writeFile(t, "script.yaml", script))...)
	startDaemon(t, "bridge", g.daemon("tools", "--tools", "host", "--worker", "w1", "--workdir", t.TempDir(), "--sandbox", "off")...)
	g.refold("chat", 0, nil, "run", "s1", "open")
	publish(t, g.connect("chat"), "refold.in.s1", envelope(t, session.TypeRunRequested, object{"input": object{"text": "sleep"}}))
	shell := processes(t, ids)[0]
	g.refold("operator", 0, nil, "cancel", "s1")
	s.wantEnd("s1", 2, session.Cancelled, "cancelled")
	until(t, time.Minute, "the end of the command", func() bool { return isGone(shell) })
	g.wantNone()
}

// accounts are those of the file, with a system account, and a user of the test
// that may do everything in the streams' account.
func (g *guarded) accounts() string {
	g.t.Helper()
	text, err := os.ReadFile(filepath.Join(g.dir, "server", "accounts.conf"))
	if err != nil {
		g.t.Fatal(err)
	}
	all := strings.Replace(string(text), "accounts {\n", "accounts {\n  SYS { users: [{user: sys, password: sys}] }\n", 1)
	return strings.Replace(all, "users: [\n", "users: [\n      {user: root, password: change-me}\n", 1)
}

// TestRolesReplicated: three servers on the accounts, streams with a copy on
// each, and a run before and after the end of one server. No server refuses
// anything.
func TestRolesReplicated(t *testing.T) {
	t.Parallel()
	g := writeRoles(t, everyRole)
	c := startCluster(t, g.accounts())
	g.plain, g.url = c.fronts(), as(t, c.servers[0].url, "root", true)
	s := startSystemOn(t, g.url, g.daemon("actor", "--replicas", "3"), builtinAnd(t, tool("pay", object{"approval": "always"})))
	s.at("s0", publish(t, s.nc, "refold.in.s0", []byte("{}"))) // all consumers are there
	startDaemon(t, "bridge", g.daemon("models", "--model", "scripted=scripted:"+writeFile(t, "script.yaml", rolesScript))...)
	startDaemon(t, "bridge", g.daemon("tools", "--tools", "host", "--worker", "w1", "--workdir", t.TempDir())...)
	g.refold("chat", 0, nil, "run", "s1", "open")
	g.refold("chat", 0, nil, "run", "s1", "print")

	away := max(1, c.leader(s.nc, "REFOLD_LOG")) // the test is connected to the first
	c.kill(away)
	g.refold("chat", 0, nil, "run", "s1", "print")
	s.wantEnd("s1", 3, session.Completed, "")
	c.start(away)
	c.healthy()
	g.refold("operator", 0, nil, "replay", "--all", "--verify")
	for _, one := range c.servers {
		for line := range strings.Lines(one.out.String()) {
			if strings.Contains(line, "Violation") {
				t.Errorf("%s refused: %s", one.name, line)
			}
		}
	}
}
