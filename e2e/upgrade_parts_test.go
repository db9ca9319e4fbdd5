//go:build unix

package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/client"
)

// upgradeGrace is longer than what a bridge has begun waits.
const upgradeGrace = "2m"

// lameDuck is the shortest time that a server may take to leave.
const lameDuck = `
lame_duck_duration: "30s"
lame_duck_grace_period: "1s"`

// upgrade is a load whose parts are replaced by those of other builds.
type upgrade struct {
	*load
	test        *testing.T // as long as it lasts processes run
	world       *world
	parts       []*member // two session-actors, two bridges of the model, two of tools, two processes of clients
	serial      int       // of names
	runsOf      int       // runs of `refold run`
	stopServers os.Signal
}

// member is a process that others follow.
type member struct {
	kind     string // as in upgradeOrders
	program  string // as of returns it
	place    string // of the processes that follow one another
	consumer string // of a bridge
	args     func(name string) []string
	name     string // of this process: bridges are known by it
	daemon   *daemon
}

// ofClients reports whether a deed is of a session of the clients, not of `refold run`:
// if the turn of one waited, its call would never begin.
func ofClients(d deed) bool { return strings.HasPrefix(d.sid, "clients") }

// owns reports whether the part does a deed, or asked for it.
func (p *member) owns(d deed) bool {
	if !ofClients(d) {
		return false
	}
	switch p.kind {
	case "bridges":
		return d.by == p.name && (d.tool == "" || !loadSafe[d.tool])
	case "clients":
		return strings.HasPrefix(d.sid, p.place+"-") && d.tool == ""
	default:
		return d.tool == "" // session-actors share all
	}
}

// begin starts the part's process of a build.
func (p *member) begin(u *upgrade, build string) {
	u.serial++
	p.name = fmt.Sprint(p.place, "-", u.serial)
	p.daemon = (&daemon{t: u.test, name: of(build, p.program), args: p.args(p.name), out: &output{}}).begin()
}

// startUpgrade starts everything of the old build.
func startUpgrade(t *testing.T, seed uint64) *upgrade {
	t.Helper()
	for _, build := range []func() error{buildPeer, buildOld} {
		if err := build(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("seed %d; %s=%d repeats what was done, when it was done depends on the machine", seed, clusterSeedEnv, seed)
	u := &upgrade{test: t, world: startWorld(t), stopServers: syscall.SIGTERM}
	u.load = &load{
		cluster: startCluster(t, clusterAccounts+lameDuck), t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 3)),
		ledger: u.world.ledger.Name(), runs: map[string]int{}, asked: map[string]int{},
	}
	u.ended.L = &u.mu
	if u.rounds() > 1 {
		u.stopServers = syscall.SIGUSR2 // lame duck mode
	}
	install := writeFile(t, "install.json", jsonText(t, fakeRecord()))
	common := []string{"--replicas", fmt.Sprint(clusterSize), "--durability", "always", "--monitor", u.monitors(), "--nats", u.fronts()}
	dir := t.TempDir() // of the clients' journals
	actor := func(string) []string { return append(slices.Clone(common), "--install", install) }
	models := func(name string) []string {
		return append(slices.Clone(common), "--grace", upgradeGrace, "--model", "fake=openai-chat:"+u.world.url+"/"+name+"/v1")
	}
	tools := func(name string) []string {
		return []string{"tools", u.fronts(), name, u.world.url + "/" + name + "/call"}
	}
	for i := range 2 {
		u.parts = append(u.parts, &member{kind: "session-actors", program: "session-actor", place: fmt.Sprint("actor", i), args: actor})
	}
	for i := range 2 {
		place := fmt.Sprint("clients", i)
		u.parts = append(u.parts,
			&member{kind: "bridges", program: "bridge", place: fmt.Sprint("models", i), args: models, consumer: "llm-fake"},
			&member{kind: "bridges", program: "peer", place: fmt.Sprint("tools", i), args: tools, consumer: "tool-lab"},
			&member{kind: "clients", program: "peer", place: place, args: func(string) []string {
				return []string{"clients", u.direct(), place, filepath.Join(dir, place)}
			}})
	}
	u.parts[0].begin(u, oldBuild)
	u.watch()
	for _, p := range slices.Concat(u.of("session-actors")[1:], u.of("bridges")) {
		p.begin(u, oldBuild)
	}
	return u
}

// fakeRecord has the tools of the load, and the world's model.
func fakeRecord() object { return loadRecord("lab", object{"provider": "fake", "model": "m"}) }

// of returns the parts of a kind, in the order in which they are replaced.
func (u *upgrade) of(kind string) []*member {
	return slices.DeleteFunc(slices.Clone(u.parts), func(p *member) bool { return p.kind != kind })
}

