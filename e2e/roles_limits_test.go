package e2e_test

// A tenant whose streams are full: nothing is lost, and no session ends.

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
)

// twoTenants have 4 MB each.
const twoTenants = `
storage: 4MB
tenants:
  refold: {session-actors: [actor], clients: [chat, flood], admins: [admin], models: {models: [scripted]}, tools: {lab: [lab]}}
  other: {session-actors: [actor], clients: [chat], admins: [admin]}
`

const payScript = `
rules:
  - shown: {asked: ^pay, last: user}
    calls: [{tool: pay}]
  - say: done
`

// TestFullLogEndsNoSession: a client fills its tenant's storage while a run of
// another client is active. Each publish gets an error, refold run prints what
// to do, and another tenant's clients notice nothing. The run continues as soon
// as the tenant may store more.
func TestFullLogEndsNoSession(t *testing.T) {
	t.Parallel()
	g := writeRoles(t, twoTenants)
	srv := g.startServer()
	s := g.start(object{"v": 1, "rules": 1, "tools": list{tool("pay", nil)}, "config": scripted})
	s.at("s0", publish(t, s.nc, "refold.in.s0", []byte("{}"))) // all consumers are there
	startDaemon(t, "bridge", g.daemon("models", "--model", "scripted=scripted:"+writeFile(t, "script.yaml", payScript))...)
	held := make(chan struct{})
	g.serve("lab", func(b *bridge.Bridge) error { return b.Tool("lab", &lab{hold: map[string]chan struct{}{"pay": held}}) })
	startDaemon(t, "session-actor", "--nats", g.plain, "--config", filepath.Join(g.dir, "users", "other", "actor", "config.yaml"))

	g.refold("chat", 0, nil, "run", "s1", "pay", "--no-follow")
	s.view("s1", "its call", func(v session.View) bool { return v.Batch != nil && len(v.Batch.Calls) == 1 })
	flood := g.connect("flood")
	for _, size := range []int{256 << 10, 16 << 10, 1 << 10, 1} { // until not even the least is taken
		fillStore(t, flood, size)
	}
	if _, errOut := g.refold("chat", 1, nil, "run", "s2", "hi"); !strings.Contains(errOut, "raise it") || strings.Count(errOut, "\n") != 1 {
		t.Errorf("refold run prints %q, want a line that says what to do", errOut)
	}
	out, errOut, status := run(t, endWithin, nil, "refold", "--nats", g.plain, "--prefix", "other", "--context", filepath.Join(g.dir, "users", "other", "chat", "context.json"),
		"run", "s1", "hi", "--no-follow", "--provider", "p", "--model", "m")
	if status != 0 {
		t.Errorf("another tenant's client: status %d\n%s%s", status, out, errOut)
	}
	close(held) // there is no room for the settlement

	file := strings.Replace(twoTenants, "storage: 4MB", "storage: 64MB", 1)
	if out, errOut, status := run(t, endWithin, nil, "refold", "roles", "--file", writeFile(t, "roles.yaml", file), "--dir", g.dir); status != 0 {
		t.Fatalf("refold roles: %s%s", out, errOut)
	}
	more := g.options()
	more.Port = srv.Addr().(*net.TCPAddr).Port
	if err := srv.ReloadOptions(more); err != nil {
		t.Fatal(err)
	}
	s.wantEnd("s1", 1, session.Completed, "")
	until(t, time.Minute, "a run of the client", func() bool { // the session-actors learn of the room a moment later
		_, _, status := run(t, endWithin, nil, "refold", g.as("chat", "run", "s2", "hi")...)
		return status == 0
	})
	verifyAll(t, g.url)
	g.wantNone()
}

// fillStore asks for runs until the server has no room for another message of
// that size.
func fillStore(t *testing.T, nc *nats.Conn, size int) {
	t.Helper()
	for i := range 1000 {
		answer, err := nc.Request(fmt.Sprintf("refold.in.f%d", i), make([]byte, size), endWithin)
		if err != nil {
			t.Fatal(err)
		}
		if said := string(answer.Data); strings.Contains(said, `"error"`) {
			if !strings.Contains(said, "10002") && !strings.Contains(said, "10047") { // of the account, of the session-actor
				t.Errorf("the client is told %s, want 10002 or 10047", said)
			}
			return
		}
	}
	t.Fatalf("1000 messages of %d bytes are taken", size)
}
