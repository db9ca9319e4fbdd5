//go:build unix

package e2e_test

// Upgrades under load. Three servers, each stream with three copies; two session-actors,
// two bridges of a model, two bridges of tools and two processes of clients, of the commit
// that testdata/upgrade-from names. They are replaced one by one by this checkout's, the
// kinds in every order, so that both builds run side by side; when half of a kind is
// replaced, a server is restarted; and everything is replaced by the old build again.
// During each of these steps a call of a `refold run` waits, and a turn, call or run of
// the process itself. When a bridge follows another one, all effects that are not
// acknowledged are delivered again, as a server may do that was restarted.
//
// Always: every run completes, every call runs once and every turn of the model is asked
// once, no outcome is unknown, no bridge takes over what another one began, and both
// builds fold the log to the same hashes.

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"
)

// upgradeOrders are all orders of the kinds of processes.
var upgradeOrders = [][]string{
	{"session-actors", "bridges", "clients"}, {"session-actors", "clients", "bridges"},
	{"bridges", "session-actors", "clients"}, {"bridges", "clients", "session-actors"},
	{"clients", "session-actors", "bridges"}, {"clients", "bridges", "session-actors"},
}

// TestUpgrade tries one order, which the seed chooses; in nightly rounds all of them.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	u := startUpgrade(t, clusterNumber(t, clusterSeedEnv, rand.Uint64N(1_000_000)))
	orders := u.random.Perm(len(upgradeOrders))
	if u.rounds() == 1 {
		orders = orders[:1]
	}
	for _, i := range orders {
		u.upgraded(upgradeOrders[i])
	}
	for _, p := range u.parts {
		if p.daemon.cmd == nil {
			continue // clients that have ended
		}
		if err := p.daemon.drain(time.Minute); err != nil {
			t.Errorf("%s after SIGTERM: %v", p.name, err)
		}
	}
}

// upgraded upgrades everything in this order, restarting a server in the middle of each
// kind, and goes back to the old build in the same order.
func (u *upgrade) upgraded(order []string) {
	u.t.Helper()
	test := u.t
	passed := test.Run(strings.Join(order, ", "), func(t *testing.T) {
		u.t = t
		defer func() { u.t = test }()
		u.clientsBegin()
		u.busy(loadSlots)
		servers := u.random.Perm(clusterSize)
		for i, kind := range order {
			u.replacedAll(kind, thisBuild, func() { u.serverRestarted(servers[i]) })
		}
		for _, kind := range order {
			u.replacedAll(kind, oldBuild, func() {})
		}
		u.clientsEnd()
		u.checkAll()
	})
	if !passed {
		test.FailNow() // what comes next would count it again
	}
}

// replacedAll replaces all parts of a kind by those of a build, and does something else
// when half of them are replaced.
func (u *upgrade) replacedAll(kind, build string, half func()) {
	u.t.Helper()
	var took, pause time.Duration
	parts := u.of(kind)
	for i, p := range parts {
		began := time.Now()
		u.replaced(p, build)
		took, pause = took+time.Since(began), max(pause, u.pauseSince(began))
		if i+1 == len(parts)/2 {
			half()
		}
	}
	u.t.Logf("the %d %s are replaced by the %s build's in %v; longest pause without the end of a run %v", len(parts), kind, build,
		took.Round(100*time.Millisecond), pause.Round(100*time.Millisecond))
}

// replaced replaces one part by that of a build, while a call of a `refold run` is under
// way, and what the part itself does: a turn, a call, or a run.
func (u *upgrade) replaced(p *member, build string) {
	u.t.Helper()
	cli, own := u.refoldRun(), u.world.wait(p.owns)
	u.begun(map[string]*waiting{"a call of refold run": cli.call, "what " + p.name + " does": own})
	ended := p.daemon.end(syscall.SIGTERM)
	if p.kind != "bridges" { // these end when their calls have ended
		ended.within(u.t, time.Minute)
	}
	p.begin(u, build)
	switch p.kind {
	case "session-actors":
		shared(u.t, u.parts[0].daemon, u.parts[1].daemon)
	case "bridges":
		until(u.t, loadWithin, "a turn or call of "+p.name, func() bool { return u.world.deeds(p.name) > 0 })
		u.deliveredAgain(p.consumer)
	}
	for what, held := range map[string]*waiting{"a call of refold run": cli.call, "a turn or call": own} {
		select {
		case <-held.broken:
			u.t.Errorf("%s broke off when %s followed", what, p.name)
		default:
		}
		close(held.released)
	}
	if p.kind == "bridges" {
		ended.within(u.t, time.Minute)
	}
	cli.ends(u.t)
	u.busy(loadSlots / 2)
}

