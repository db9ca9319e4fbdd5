// The deployment files, checked without containers: deploy/nats.conf by the
// server's own parser and by three servers that run with it; docker-compose.yml
// for its references. `make compose` checks the form of the latter.
package deploy_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
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
	opts := natsConf(t, deployed(t, freePorts(t, 9)), "nats1")
	if !opts.JetStream || opts.StoreDir == "" {
		t.Errorf("JetStream %t in %q: want it on, in a directory", opts.JetStream, opts.StoreDir)
	}
	if !opts.SyncAlways {
		t.Error("sync_interval is not `always`: acknowledged events would be lost with the power")
	}
	if opts.MaxPayload < payloadMin {
		t.Errorf("max_payload is %d; an event of the largest size needs %d", opts.MaxPayload, payloadMin)
	}
	if !opts.FeatureFlags[server.FeatureFlagJsAckFormatV2] {
		t.Error("acknowledgements name no domain: they would count in a system that a leafnode joins")
	}
	if got, want := len(opts.Routes), 3; got != want {
		t.Errorf("%d routes, want %d", got, want)
	}
	if c := opts.Cluster; c.Username == "" || c.Password == "" || c.TLSConfig == nil || c.TLSConfig.ClientAuth != tls.RequireAndVerifyClientCert {
		t.Error("routes need no password or no certificate: any server may join")
	}
	if text, err := os.ReadFile("nats.conf"); err != nil || strings.Contains(string(text), "server_name") {
		t.Errorf("nats.conf names a server, but three servers share it: the name is a flag (%v)", err)
	}
	if opts.HTTPPort == 0 {
		t.Error("no monitoring port: the health checks ask it")
	}
}

// TestClusterStoresOnAllServers runs three servers on the file, moved to loopback, and stores
// a message on all of them.
func TestClusterStoresOnAllServers(t *testing.T) {
	t.Parallel()
	servers, dir := cluster(t)
	if conn, err := nats.Connect(servers[0].ClientURL()); err == nil {
		conn.Close()
		t.Error("a server lets in who has no key")
	}
	js, err := jetstream.New(connectAdmin(t, servers[0], dir))
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

// cluster runs the three servers of docker-compose.yml, moved to loopback. dir has their files.
func cluster(t *testing.T) (servers []*server.Server, dir string) {
	t.Helper()
	dir = deployed(t, freePorts(t, 9))
	for _, name := range natsNames {
		servers = append(servers, start(t, natsConf(t, dir, name), nil))
	}
	return servers, dir
}

// start starts a server and waits until it is ready.
func start(t *testing.T, opts *server.Options, log server.Logger) *server.Server {
	t.Helper()
	opts.NoLog, opts.NoSigs = log == nil, true
	s, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	if log != nil {
		s.SetLoggerV2(log, false, false, false)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatalf("%s is not ready", s.Name())
	}
	return s
}

// natsNames are the servers of docker-compose.yml.
var natsNames = []string{"nats1", "nats2", "nats3"}

// deployed returns a directory with what the service roles of docker-compose.yml writes,
// and nats.conf for each server, as NAME.conf, moved to loopback: to three ports for
// each, of which the first is for routes.
func deployed(t *testing.T, ports []int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	text, err := os.ReadFile("nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	writeServers(t, dir, ports)
	for i, name := range natsNames {
		own := strings.NewReplacer(
			"0.0.0.0:6222", fmt.Sprintf("127.0.0.1:%d", ports[3*i]), "0.0.0.0:4222", fmt.Sprintf("127.0.0.1:%d", ports[3*i+1]), "0.0.0.0:8222", fmt.Sprintf("127.0.0.1:%d", ports[3*i+2]),
			"/etc/nats/tls", filepath.Join(dir, "tls", name), `"roles/`, `"server/`, "/data", t.TempDir(),
			"max_file_store: 20GB", "max_file_store: 64MB", // three of the real size may not fit a test machine
		).Replace(string(text))
		own += "\nserver_name: " + name + "\n" // docker-compose.yml has a flag for it
		if err := os.WriteFile(filepath.Join(dir, name+".conf"), []byte(own), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// writeServers writes what refold roles writes for the servers.
func writeServers(t *testing.T, dir string, ports []int, rotate ...string) {
	t.Helper()
	f := &roles.File{Tenants: map[string]*roles.Tenant{admin.Prefix: roles.DefaultTenant()}, TLS: filepath.Join(dir, "tls")}
	for i, name := range natsNames {
		f.Servers = append(f.Servers, fmt.Sprintf("%s=127.0.0.1:%d", name, ports[3*i]))
	}
	if _, err := f.Write(dir, rotate); err != nil {
		t.Fatal(err)
	}
}

// admin may do everything in the account of the streams.
var admin = roles.User{Prefix: "refold", Name: "admin"}

func natsConf(t *testing.T, dir, name string) *server.Options {
	t.Helper()
	opts, err := server.ProcessConfigFile(filepath.Join(dir, name+".conf"))
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
