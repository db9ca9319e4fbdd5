package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// clusterSize is how many servers there are, each with a copy of every stream.
const clusterSize = 3

// clusterServer is one server: nats-server itself, in a process of its own.
type clusterServer struct {
	name    string
	host    string // see onHost
	config  string // its file
	url     string // where the test connects
	monitor string
	front   *wire         // where daemons connect; nil: at url
	routes  map[int]*wire // where it connects to the others
	running *exec.Cmd     // nil: it is away
	out     *output
}

// buildServer builds nats-server, of the version that go.mod names, once.
var buildServer = sync.OnceValues(func() (string, error) {
	path := filepath.Join(bin, "nats-server")
	out, err := exec.Command("go", "build", "-o", path, "github.com/nats-io/nats-server/v2").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build nats-server: %w\n%s", err, out)
	}
	return path, nil
})

// cluster is three servers with wires between any two of them, and between
// daemons and each.
type cluster struct {
	t       testing.TB
	program string
	servers []*clusterServer
}

// startCluster starts one with these accounts, of which one is SYS, and waits
// until it is healthy.
func startCluster(t testing.TB, accounts string) *cluster {
	t.Helper()
	program, err := buildServer()
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, program: program}
	ports := freePorts(t, 3*clusterSize)
	at := func(n int) string { return fmt.Sprintf("127.0.0.1:%d", ports[n]) }
	for i := range clusterSize {
		s := &clusterServer{
			name: fmt.Sprint("s", i), url: "nats://" + at(3*i), monitor: "http://" + at(3*i+1),
			front: newWire(t, at(3*i)), routes: map[int]*wire{}, out: &output{},
		}
		var routes []string
		for j := range clusterSize {
			if j != i {
				s.routes[j] = newWire(t, at(3*j+2))
				routes = append(routes, "nats-route://"+s.routes[j].address())
			}
		}
		s.config = writeFile(t, s.name+".conf", serverConfig(s.name, at(3*i), at(3*i+1), at(3*i+2), filepath.Join(t.TempDir(), "store"), accounts, routes))
		c.servers = append(c.servers, s)
	}
	c.startAll()
	return c
}

// startAll starts the servers, until the end of the test, and waits until they are healthy.
func (c *cluster) startAll() {
	c.t.Helper()
	c.t.Cleanup(func() {
		for i, s := range c.servers {
			if s.running != nil {
				c.kill(i)
			}
			if c.t.Failed() {
				c.t.Logf("%s:\n%s", s.name, tail(s.out.String(), 3000))
			}
		}
	})
	for i := range c.servers {
		c.start(i)
	}
	c.healthy()
}

// serverConfig is the configuration of a server. What it tells others of its
// route's address is an address that nobody listens on: they know one another
// by their wires alone. It tells clients nothing of the other servers.
func serverConfig(name, clients, monitor, cluster, dir, accounts string, routes []string) string {
	return fmt.Sprintf(`
server_name: %s
listen: "%s"
http: "%s"
jetstream { store_dir: "%s", sync_interval: always, max_mem: 64MB, max_file: 4GB }
cluster {
  name: e2e, listen: "%s", advertise: "127.0.0.1:1", no_advertise: true
  routes: ["%s"]
}
%s
system_account: SYS
`, name, clients, monitor, dir, cluster, strings.Join(routes, `", "`), accounts)
}

// clusterAccounts let everybody do everything.
const clusterAccounts = `accounts {
  SYS { users: [{user: sys, password: sys}] }
  REFOLD { jetstream: enabled, users: [{user: refold, password: refold}] }
}
no_auth_user: refold`

// givenPorts are those that a server of some test has, or is about to have.
var givenPorts sync.Map

