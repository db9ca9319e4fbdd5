package e2e_test

// Programs that connect to a leafnode of the servers with the streams.

import (
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
)

// TestRolesAtALeafnode: the leafnode has the accounts too, and a JetStream of its own.
// With the domain in the users' file every program works with the streams of the hub.
func TestRolesAtALeafnode(t *testing.T) {
	t.Parallel()
	g := writeRoles(t, "domain: hub\n"+everyRole)
	options := g.options()
	options.ServerName, options.JetStreamDomain = "hub", "hub"
	options.LeafNode.Host, options.LeafNode.Port = "127.0.0.1", server.RANDOM_PORT
	hub := serve(t, options, g.refused)
	z, err := hub.Varz(nil)
	if err != nil {
		t.Fatal(err)
	}
	seed, err := os.ReadFile(g.file("admin", "seed.nk"))
	if err != nil {
		t.Fatal(err)
	}
	remote := &url.URL{Scheme: "nats-leaf", Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(z.LeafNode.Port))}
	options = g.options()
	options.ServerName, options.JetStreamDomain, options.StoreDir = "leaf", "leaf", t.TempDir()
	options.LeafNode.Remotes = []*server.RemoteLeafOpts{{LocalAccount: "REFOLD", URLs: []*url.URL{remote}, Nkey: strings.TrimSpace(string(seed))}}
	leaf := serve(t, options, g.refused)
	g.url, g.plain = as(t, hub.ClientURL(), "root", true), leaf.ClientURL()

	s := g.start(builtinAnd(t))
	s.at("s0", publish(t, s.nc, "refold.in.s0", []byte("{}"))) // all consumers are there
	startDaemon(t, "bridge", g.daemon("models", "--model", "scripted=scripted:"+writeFile(t, "script.yaml", rolesScript))...)
	startDaemon(t, "bridge", g.daemon("tools", "--tools", "host", "--worker", "w1", "--workdir", t.TempDir())...)
	g.refold("chat", 0, nil, "run", "s1", "open")
	if out, _ := g.refold("chat", 0, nil, "run", "s1", "print"); !strings.Contains(out, "done") {
		t.Errorf("the run prints %q", out)
	}
	s.wantEnd("s1", 2, session.Completed, "")
	for _, args := range [][]string{{"view", "s1"}, {"replay", "--all", "--verify"}, {"tail", "--all"}, {"bridge", "doctor"}} {
		g.refold("operator", 0, nil, args...)
	}
	g.wantNone()

	js, err := jetstream.New(connect(t, as(t, g.plain, "root", true)))
	if err != nil {
		t.Fatal(err)
	}
	for name := range js.StreamNames(t.Context()).Name() {
		t.Errorf("the leafnode has the stream %s", name)
	}
	for _, at := range []string{hub.ClientURL(), g.plain} {
		if out, errOut, status := run(t, endWithin, nil, "refold", "--nats", at, "roles", "check", "--dir", g.dir); status != 0 || !strings.Contains(out, "0 differ") {
			t.Errorf("refold roles check: status %d\n%s%s", status, tail(out, 3000), errOut)
		}
	}
}
