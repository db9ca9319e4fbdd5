package e2e_test

// Networks that fail. Three servers, two session-actors, two bridges and the clients have
// network namespaces of their own, and the load of the cluster's tests. Links are cut, in
// one direction or both, delayed, or lose packets, in an order that the seed gives. Always:
// nothing is lost, nothing is there twice, and everything goes on by itself within a bound.
//
// Unlike a wire (cluster_wire_test.go), a link that is whole again does not deliver at
// once: TCP repeats what was lost ever more rarely, so that a long cut lasts longer for
// those who keep their connections.
//
// The test runs itself again in namespaces of its own (users, processes, mounts, networks),
// so that nothing is left of it however it ends.

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// networksNeed is what the test needs.
const networksNeed = "run this on Linux as root or in a container with CAP_SYS_ADMIN, or where users may have namespaces (sysctl user.max_user_namespaces above 0, kernel.apparmor_restrict_unprivileged_userns=0), with iproute2 and the device /dev/net/tun"

// networksSetup gives the process its own /proc, and `ip netns` a place for namespaces.
const networksSetup = "mount --make-rprivate / && mount -t proc proc /proc && mount -t tmpfs tmpfs /run && mkdir /run/netns && ip link set lo up"

// backWithin is how long, after the end of a fault, new runs may take to end: longer than
// a connection is believed in that says nothing (30 s), an election, and a lease.
const backWithin = 90 * time.Second

func TestNetworks(t *testing.T) { //nolint:paralleltest // the network of this process fails
	if os.Getenv(networksEnv) == "" {
		runInNamespaces(t)
		return
	}
	if out, err := exec.Command("sh", "-c", networksSetup).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s: %s", err, out, networksNeed)
	}
	n := startNetworks(t)
	faults := n.faults()
	n.random.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	if n.rounds() == 1 {
		faults = faults[:3]
	}
	for _, f := range faults {
		n.suffer(f)
	}
	n.drained()
}

// runInNamespaces runs this test in namespaces of its own.
func runInNamespaces(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil {
		t.Fatalf("%v: %s", err, networksNeed)
	}
	if _, err := buildServer(); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-test.run=^TestNetworks$", "-test.v"}
	if deadline, ok := t.Deadline(); ok {
		args = append(args, fmt.Sprint("-test.timeout=", time.Until(deadline)-10*time.Second))
	}
	inside := exec.Command(self, args...)
	inside.Env = append(os.Environ(), networksEnv+"="+bin)
	inside.Stderr = os.Stderr
	inside.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL,
	}
	if uid := os.Getuid(); uid != 0 {
		inside.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		inside.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		inside.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	runtime.LockOSThread() // its end would be the parent's, for Pdeathsig
	defer runtime.UnlockOSThread()
	var said output
	inside.Stdout = io.MultiWriter(os.Stdout, &said) // nights are long
	err = inside.Run()
	switch exited := (*exec.ExitError)(nil); {
	case errors.As(err, &exited):
		t.Fatal("it failed in its namespaces")
	case err != nil:
		t.Fatalf("no namespaces can be made: %v: %s", err, networksNeed)
	case !strings.Contains(said.String(), "--- PASS: TestNetworks"):
		t.Fatal("it did not run in its namespaces")
	}
}

// networks is a load whose parts are hosts of a lan.
type networks struct {
	*load
	lan *lan
}

// The hosts.
var (
	lanServers = []string{"s0", "s1", "s2"}
	lanActors  = []string{"actor0", "actor1"}
	lanBridges = []string{"bridge0", "bridge1"}
	lanClients = []string{""}
)

func startNetworks(t *testing.T) *networks {
	t.Helper()
	seed := clusterNumber(t, clusterSeedEnv, rand.Uint64N(1_000_000))
	lan := newLAN(t, rand.New(rand.NewPCG(seed, 2)), slices.Concat(lanServers, lanActors, lanBridges)...)
	program, err := buildServer()
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, program: program}
	for i, name := range lanServers {
		at := func(of, port int) string { return fmt.Sprintf("%s:%d", lan.hosts[of].address(), port) }
		s := &clusterServer{name: name, host: name, url: "nats://" + at(i, 4222), monitor: "http://" + at(i, 8222), out: &output{}}
		var routes []string
		for j := range lanServers {
			if j != i {
				routes = append(routes, "nats-route://"+at(j, 6222))
			}
		}
		s.config = writeFile(t, name+".conf", serverConfig(name, at(i, 4222), at(i, 8222), at(i, 6222), t.TempDir(), clusterAccounts, routes))
		c.servers = append(c.servers, s)
	}
	c.startAll()
	return &networks{load: startLoadOn(t, seed, c, slices.Concat(lanActors, lanBridges)), lan: lan}
}

// fault is one way in which the network fails.
type fault struct {
	name    string
	moments int // at which bridges may be lost with what they have in progress
	begin   func()
}

