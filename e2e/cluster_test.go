package e2e_test

// Three servers, each stream with three copies, every write synced; two
// session-actors and two bridges; sessions with calls that may not run twice.
// Under this load leaders step down, a server is killed, the network is cut,
// and servers and daemons are restarted one after the other. Always: every
// acknowledged run ends, every effect is published and settled once, no call
// that is not retry-safe runs twice, the notices of a session are numbered
// without a gap, all copies of all streams go equally far, and the log folds
// again to the same bytes.

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// clusterSeedEnv, if set, is the seed of what is done when.
	clusterSeedEnv = "REFOLD_CLUSTER_SEED"
	// clusterRoundsEnv, if set, is how often each disturbance is repeated; from 2
	// on what is cut is cut for longer than any lease lasts.
	clusterRoundsEnv = "REFOLD_CLUSTER_ROUNDS"
)

const (
	// cutShort is longer than a pin lasts, than a bridge is believed alive that
	// says nothing, and than most elections take.
	cutShort = 6 * time.Second
	// cutLong is longer than the lease of an effect, and the silence after which
	// another bridge takes it over.
	cutLong = 18 * time.Second
)

// unsafeAtOnce is how many calls that may not run twice are in progress at one
// moment at most: no turn of the load has more than two. So many may end
// outcome_unknown for each moment at which a bridge died or was cut off, and no
// more; without one, none.
const unsafeAtOnce = 2 * loadSlots

// lost is what bridges that died or were cut off may leave behind.
type lost struct {
	unknown int // calls that ended outcome_unknown
	begun   int // turns of the model that another bridge began again, each time counted
}

// losable is what may be lost at so many moments: in each every session has one
// turn under way at most, of its model or of calls.
func losable(moments int) lost {
	return lost{unknown: moments * unsafeAtOnce, begun: moments * loadSlots}
}

// TestClusterLeaders makes leaders step down, and then restarts servers and
// daemons one after the other.
func TestClusterLeaders(t *testing.T) {
	t.Parallel()
	l := startLoad(t, clusterNumber(t, clusterSeedEnv, rand.Uint64N(1_000_000)))
	l.disturbed("leaders step down", 0, l.leadersStepDown)
	l.disturbed("servers and daemons are restarted", 1, l.restarted) // one bridge is killed
	l.drained()
}

// TestClusterCut kills the server that leads the log, and then cuts another one
// off.
func TestClusterCut(t *testing.T) {
	t.Parallel()
	l := startLoad(t, clusterNumber(t, clusterSeedEnv, rand.Uint64N(1_000_000)))
	l.disturbed("a server is killed", 2, l.serverKilled) // and another
	l.disturbed("a server is cut off", 1, func() { l.serverCutOff(true, true) })
	l.disturbed("a server is not heard", 1, func() { l.serverCutOff(true, false) })
	l.disturbed("a server hears nothing", 1, func() { l.serverCutOff(false, true) })
	l.disturbed("daemons are cut off from a server", min(l.rounds(), 3), l.daemonsCutOff)
	l.drained()
}