// watch connects the test, once there is a record for new sessions.
func (u *upgrade) watch() {
	u.t.Helper()
	u.nc = connect(u.t, u.direct())
	var err error
	if u.js, err = jetstream.New(u.nc); err == nil {
		u.client, err = client.Connect(u.t.Context(), client.Options{URL: u.direct()})
	}
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(u.client.Close)
	recordStored(u.t, u.nc)
	listening, cancel := context.WithCancel(context.Background())
	var tail sync.WaitGroup
	tail.Go(func() { u.follow(listening) })
	u.t.Cleanup(func() {
		cancel()
		tail.Wait()
	})
}

// clientsBegin starts the clients.
func (u *upgrade) clientsBegin() {
	for _, p := range u.of("clients") {
		p.begin(u, oldBuild)
	}
}

// clientsEnd lets the clients end what they have begun, and notes what they have asked
// for. It fails if a session has not ended.
func (u *upgrade) clientsEnd() {
	u.t.Helper()
	for _, p := range u.of("clients") {
		p.daemon.end(syscall.SIGHUP).within(u.t, loadWithin)
		begun := map[string]bool{}
		for _, line := range lines(u.t, p.args("")[3]) {
			what, sid, _ := strings.Cut(string(line), " ")
			begun[sid] = what == "begun"
			u.asked[sid] = loadRuns
		}
		for sid, open := range begun {
			if open {
				u.t.Errorf("%s has begun and not ended", sid)
			}
		}
	}
}

// cliRun is a `refold run` whose first call that may not run twice waits.
type cliRun struct {
	build, sid string
	call       *waiting
	ended      chan error
	out, told  bytes.Buffer
}

// refoldRun starts one, of the old build and of this one in turn.
func (u *upgrade) refoldRun() *cliRun {
	u.t.Helper()
	u.runsOf++
	r := &cliRun{build: []string{oldBuild, thisBuild}[u.runsOf%2], sid: fmt.Sprint("cli-", u.runsOf), ended: make(chan error, 1)}
	r.call = u.world.wait(func(d deed) bool { return d.sid == r.sid && d.tool != "" && !loadSafe[d.tool] })
	u.asked[r.sid] = 1
	ctx, cancel := context.WithTimeout(context.Background(), 2*loadWithin)
	u.test.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program(of(r.build, "refold")), "--nats", u.direct(), "run", r.sid, "run 1 of "+r.sid)
	cmd.Stdout, cmd.Stderr = &r.out, &r.told
	if err := cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	go func() { r.ended <- cmd.Wait() }()
	return r
}

// ends waits until it ends, and checks how.
func (r *cliRun) ends(t *testing.T) {
	t.Helper()
	if err := <-r.ended; err != nil || r.out.String() != "ended\n" {
		t.Errorf("refold run %s of the %s build: %v; it prints %q and %q, want ended", r.sid, r.build, err, r.out.String(), tail(r.told.String(), 2000))
	}
}

// ending is a process that is about to end.
type ending struct {
	*daemon
	status chan error
}

// end sends the process a signal that ends it.
func (d *daemon) end(signal os.Signal) ending {
	d.t.Helper()
	if err := d.cmd.Process.Signal(signal); err != nil {
		d.t.Fatal(err)
	}
	return d.ending()
}

// ending waits for the end of the process, which does not start again.
func (d *daemon) ending() ending {
	e := ending{d, make(chan error, 1)}
	cmd := d.cmd
	go func() { e.status <- cmd.Wait() }()
	return e
}

// within waits until it has ended, and checks that it ended well.
func (e ending) within(t *testing.T, most time.Duration) {
	t.Helper()
	select {
	case err := <-e.status:
		e.cmd = nil
		if err != nil {
			t.Errorf("%s %v ends: %v", e.name, e.args, err)
		}
	case <-time.After(most):
		t.Fatalf("%s %v does not end within %v", e.name, e.args, most)
	}
}

// quarantined returns the keys of sessions that were stopped.
func (u *upgrade) quarantined() (all []string) {
	u.t.Helper()
	u.each("KV_REFOLD_SNAPSHOTS", func(m jetstream.Msg) {
		if strings.Contains(m.Subject(), ".q.") && len(m.Data()) > 0 {
			all = append(all, m.Subject())
		}
	})
	return all
}

// state returns how far a stream goes.
func (u *upgrade) state(stream string) extent {
	u.t.Helper()
	var info struct {
		State extent `json:"state"`
	}
	data, err := ask(u.nc, "$JS.API.STREAM.INFO."+stream, "")
	if err == nil {
		err = json.Unmarshal(data, &info)
	}
	if err != nil {
		u.t.Fatal(err)
	}
	return info.State
}