// freePorts returns n ports that were free a moment ago, below those from which
// systems take ports for connections: nobody gets them while their server is
// away. No two tests of this process get the same.
func freePorts(t testing.TB, n int) []int {
	t.Helper()
	var ports []int
	for range 1000 {
		port := 20_000 + rand.IntN(12_000)
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
	t.Fatalf("no %d free ports", n)
	return nil
}

// start starts a server, on its files if it ran before.
func (c *cluster) start(i int) {
	c.t.Helper()
	s := c.servers[i]
	s.running = onHost(s.host, c.program, "-c", s.config)
	s.running.Stdout, s.running.Stderr = s.out, s.out
	if err := s.running.Start(); err != nil {
		c.t.Fatalf("%s: %v", s.name, err)
	}
}

// kill ends a server at once.
func (c *cluster) kill(i int) { c.end(i, os.Kill) }

// end sends a server a signal, and waits until it has ended.
func (c *cluster) end(i int, signal os.Signal) {
	c.t.Helper()
	s := c.servers[i]
	_ = s.running.Process.Signal(signal) // it fails if the server has ended
	late := time.AfterFunc(time.Minute, func() { _ = s.running.Process.Kill() })
	_ = s.running.Wait()
	if !late.Stop() {
		c.t.Errorf("%s does not end within a minute", s.name)
	}
	s.running = nil
}

// healthy waits until every server says that its copies are there and current.
func (c *cluster) healthy() {
	c.t.Helper()
	for _, s := range c.servers {
		says := "nothing"
		healthy := eventually(c.t, 2*time.Minute, func() bool {
			answer, err := http.Get(s.monitor + "/healthz")
			if err != nil {
				says = err.Error()
				return false
			}
			defer answer.Body.Close()
			text, _ := io.ReadAll(answer.Body)
			says = string(text)
			return answer.StatusCode == http.StatusOK
		})
		if !healthy {
			c.t.Fatalf("%s is not healthy after two minutes: %s", s.name, says)
		}
	}
}

// monitoring reads a page of a server's monitoring.
func (s *clusterServer) monitoring(page string, into any) error {
	answer, err := http.Get(s.monitor + page)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	return json.NewDecoder(answer.Body).Decode(into)
}

// bridges is how many bridges are connected to a server.
func (s *clusterServer) bridges() (n int) {
	var conns struct {
		Connections []struct {
			Name string `json:"name"`
		} `json:"connections"`
	}
	_ = s.monitoring("/connz", &conns) // a server that does not say has none
	for _, c := range conns.Connections {
		if strings.Contains(c.Name, "bridge") {
			n++
		}
	}
	return n
}

// fronts is where daemons connect.
func (c *cluster) fronts() string {
	var all []string
	for _, s := range c.servers {
		if s.front == nil {
			return c.direct()
		}
		all = append(all, "nats://"+s.front.address())
	}
	return strings.Join(all, ",")
}

// direct is where the test connects, past all wires that are cut.
func (c *cluster) direct() string {
	var all []string
	for _, s := range c.servers {
		all = append(all, s.url)
	}
	return strings.Join(all, ",")
}

// monitors is where the servers' monitoring is.
func (c *cluster) monitors() string {
	var all []string
	for _, s := range c.servers {
		all = append(all, s.monitor)
	}
	return strings.Join(all, ",")
}

// cutOff cuts what a server says to the others, what it hears of them, or both,
// or makes it whole again.
func (c *cluster) cutOff(i int, cut, says, hears bool) {
	for j, other := range c.servers {
		if j == i {
			continue
		}
		if says {
			c.servers[i].routes[j].set(cut, toward)
			other.routes[i].set(cut, back)
		}
		if hears {
			c.servers[i].routes[j].set(cut, back)
			other.routes[i].set(cut, toward)
		}
	}
}

// leader returns the number of the server that leads a stream, or -1.
func (c *cluster) leader(nc *nats.Conn, stream string) int {
	var info struct {
		Cluster struct {
			Leader string `json:"leader"`
		} `json:"cluster"`
	}
	if answer, err := ask(nc, "$JS.API.STREAM.INFO."+stream, ""); err != nil || json.Unmarshal(answer, &info) != nil {
		return -1
	}
	return slices.IndexFunc(c.servers, func(s *clusterServer) bool { return s.name == info.Cluster.Leader })
}

// ask asks JetStream's API.
func ask(nc *nats.Conn, subject, request string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	answer, err := nc.RequestWithContext(ctx, subject, []byte(request))
	if err != nil {
		return nil, err
	}
	var failed struct {
		Error *struct {
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &failed); err == nil && failed.Error != nil {
		return nil, fmt.Errorf("%s: %s", subject, failed.Error.Description)
	}
	return answer.Data, nil
}
