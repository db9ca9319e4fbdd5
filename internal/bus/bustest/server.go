package bustest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// readyTimeout only ends a test that hangs: many tests share few cores, and the store
// syncs.
const readyTimeout = 3 * time.Minute

// Node is one running server. It is a nats.InProcessConnProvider.
type Node struct {
	t    testing.TB
	opts server.Options
	srv  *server.Server
}

// Option changes a server's options before it starts.
type Option func(*server.Options)

// Server starts one server with JetStream. It ends with the test.
func Server(t testing.TB, options ...Option) *Node {
	t.Helper()
	n := &Node{t: t, opts: server.Options{
		Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: filepath.Join(t.TempDir(), "js"),
		SyncAlways: true, NoLog: true, NoSigs: true, NoSystemAccount: false,
	}}
	for _, o := range options {
		o(&n.opts)
	}
	n.Start()
	t.Cleanup(n.Stop)
	return n
}

// Configured starts one server from the text of a configuration file, in which every
// DIR becomes a fresh directory. JetStream is on only if the text enables it.
func Configured(t testing.TB, text string) *Node {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "DIR", filepath.Join(dir, "js"))), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, err := server.ProcessConfigFile(path)
	if err != nil {
		t.Fatalf("configuration of the test server: %v", err)
	}
	opts.Host, opts.Port, opts.NoLog, opts.NoSigs = "127.0.0.1", -1, true, true
	n := &Node{t: t, opts: *opts}
	n.Start()
	t.Cleanup(n.Stop)
	return n
}

// Cluster starts a cluster of n servers, and waits until JetStream has a leader and
// every server is current. They end with the test.
func Cluster(t testing.TB, n int, options ...Option) []*Node {
	t.Helper()
	routes := make([]string, n)
	ports := freePorts(t, n)
	for i, port := range ports {
		routes[i] = fmt.Sprintf("nats-route://127.0.0.1:%d", port)
	}
	nodes := make([]*Node, n)
	for i := range nodes {
		opts := server.Options{
			ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: -1,
			JetStream: true, StoreDir: filepath.Join(t.TempDir(), "js"), SyncAlways: true, NoLog: true, NoSigs: true,
			Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: ports[i]},
			Routes:  server.RoutesFromStr(strings.Join(routes, ",")),
		}
		for _, o := range options {
			o(&opts)
		}
		nodes[i] = &Node{t: t, opts: opts}
		nodes[i].launch()
		t.Cleanup(nodes[i].Stop)
	}
	awaitLeader(t, nodes)
	return nodes
}

func awaitLeader(t testing.TB, nodes []*Node) {
	t.Helper()
	for _, node := range nodes {
		node.ready()
	}
	Until(t, "the cluster has a leader and is current", func() bool {
		leaders := 0
		for _, node := range nodes {
			if node.srv.JetStreamIsLeader() {
				leaders++
			}
			if !node.srv.JetStreamIsCurrent() {
				return false
			}
		}
		return leaders == 1
	})
}

// URL returns the address that clients connect to.
func (n *Node) URL() string { return n.srv.ClientURL() }

// InProcessConn implements nats.InProcessConnProvider.
func (n *Node) InProcessConn() (net.Conn, error) { return n.srv.InProcessConn() }

// HandleJsz answers how the server syncs, as *server.Server does.
func (n *Node) HandleJsz(w http.ResponseWriter, r *http.Request) { n.srv.HandleJsz(w, r) }

// Raw returns the server itself.
func (n *Node) Raw() *server.Server { return n.srv }

// Stop ends the server and waits for it. Stopping twice is fine.
func (n *Node) Stop() {
	n.srv.Shutdown()
	n.srv.WaitForShutdown()
}

// Start starts a server that was stopped, on the same port and store, with changed
// options.
func (n *Node) Start(changes ...Option) {
	n.t.Helper()
	for _, change := range changes {
		change(&n.opts)
	}
	n.launch()
	n.ready()
}

// Reload changes options of the running server, as a reload of its configuration does.
func (n *Node) Reload(change Option) {
	n.t.Helper()
	change(&n.opts)
	opts := n.opts
	if err := n.srv.ReloadOptions(&opts); err != nil {
		n.t.Fatal(err)
	}
}

