package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// lan is an IP network whose switch is this process. Each host is a network namespace
// with a TUN device: the kernel's TCP is real, and the switch delays, loses or drops any
// packet between any two hosts, in each direction on its own. It needs none of the
// kernel's modules for that (netem, nftables), which many systems lack.
type lan struct {
	t     testing.TB
	hosts []*host

	mu     sync.Mutex
	random *rand.Rand
	rules  map[[2]int]rule // by the places of sender and receiver in hosts
	hits   int             // packets that a rule has dropped or delayed since heal
}

// host is a member of the lan.
type host struct {
	name   string // of its namespace; empty: this process's own
	number int    // the last part of its address
	device *os.File
	queues []chan packet // by sender
}

// rule is what happens to packets.
type rule struct {
	cut   bool
	delay time.Duration
	loss  float64
}

type packet struct {
	data []byte
	due  time.Time
}

const (
	lanNet = "10.77.0."
	// lanQueue is how many packets wait between two hosts: more are dropped, as by any
	// switch.
	lanQueue = 1 << 14
	lanMTU   = 1500
)

// newLAN makes the namespaces and devices. The last host is this process's.
func newLAN(t testing.TB, random *rand.Rand, names ...string) *lan {
	t.Helper()
	l := &lan{t: t, random: random, rules: map[[2]int]rule{}}
	for i, name := range append(names, "") {
		l.hosts = append(l.hosts, l.newHost(name, i+1))
	}
	for _, h := range l.hosts {
		for range l.hosts {
			queue := make(chan packet, lanQueue)
			h.queues = append(h.queues, queue)
			go h.deliver(queue)
		}
	}
	for i := range l.hosts {
		go l.serve(i)
	}
	return l
}

// newHost makes a namespace, unless name is empty, and a device in it.
func (l *lan) newHost(name string, number int) *host {
	l.t.Helper()
	h := &host{name: name, number: number}
	link := fmt.Sprint("lan", number)
	device, err := newTUN(link)
	if err != nil {
		l.t.Fatalf("make a network device: %v: %s", err, networksNeed)
	}
	h.device = device
	l.t.Cleanup(func() { device.Close() })
	at := []string{"ip"}
	if name != "" {
		at = []string{"ip", "-n", name}
		l.run("ip", "netns", "add", name)
		l.run("ip", "link", "set", link, "netns", name)
		l.run("ip", "-n", name, "link", "set", "lo", "up")
	}
	for _, command := range []string{
		fmt.Sprintf("address add %s/24 dev %s", h.address(), link), fmt.Sprintf("link set %s mtu %d up", link, lanMTU),
	} {
		l.run(append(at, strings.Fields(command)...)...)
	}
	return h
}

func (l *lan) run(command ...string) {
	l.t.Helper()
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		l.t.Fatalf("%v: %v: %s: %s", command, err, out, networksNeed)
	}
}

// newTUN makes a device that gives this process what is routed to it.
func newTUN(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err == nil {
		err = unix.SetNonblock(fd, true) // so that Close ends a Read
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func (h *host) address() string { return lanNet + fmt.Sprint(h.number) }

// serve passes on what a host sends, until its device is closed.
func (l *lan) serve(from int) {
	buf := make([]byte, 1<<16)
	for {
		n, err := l.hosts[from].device.Read(buf)
		if err != nil {
			return
		}
		if n < 20 || buf[0]>>4 != 4 { // not IPv4
			continue
		}
		to := int(buf[19]) - 1
		if to < 0 || to >= len(l.hosts) {
			continue
		}
		l.mu.Lock()
		r := l.rules[[2]int{from, to}]
		lost := r.cut || r.loss > 0 && l.random.Float64() < r.loss
		if lost || r.delay > 0 {
			l.hits++
		}
		l.mu.Unlock()
		if lost {
			continue
		}
		select {
		case l.hosts[to].queues[from] <- packet{append([]byte(nil), buf[:n]...), time.Now().Add(r.delay)}:
		default: // the queue is full
		}
	}
}

// deliver writes packets of one sender when they are due, in their order.
func (h *host) deliver(queue chan packet) {
	for p := range queue {
		if wait := time.Until(p.due); wait > 0 {
			<-time.After(wait)
		}
		if _, err := h.device.Write(p.data); err != nil {
			return // closed
		}
	}
}

// between sets what happens to packets that some hosts send to some others.
func (l *lan) between(from, to []string, r rule) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, f := range l.hosts {
		for j, t := range l.hosts {
			if i != j && isOneOf(f.name, from) && isOneOf(t.name, to) {
				l.rules[[2]int{i, j}] = r
			}
		}
	}
}

// both is between, in both directions.
func (l *lan) both(a, b []string, r rule) {
	l.between(a, b, r)
	l.between(b, a, r)
}

// heal lets everything pass again, and returns how many packets the rules have hit.
func (l *lan) heal() (hits int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.rules)
	hits, l.hits = l.hits, 0
	return hits
}

// isOneOf reports whether a host is in a list; nil is all.
func isOneOf(name string, list []string) bool {
	if list == nil {
		return true
	}
	for _, n := range list {
		if n == name {
			return true
		}
	}
	return false
}
