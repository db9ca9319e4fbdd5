package deploy_test

// Servers that nobody has given a key try to join the cluster of
// docker-compose.yml by a route. What a route sends is never checked against the
// permissions of users: a server that joins may publish as anybody.

import (
	"crypto/tls"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/roles"
)

// TestAttackServerJoinsByRoute: a server with the names of the cluster and of its
// accounts, which anyone can guess, has no key, only the password, only a
// certificate, or a certificate of its own authority. It joins in no case, and
// nothing that its users publish is stored.
func TestAttackServerJoinsByRoute(t *testing.T) {
	t.Parallel()
	servers, dir := cluster(t)
	admin := connectAdmin(t, servers[0], dir)
	js, err := jetstream.New(admin)
	if err != nil {
		t.Fatal(err)
	}
	var log jetstream.Stream
	eventually(t, "a stream", func() bool {
		log, err = js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{Name: "REFOLD_LOG", Subjects: []string{"refold.ctl.*"}})
		return err == nil
	})
	own := natsConf(t, dir, "nats1")
	password := own.Routes[0].User
	stranger := natsConf(t, deployed(t, freePorts(t, 9)), "nats1")
	for name, rogue := range map[string]struct {
		user *url.Userinfo
		tls  *tls.Config
	}{
		"no key":                         {},
		"the password":                   {user: password},
		"a certificate":                  {tls: own.Cluster.TLSConfig},
		"another password":               {url.UserPassword("routes", "routes"), own.Cluster.TLSConfig},
		"another authority":              {password, stranger.Cluster.TLSConfig},
		"no certificate, but encryption": {password, &tls.Config{InsecureSkipVerify: true}}, //nolint:gosec // an attacker trusts everybody
	} {
		t.Run(name, func(t *testing.T) {
			opts, err := server.ProcessConfigFile(write(t, `
				listen: "127.0.0.1:-1"
				cluster {name: refold, listen: "127.0.0.1:-1"}
				accounts {REFOLD {users: [{user: evil, password: evil}]}}`))
			if err != nil {
				t.Fatal(err)
			}
			opts.ServerName = "rogue"
			opts.Cluster.TLSConfig, opts.Cluster.TLSTimeout = rogue.tls, 5
			for _, s := range servers {
				opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats", Host: s.ClusterAddr().String(), User: rogue.user})
			}
			said := &lines{}
			s := start(t, opts, said)
			// The rogue itself may count a route for a moment, before it is refused.
			joined := func() bool {
				return slices.ContainsFunc(servers, func(s *server.Server) bool {
					routes, err := s.Routez(&server.RoutezOptions{})
					return err == nil && remotes(routes)[opts.ServerName]
				})
			}
			eventually(t, "the cluster has answered the server", func() bool { return joined() || said.has("Router connection closed") })
			if joined() {
				t.Error("the cluster has a route to it")
			}
			evil, err := nats.Connect(s.ClientURL(), nats.UserInfo("evil", "evil"))
			if err != nil {
				t.Fatal(err)
			}
			defer evil.Close()
			if m, err := evil.Request("refold.ctl.s1", []byte(`{"type":"FactsSet","data":{"facts":{"role":"admin"}}}`), 2*time.Second); err == nil {
				t.Errorf("its user published an event: %s", m.Data)
			}
			if info, err := log.Info(t.Context()); err != nil || info.State.LastSeq > 0 {
				t.Errorf("the log has %d events, %v: want none", info.State.LastSeq, err)
			}
		})
	}
	for _, s := range servers {
		if got := s.NumRoutes(); got == 0 {
			t.Errorf("%s has no routes to the others", s.Name())
		}
	}
}

// TestRotationReachesRunningServers: servers that run and reload one after another stay
// a cluster with another password, and then with another authority.
func TestRotationReachesRunningServers(t *testing.T) {
	t.Parallel()
	ports := freePorts(t, 9)
	dir := deployed(t, ports)
	var servers []*server.Server
	for _, name := range natsNames {
		servers = append(servers, start(t, natsConf(t, dir, name), nil))
	}
	whole := func(what string) {
		t.Helper()
		eventually(t, what, func() bool {
			for _, s := range servers {
				if routes, err := s.Routez(&server.RoutezOptions{}); err != nil || len(remotes(routes)) != len(servers)-1 {
					return false
				}
			}
			return true
		})
	}
	whole("a cluster")
	for _, rotate := range [][]string{{"routes"}, {"ca"}, natsNames} {
		writeServers(t, dir, ports, rotate...)
		for _, s := range servers {
			if err := s.Reload(); err != nil {
				t.Fatalf("%v: %v", rotate, err)
			}
		}
		whole(fmt.Sprintf("a cluster after the rotation of %v", rotate))
	}
	// A server that starts now, on the new files, gets in.
	servers[2].Shutdown()
	servers[2].WaitForShutdown()
	servers[2] = start(t, natsConf(t, dir, "nats3"), nil)
	whole("a cluster with a server that was restarted")
}

// remotes are the names of the servers to which there are routes.
func remotes(r *server.Routez) map[string]bool {
	all := map[string]bool{}
	for _, route := range r.Routes {
		all[route.RemoteName] = true
	}
	return all
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// connectAdmin connects to a server as the administrator.
func connectAdmin(t *testing.T, s *server.Server, dir string) *nats.Conn {
	t.Helper()
	auth, err := nats.NkeyOptionFromSeed(roles.SeedFile(dir, admin))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := nats.Connect(s.ClientURL(), auth)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	again, deadline := time.NewTicker(50*time.Millisecond), time.After(30*time.Second)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// lines is a server's log.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) add(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, fmt.Sprintf(format, v...))
}

// has reports whether a line was logged that has this text.
func (l *lines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(strings.Join(l.all, "\n"), text)
}

func (l *lines) Noticef(format string, v ...any) { l.add(format, v...) }
func (l *lines) Warnf(format string, v ...any)   { l.add(format, v...) }
func (l *lines) Fatalf(format string, v ...any)  { l.add(format, v...) }
func (l *lines) Errorf(format string, v ...any)  { l.add(format, v...) }
func (*lines) Debugf(string, ...any)             {}
func (*lines) Tracef(string, ...any)             {}
