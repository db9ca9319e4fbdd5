package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// clusterSize is how many servers there are, each with a copy of every stream.
const clusterSize = 3

// buildServer builds nats-server itself, of the version that go.mod names, once.
// Its processes are built without the race detector, which finds a race of
// nats-server 2.15.2 in clusters (see internal/bus), and they can be killed.
var buildServer = sync.OnceValues(func() (string, error) {
	path := filepath.Join(bin, "nats-server")
	out, err := exec.Command("go", "build", "-o", path, "github.com/nats-io/nats-server/v2").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build nats-server: %w\n%s", err, out)
	}
	return path, nil
})

// clusterServer is one server in a process of its own.
type clusterServer struct {
	name    string
	config  string // its file
	url     string // where it really is
	monitor string
	front   *wire         // where daemons connect
	routes  map[int]*wire // where it connects to the others
	cmd     *exec.Cmd
	out     *output
}

// cluster is three servers with wires between any two of them, and between
// daemons and each.
type cluster struct {
	t       testing.TB
	program string
	servers []*clusterServer
}

// startCluster starts one and waits until it is healthy.
func startCluster(t testing.TB) *cluster {
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
		s.config = writeFile(t, s.name+".conf", serverConfig(s.name, at(3*i), at(3*i+1), at(3*i+2), t.TempDir(), routes))
		c.servers = append(c.servers, s)
	}
	t.Cleanup(func() {
		for _, s := range c.servers {
			s.kill()
			if t.Failed() {
				t.Logf("%s:\n%s", s.name, tail(s.out.String(), 3000))
			}
		}
	})
	for i := range c.servers {
		c.start(i)
	}
	c.healthy()
	return c
}

// serverConfig is the configuration of a server. What it tells others of its
// route's address is an address that nobody listens on: they know one another
// by their wires alone. It tells clients nothing of the other servers.
func serverConfig(name, clients, monitor, cluster, dir string, routes []string) string {
	return fmt.Sprintf(`
server_name: %s
listen: "%s"
http: "%s"
jetstream { store_dir: "%s", sync_interval: always, max_mem: 64MB, max_file: 4GB }
cluster {
  name: e2e, listen: "%s", advertise: "127.0.0.1:1", no_advertise: true
  routes: ["%s"]
}
accounts {
  SYS { users: [{user: sys, password: sys}] }
  REFOLD { jetstream: enabled, users: [{user: refold, password: refold}] }
}
system_account: SYS
no_auth_user: refold
`, name, clients, monitor, dir, cluster, strings.Join(routes, `", "`))
}

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
	s.cmd = exec.Command(c.program, "-c", s.config)
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.out
	if err := s.cmd.Start(); err != nil {
		s.cmd = nil
		c.t.Fatal(err)
	}
}

// kill ends a server at once (SIGKILL).
func (s *clusterServer) kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}

// end asks a server to end (SIGTERM), and waits until it has.
func (c *cluster) end(i int) {
	c.t.Helper()
	s := c.servers[i]
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
	late := time.AfterFunc(time.Minute, func() { _ = s.cmd.Process.Kill() })
	_ = s.cmd.Wait()
	if !late.Stop() {
		c.t.Errorf("%s does not end within a minute", s.name)
	}
	s.cmd = nil
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

// routesNow is how many connections to other servers a server has; -1 if it does
// not say.
func (s *clusterServer) routesNow() int {
	var routes struct {
		Count *int `json:"num_routes"`
	}
	if s.monitoring("/routez", &routes) != nil || routes.Count == nil {
		return -1
	}
	return *routes.Count
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
		all = append(all, "nats://"+s.front.address())
	}
	return strings.Join(all, ",")
}

// direct is where the test connects, past all wires.
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

// sever ends all that goes on between the servers, for good.
func (c *cluster) sever() {
	for _, s := range c.servers {
		for _, route := range s.routes {
			route.sever()
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
