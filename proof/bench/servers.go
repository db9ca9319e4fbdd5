package bench

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/refold/refold/internal/natsio"
)

const (
	readyWithin = 30 * time.Second
	readyTick   = 20 * time.Millisecond
)

// servers are a NATS server or a cluster, on loopback, in a temporary directory.
type servers struct {
	dir     string
	nodes   []*server.Server
	url     string  // their address; "": in this process
	process *player // the server, if it is a separate process
}

// startServers starts n servers whose files are in a new directory under dir ("":
// the system's for temporary files). If always is set, each write is synced.
func startServers(dir string, n int, always bool) (s *servers, err error) {
	s = &servers{}
	if s.dir, err = os.MkdirTemp(dir, "refold-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	var ports []int
	if n > 1 {
		if ports, err = freePorts(n); err != nil {
			return nil, err
		}
	}
	for i := range n {
		opts := &server.Options{
			ServerName: fmt.Sprintf("bench-%d", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true,
			StoreDir: filepath.Join(s.dir, fmt.Sprint(i)), SyncAlways: always, NoSigs: true, NoLog: true,
		}
		if n > 1 {
			opts.Cluster = server.ClusterOpts{Name: "bench", Host: "127.0.0.1", Port: ports[i]}
			opts.Routes = server.RoutesFromStr(routes(ports))
		}
		node, err := server.NewServer(opts)
		if err != nil {
			return nil, fmt.Errorf("start a NATS server in %s: %w", s.dir, err)
		}
		s.nodes = append(s.nodes, node)
		go node.Start()
	}
	return s, s.ready()
}

func routes(ports []int) string {
	all := make([]string, len(ports))
	for i, port := range ports {
		all[i] = fmt.Sprintf("nats-route://127.0.0.1:%d", port)
	}
	return strings.Join(all, ",")
}

// freePorts returns ports that are free now.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() //nolint:revive // all stay open until all are chosen, so that they differ
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// ready waits until clients can connect and, in a cluster, JetStream has a
// leader that all servers follow.
func (s *servers) ready() error {
	deadline := time.Now().Add(readyWithin)
	for _, node := range s.nodes {
		if !node.ReadyForConnections(time.Until(deadline)) {
			return fmt.Errorf("the NATS server in %s was not ready within %v", s.dir, readyWithin)
		}
	}
	if len(s.nodes) == 1 {
		return nil
	}
	tick := time.NewTicker(readyTick)
	defer tick.Stop()
	for !s.led() {
		if time.Now().After(deadline) {
			return fmt.Errorf("the %d NATS servers in %s found no leader within %v", len(s.nodes), s.dir, readyWithin)
		}
		<-tick.C
	}
	return nil
}

func (s *servers) led() bool {
	leaders := 0
	for _, node := range s.nodes {
		if !node.JetStreamIsCurrent() {
			return false
		}
		if node.JetStreamIsLeader() {
			leaders++
		}
	}
	return leaders == 1
}

// of returns the server that the nth program connects to.
func (s *servers) of(n int) nats.InProcessConnProvider { return s.nodes[n%len(s.nodes)] }

// connect returns a connection of the nth program.
func (s *servers) connect(n int, name string) (*nats.Conn, error) {
	if s.url != "" {
		return nats.Connect(s.url, nats.Name(name))
	}
	return nats.Connect("", nats.InProcessServer(s.of(n)), nats.Name(name))
}

// busOptions returns the options of the nth program.
func (s *servers) busOptions(n int, name string, log *slog.Logger) natsio.Options {
	opts := natsio.Options{URL: s.url, Name: name, Logger: log}
	if s.url == "" {
		opts.InProcess = s.of(n)
	}
	return opts
}

// stop ends the servers and removes their files.
func (s *servers) stop() error {
	if s.process != nil {
		return s.process.stop()
	}
	for _, node := range s.nodes {
		node.Shutdown()
	}
	for _, node := range s.nodes {
		node.WaitForShutdown()
	}
	return os.RemoveAll(s.dir)
}