// deliveredAgain has a consumer of bridges deliver again what is not acknowledged, and
// all that came after it.
func (u *upgrade) deliveredAgain(consumer string) {
	u.t.Helper()
	var info struct {
		Pending uint64 `json:"num_pending"`
	}
	for _, what := range []string{"RESET", "INFO"} {
		until(u.t, time.Minute, what+" of "+consumer+", and nothing is pending", func() bool {
			data, err := ask(u.nc, "$JS.API.CONSUMER."+what+".REFOLD_FX."+consumer, "")
			return err == nil && json.Unmarshal(data, &info) == nil && (what == "RESET" || info.Pending == 0)
		})
	}
}

// serverRestarted restarts a server while a call and a turn are under way.
func (u *upgrade) serverRestarted(i int) {
	u.t.Helper()
	began := time.Now()
	cli, turn := u.refoldRun(), u.world.wait(func(d deed) bool { return d.tool == "" && ofClients(d) })
	u.begun(map[string]*waiting{"a call of refold run": cli.call, "a turn": turn})
	u.end(i, u.stopServers)
	u.start(i)
	u.healthy()
	close(turn.released)
	close(cli.call.released)
	cli.ends(u.t)
	u.busy(loadSlots / 2)
	u.t.Logf("%s is restarted in %v; longest pause without the end of a run %v", u.servers[i].name,
		time.Since(began).Round(100*time.Millisecond), u.pauseSince(began).Round(100*time.Millisecond))
}

// begun waits until all of these wait.
func (u *upgrade) begun(all map[string]*waiting) {
	u.t.Helper()
	late := time.After(loadWithin)
	for what, held := range all {
		select {
		case <-held.began:
		case <-late:
			u.t.Fatalf("not within %v: %s begins", loadWithin, what)
		}
	}
}

// checkAll checks what is left when nothing is under way.
func (u *upgrade) checkAll() {
	u.t.Helper()
	u.delivered() // a bridge that is offered an effect again may settle it again, which changes nothing
	if all := u.world.others(); len(all) > 0 {
		u.t.Errorf("not once: %q", all)
	}
	u.folded()
	if got := u.quarantined(); len(got) > 0 {
		u.t.Errorf("quarantined: %q, want no session", got)
	}
	if n := u.state("REFOLD_DEAD").Messages; n != 0 {
		u.t.Errorf("%d dead letters, want none", n)
	}
}

// folded folds all sessions with the programs of both builds, and compares the hashes.
func (u *upgrade) folded() {
	u.t.Helper()
	hashes := map[string]map[string]string{}
	for _, build := range []string{thisBuild, oldBuild} {
		for _, args := range [][]string{{"replay", "--all", "--verify", "--json"}, {"verify", "--all"}} {
			out, errOut, status := run(u.t, time.Minute, nil, of(build, "refold"), append([]string{"--nats", u.direct()}, args...)...)
			if status != 0 {
				u.t.Errorf("%v of the %s build: status %d\n%s%s", args, build, status, tail(out, 2000), tail(errOut, 2000))
			}
			if args[0] == "replay" {
				hashes[build] = u.hashes(out)
			}
		}
	}
	got, want := hashes[thisBuild], hashes[oldBuild]
	if len(got) != len(want) || len(got) < len(u.asked) {
		u.t.Errorf("this build folds %d sessions, the old one %d, want %d or more", len(got), len(want), len(u.asked))
	}
	for sid, hash := range got {
		if hash != want[sid] {
			u.t.Errorf("%s: this build folds it to %s, the old one to %s", sid, hash, want[sid])
		}
	}
}

// hashes reads what `refold replay --json` prints: of each session the number of its
// events, and the hash.
func (u *upgrade) hashes(out string) map[string]string {
	u.t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(out) {
		var folded struct {
			Session, Hash string
			Events        int
		}
		u.read([]byte(line), &folded)
		if folded.Hash != "" {
			all[folded.Session] = fmt.Sprint(folded.Hash, " after ", folded.Events, " events")
		}
	}
	return all
}
