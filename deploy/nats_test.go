// The deployment files, checked without containers: deploy/nats.conf by the
// server's own parser and by three servers that run with it; docker-compose.yml
// for its references. `make compose` checks the form of the latter.
package deploy_test

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/roles"
)

// payloadMin is what the largest event needs, with its headers.
const payloadMin = 768*1024 + 64*1024

func TestNATSConfIsValid(t *testing.T) {
	t.Parallel()
	opts := natsConf(t, deployed(t))
	if !opts.JetStream || opts.StoreDir == "" {
		t.Errorf("JetStream %t in %q: want it on, in a directory", opts.JetStream, opts.StoreDir)
	}
	if !opts.SyncAlways {
		t.Error("sync_interval is not `always`: acknowledged events would be lost with the power")
	}
	if opts.MaxPayload < payloadMin {
		t.Errorf("max_payload is %d; an event of the largest size needs %d", opts.MaxPayload, payloadMin)
	}
	if opts.ServerName != "" {
		t.Errorf("server name %q: three servers share this file, so the name is a flag", opts.ServerName)
	}
	if got, want := len(opts.Routes), 3; got != want {
		t.Errorf("%d routes, want %d", got, want)
	}
	if opts.HTTPPort == 0 {
		t.Error("no monitoring port: the health checks ask it")
	}
}

// TestClusterStoresOnAllServers runs three servers on the file, moved to loopback, and stores
// a message on all of them.
func TestClusterStoresOnAllServers(t *testing.T) {
	t.Parallel()
	servers, routes := make([]*server.Server, 3), make([]*url.URL, 3)
	ports, dir := freePorts(t, len(servers)), deployed(t)
	for i := range servers {
		routes[i] = &url.URL{Scheme: "nats", Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[i]))}
	}
	for i := range servers {
		opts := natsConf(t, dir)
		opts.ServerName = fmt.Sprintf("nats%d", i+1)
		opts.Host, opts.Port = "127.0.0.1", server.RANDOM_PORT
		opts.HTTPHost, opts.HTTPPort = "127.0.0.1", server.RANDOM_PORT
		opts.Cluster.Host, opts.Cluster.Port = "127.0.0.1", ports[i]
		opts.Routes = routes
		opts.StoreDir = t.TempDir()
		opts.JetStreamMaxStore = 64 << 20 // three of the real size may not fit a test machine
		opts.NoLog, opts.NoSigs = true, true
		s, err := server.NewServer(opts)
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		servers[i] = s
	}
	for _, s := range servers {
		if !s.ReadyForConnections(10 * time.Second) {
			t.Fatalf("%s is not ready", s.Name())
		}
	}
	if conn, err := nats.Connect(servers[0].ClientURL()); err == nil {
		conn.Close()
		t.Error("a server lets in who has no key")
	}
	auth, err := nats.NkeyOptionFromSeed(roles.SeedFile(dir, admin))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := nats.Connect(servers[0].ClientURL(), auth)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}

	// Until the cluster has a leader, streams are refused: ask again.
	again, deadline := time.NewTicker(100*time.Millisecond), time.After(30*time.Second)
	defer again.Stop()
	for {
		_, err = js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{Name: "PROBE", Subjects: []string{"probe"}, Replicas: 3})
		if err == nil {
			break
		}
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("no stream with three replicas: %v", err)
		}
	}
	ack, err := js.Publish(t.Context(), "probe", []byte("x"), jetstream.WithRetryAttempts(10))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := ack.Sequence, uint64(1); got != want {
		t.Errorf("sequence %d, want %d", got, want)
	}
	var monitors []string
	for _, s := range servers {
		monitors = append(monitors, "http://"+s.MonitorAddr().String())
		if config := s.JetStreamConfig(); config == nil || !config.SyncAlways {
			t.Errorf("%s runs with %+v, want sync always", s.Name(), config)
		}
	}
	// What docker-compose.yml has the daemons ask. Two of three prove nothing of
	// the third.
	for asked, want := range map[int]natsio.Durability{3: natsio.DurabilityAlways, 2: natsio.DurabilityUnknown} {
		b, err := bus.Connect(t.Context(), natsio.Options{URL: servers[0].ClientURL(), Context: roles.ContextFile(dir, admin), Monitor: monitors[:asked]})
		if err != nil {
			t.Fatal(err)
		}
		if got := b.Durability(); got != want {
			t.Errorf("%d servers asked: got %v, want %v", asked, got, want)
		}
		b.Close()
	}
}

// deployed returns a directory with nats.conf and the accounts that the service
// roles of docker-compose.yml writes.
func deployed(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	text, err := os.ReadFile("nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	f := &roles.File{Tenants: map[string]*roles.Tenant{admin.Prefix: roles.DefaultTenant()}}
	if _, err := f.Write(dir, nil); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(
		os.Rename(filepath.Dir(roles.AccountsFile(dir)), filepath.Join(dir, "roles")),
		os.WriteFile(filepath.Join(dir, "nats.conf"), text, 0o600),
	); err != nil {
		t.Fatal(err)
	}
	return dir
}

// admin may do everything in the account of the streams.
var admin = roles.User{Prefix: "refold", Name: "admin"}

func natsConf(t *testing.T, dir string) *server.Options {
	t.Helper()
	opts, err := server.ProcessConfigFile(filepath.Join(dir, "nats.conf"))
	if err != nil {
		t.Fatal(err)
	}
	return opts
}

// freePorts finds free ports. It holds each one until all are found, so that
// they differ.
func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}