// clusterNumber reads a number of the environment.
func clusterNumber(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// disturbed has the load run while something is done to the system, lets all
// runs end, and checks what is left. At so many moments of each round a bridge
// may be lost with what it has in progress.
func (l *load) disturbed(what string, moments int, disturb func()) {
	l.t.Helper()
	test, began := l.t, time.Now()
	passed := l.t.Run(what, func(t *testing.T) {
		l.t = t
		defer func() { l.t = test }()
		l.begin()
		l.busy(loadSlots)
		for range l.rounds() {
			disturb()
			l.busy(loadSlots)
		}
		disturbed := time.Since(began)
		l.quiet()
		quiet := time.Since(began) - disturbed
		l.check(losable(moments * l.rounds()))
		t.Logf("disturbed for %v, quiet after %v", disturbed.Round(time.Millisecond), quiet.Round(time.Millisecond))
	})
	if !passed {
		l.t.FailNow() // what comes next would count it again
	}
}

// rounds is how often a disturbance is repeated.
func (l *load) rounds() int {
	l.t.Helper()
	return int(clusterNumber(l.t, clusterRoundsEnv, 1))
}

// lasts waits while the load runs: how long a disturbance lasts.
func (l *load) lasts(d time.Duration) { <-time.After(d) }

// cutFor returns for how long something is cut.
func (l *load) cutFor() time.Duration {
	if l.rounds() > 1 && l.random.IntN(2) == 0 {
		return cutLong
	}
	return cutShort
}

// leadersStepDown has the leaders of all streams, of their consumers and of
// JetStream itself step down, in random order.
func (l *load) leadersStepDown() {
	l.t.Helper()
	sys, err := nats.Connect(l.direct(), nats.UserInfo("sys", "sys"), nats.Timeout(30*time.Second))
	if err != nil {
		l.t.Fatal(err)
	}
	defer sys.Close()
	by := map[string]*nats.Conn{"META.LEADER.STEPDOWN": sys}
	for _, stream := range clusterStreams {
		by["STREAM.LEADER.STEPDOWN."+stream] = l.nc
	}
	for _, stream := range []string{"REFOLD_LOG", "REFOLD_FX", "REFOLD_TIMERS"} {
		for _, name := range l.consumers(stream) {
			by["CONSUMER.LEADER.STEPDOWN."+stream+"."+name] = l.nc
		}
	}
	subjects := slices.Sorted(maps.Keys(by))
	l.random.Shuffle(len(subjects), func(i, j int) { subjects[i], subjects[j] = subjects[j], subjects[i] })
	for _, subject := range subjects {
		until(l.t, loadWithin, subject, func() bool { // there may be no leader just now
			_, err := ask(by[subject], "$JS.API."+subject, "")
			return err == nil
		})
		l.lasts(time.Duration(50+l.random.IntN(150)) * time.Millisecond)
	}
}

// consumers returns the names of a stream's durable consumers, sorted. Any other is one
// reader's: what it has not read when its process ends nobody reads.
func (l *load) consumers(stream string) (names []string) {
	l.t.Helper()
	var answer struct {
		Consumers []struct {
			Config struct {
				Durable string `json:"durable_name"`
			} `json:"config"`
		} `json:"consumers"`
		Missing []string `json:"missing"` // their servers did not answer
	}
	until(l.t, time.Minute, "the consumers of "+stream, func() bool {
		answer.Consumers, answer.Missing = nil, nil
		data, err := ask(l.nc, "$JS.API.CONSUMER.LIST."+stream, "")
		return err == nil && json.Unmarshal(data, &answer) == nil && len(answer.Consumers) > 0 && len(answer.Missing) == 0
	})
	for _, c := range answer.Consumers {
		if c.Config.Durable != "" {
			names = append(names, c.Config.Durable)
		}
	}
	slices.Sort(names)
	return names
}

// restarted stops and starts the servers one after the other, each when the
// others are healthy. While one is away daemons are restarted: one of each kind
// is killed in the middle of its work, the other one may end it.
func (l *load) restarted() {
	l.t.Helper()
	daemons := l.random.Perm(len(l.daemons))
	killed := map[*daemon]bool{l.daemons[l.random.IntN(2)]: true, l.daemons[2+l.random.IntN(2)]: true}
	for n, i := range l.random.Perm(clusterSize) {
		l.end(i, syscall.SIGTERM)
		for len(daemons) >= clusterSize-n {
			d := l.daemons[daemons[0]]
			daemons = daemons[1:]
			l.daemonRestarted(d, killed[d])
		}
		l.start(i)
		l.healthy()
	}
}

// daemonRestarted ends a daemon and starts it again.
func (l *load) daemonRestarted(d *daemon, killed bool) {
	l.t.Helper()
	if killed {
		l.midst()
		d.kill()
	} else if err := d.drain(time.Minute); err != nil {
		l.t.Errorf("%s after SIGTERM: %v", d.name, err)
	}
	d.start()
}

// midst waits for a moment at which calls are carried out: one is asked, or
// settled, and those beside it are not.
func (l *load) midst() {
	l.t.Helper()
	passing := make(chan *nats.Msg, 1000)
	for _, subject := range []string{"refold.fx.tool.>", "refold.tool.*"} {
		sub, err := l.nc.ChanSubscribe(subject, passing)
		if err != nil {
			l.t.Fatal(err)
		}
		defer sub.Unsubscribe()
	}
	for range 1 + l.random.IntN(10) {
		select {
		case <-passing:
		case <-time.After(time.Minute):
			l.t.Fatal("no call is asked for a minute, and none is settled")
		}
	}
}

// leads returns the number of the server that leads the log.
func (l *load) leads() int {
	l.t.Helper()
	leader := -1
	until(l.t, time.Minute, "a leader of the log", func() bool {
		leader = l.leader(l.nc, "REFOLD_LOG")
		return leader >= 0
	})
	return leader
}

// serverKilled kills the server that leads the log, which is away for a while,
// and another as soon as all are healthy: this one comes back at once.
func (l *load) serverKilled() {
	l.t.Helper()
	for _, away := range []time.Duration{cutShort, 0} {
		i := l.leads()
		l.kill(i)
		l.lasts(away)
		l.start(i)
		l.healthy()
	}
}

// serverCutOff cuts the server that leads the log off from the others; daemons
// and clients still reach it.
func (l *load) serverCutOff(says, hears bool) {
	l.t.Helper()
	i := l.leads()
	l.cutOff(i, true, says, hears)
	l.lasts(l.cutFor())
	l.cutOff(i, false, says, hears)
	l.healthy()
}

// daemonsCutOff cuts a server that bridges are connected to off from its daemons,
// for so long that others take over what they had begun; the servers still reach
// one another.
func (l *load) daemonsCutOff() {
	l.t.Helper()
	for _, directions := range [][]int{{toward, back}, {toward}, {back}}[:min(l.rounds(), 3)] {
		server := slices.MaxFunc(l.servers, func(a, b *clusterServer) int { return a.bridges() - b.bridges() })
		l.midst()
		server.front.set(true, directions...)
		l.lasts(cutLong)
		server.front.set(false, directions...)
	}
}

// delivered waits until all that was delivered is acknowledged: what was lost
// with a leader or a connection comes again when its lease has ended, and may
// change nothing.
func (l *load) delivered() {
	l.t.Helper()
	for _, stream := range []string{"REFOLD_LOG", "REFOLD_FX"} {
		for _, name := range l.consumers(stream) {
			until(l.t, 2*time.Minute, name+" of "+stream+" has nothing left", func() bool {
				var info struct {
					Pending uint64 `json:"num_pending"`
					Unacked int    `json:"num_ack_pending"`
				}
				data, err := ask(l.nc, "$JS.API.CONSUMER.INFO."+stream+"."+name, "")
				return err == nil && json.Unmarshal(data, &info) == nil && info.Pending == 0 && info.Unacked == 0
			})
		}
	}
	l.check(lost{}) // what came again changed nothing
}

// drained ends the daemons. In nightly rounds all that was delivered is
// acknowledged first.
func (l *load) drained() {
	l.t.Helper()
	if l.rounds() > 1 {
		l.delivered()
	}
	for _, d := range l.daemons {
		if err := d.drain(time.Minute); err != nil {
			l.t.Errorf("%s after SIGTERM: %v", d.name, err)
		}
	}
}