// MaxPayload sets the server's limit for messages.
func MaxPayload(bytes int32) Option { return func(o *server.Options) { o.MaxPayload = bytes } }

// Interval makes a server sync at intervals, as it does by default.
func Interval(o *server.Options) { o.SyncAlways, o.SyncInterval = false, time.Minute }

// Synced copies the server's store, which restarts the server. lose simulates a power
// loss without a sync since then: it restores the store, or only the given streams, from
// the copy, and restarts the server. It may be called more than once.
func (n *Node) Synced() (lose func(streams ...string)) {
	n.t.Helper()
	dir, synced := n.srv.StoreDir(), filepath.Join(n.t.TempDir(), "synced")
	n.Stop()
	n.copyDir(dir, synced)
	n.Start()
	return func(streams ...string) {
		n.t.Helper()
		n.Stop()
		if len(streams) == 0 {
			n.copyDir(synced, dir)
		}
		for _, stream := range streams {
			at := filepath.Join("$G", "streams", stream)
			n.copyDir(filepath.Join(synced, at), filepath.Join(dir, at))
		}
		n.Start()
	}
}

func (n *Node) copyDir(from, to string) {
	n.t.Helper()
	err := os.RemoveAll(to)
	if err == nil {
		err = os.CopyFS(to, os.DirFS(from))
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// Damage overwrites the first occurrence of text in the files of a stream, while the
// server is stopped. The server can't read the message with that text then.
func (n *Node) Damage(stream, text string) {
	n.t.Helper()
	dir := filepath.Join(n.srv.StoreDir(), "$G", "streams", stream, "msgs")
	n.Stop()
	damaged := false
	blocks, _ := filepath.Glob(filepath.Join(dir, "*.blk"))
	for _, block := range blocks {
		data, err := os.ReadFile(block)
		if err != nil {
			n.t.Fatal(err)
		}
		at := bytes.Index(data, []byte(text))
		if at < 0 {
			continue
		}
		copy(data[at:], bytes.Repeat([]byte{'#'}, len(text)))
		if err := os.WriteFile(block, data, 0o600); err != nil {
			n.t.Fatal(err)
		}
		damaged = true
		break
	}
	if !damaged {
		n.t.Fatalf("no file of %s has %q", stream, text)
	}
	n.Start()
}

func (n *Node) launch() {
	n.t.Helper()
	opts := n.opts
	srv, err := server.NewServer(&opts)
	if err != nil {
		n.t.Fatalf("start a NATS server: %v", err)
	}
	srv.Start()
	n.srv = srv
}

func (n *Node) ready() {
	n.t.Helper()
	if !n.srv.ReadyForConnections(readyTimeout) {
		n.t.Fatalf("the NATS server is not ready after %v", readyTimeout)
	}
	if addr, ok := n.srv.Addr().(*net.TCPAddr); ok {
		n.opts.Port = addr.Port // Start after Stop uses it again
	}
}

// OK fails the test if err is not nil.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Until polls a condition that gives no signal, and fails the test if it does not
// hold within readyTimeout.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(readyTimeout)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not after %v: %s", readyTimeout, what)
		}
	}
}

// Routes must be known before the servers start. Their ports are below the range of
// ephemeral ports, and random, since other test processes choose at the same time.
const (
	routePortMin = 20_000
	routePortMax = 32_000
)

// givenPorts has the ports that freePorts has returned.
var givenPorts sync.Map

// freePorts returns n free ports. No two tests of this process get the same.
func freePorts(t testing.TB, n int) []int {
	t.Helper()
	var ports []int
	for range 1000 {
		port := routePortMin + rand.IntN(routePortMax-routePortMin)
		if _, given := givenPorts.LoadOrStore(port, true); given {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue // taken
		}
		l.Close()
		if ports = append(ports, port); len(ports) == n {
			return ports
		}
	}
	t.Fatalf("no %d free ports between %d and %d", n, routePortMin, routePortMax)
	return nil
}