// faults are all of them. A rule for a server is for the one that leads the log.
func (n *networks) faults() []fault {
	cut := rule{cut: true}
	leader := func() (leader, others []string) {
		name := lanServers[n.leads()]
		return []string{name}, slices.DeleteFunc(slices.Clone(lanServers), func(s string) bool { return s == name })
	}
	one := func(of []string) []string { i := n.random.IntN(len(of)); return of[i : i+1] }
	every := func(r rule) func() { return func() { n.lan.between(nil, nil, r) } }
	return []fault{
		{"the leader is cut off from all", 2, func() { s, _ := leader(); n.lan.both(s, nil, cut) }},
		{"the leader is cut off from the other servers", 2, func() { s, others := leader(); n.lan.both(s, others, cut) }},
		{"the other servers don't hear the leader", 2, func() { s, others := leader(); n.lan.between(s, others, cut) }},
		{"the leader doesn't hear the other servers", 2, func() { s, others := leader(); n.lan.between(others, s, cut) }},
		{"the link of two servers is cut", 2, func() { s, others := leader(); n.lan.both(s, one(others), cut) }},
		{"no server reaches another", 2, func() { n.lan.both(lanServers, lanServers, cut) }},
		{"a session-actor is cut off", 0, func() { n.lan.both(one(lanActors), nil, cut) }},
		{"a session-actor is not heard", 0, func() { n.lan.between(one(lanActors), nil, cut) }},
		{"a bridge is cut off", 1, func() { n.lan.both(one(lanBridges), nil, cut) }},
		{"a bridge is not heard", 1, func() { n.lan.between(one(lanBridges), nil, cut) }},
		{"a bridge hears nothing", 1, func() { n.lan.between(nil, one(lanBridges), cut) }},
		{"the clients are cut off", 0, func() { n.lan.both(lanClients, nil, cut) }},
		{"every link takes 200 ms", 2, every(rule{delay: 200 * time.Millisecond})},
		{"every link takes 2 s", 2, every(rule{delay: 2 * time.Second})},
		{"every link loses 30 %", 2, every(rule{loss: 0.3})},
		{"the leader's links take 2 s", 2, func() { s, _ := leader(); n.lan.both(s, nil, rule{delay: 2 * time.Second}) }},
	}
}

// suffer has the load run while the network fails, and afterwards until new runs end, which
// must be soon, and all have ended.
func (n *networks) suffer(f fault) {
	n.disturbed(f.name, f.moments, func() {
		held := n.held()
		seen := n.watch()
		f.begin()
		n.lasts(held)
		if n.lan.heal() == 0 {
			n.t.Error("the fault has hit no packet")
		}
		seen.healed = time.Now()
		until(n.t, backWithin, "runs end again", func() bool { return seen.runs(seen.healed) >= loadSlots })
		n.t.Log(seen.row(f.name, held))
	})
}

// cutMinutes is for how long something is cut at most in nightly rounds.
const cutMinutes = 2 * time.Minute

// held is for how long a fault lasts.
func (n *networks) held() time.Duration {
	if n.rounds() == 1 {
		return cutShort
	}
	return []time.Duration{cutShort, cutLong, cutMinutes}[n.random.IntN(3)]
}

// observed is what could be seen from outside while the network failed.
type observed struct {
	n             *networks
	began, healed time.Time
	logs          []int // lengths of the daemons' logs before
}

func (n *networks) watch() *observed {
	s := &observed{n: n, began: time.Now()}
	for _, d := range n.daemons {
		s.logs = append(s.logs, len(d.out.String()))
	}
	return s
}

// runs is how many runs have ended since a time.
func (s *observed) runs(since time.Time) (count int) {
	s.n.mu.Lock()
	defer s.n.mu.Unlock()
	for _, at := range s.n.endedAt {
		if at.After(since) {
			count++
		}
	}
	return count
}

// row is a row of docs/networks.md.
func (s *observed) row(name string, held time.Duration) string {
	pause, slowest, first := s.n.pauseSince(s.began), time.Duration(0), time.Duration(0)
	s.n.mu.Lock()
	for _, at := range s.n.endedAt {
		if at.After(s.healed) && first == 0 {
			first = at.Sub(s.healed)
		}
	}
	for _, a := range s.n.acked {
		if a.at.After(s.began) {
			slowest = max(slowest, a.took)
		}
	}
	s.n.mu.Unlock()
	told := func(daemons []*daemon, from []int) string {
		counts := map[string]int{}
		for i, d := range daemons {
			for _, m := range loggedWarning.FindAllStringSubmatch(d.out.String()[from[i]:], -1) {
				counts[strings.Trim(m[1], `"`)]++
			}
		}
		var all []string
		for msg, n := range counts {
			all = append(all, fmt.Sprintf("%s %d", msg, n))
		}
		slices.Sort(all)
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("| %s | %v | runs ended during it: %d; longest pause %v; slowest acknowledgement %v; after it %v | %s | %s |", name, held,
		s.runs(s.began)-s.runs(s.healed), pause.Round(100*time.Millisecond), slowest.Round(100*time.Millisecond), first.Round(100*time.Millisecond),
		told(s.n.daemons[:2], s.logs[:2]), told(s.n.daemons[2:], s.logs[2:]))
}

// loggedWarning is a line of a daemon's log about something unusual.
var loggedWarning = regexp.MustCompile(`level=(?:WARN|ERROR|INFO) msg=("[^"]+"|\S+)`)
