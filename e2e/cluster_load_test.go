package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

const (
	loadSlots = 20 // sessions that have a run at the same time
	loadRuns  = 2  // of each session
	loadPace  = 400 * time.Millisecond
	// loadWithin is how long a run may take whose bridge died, whose server died,
	// and whose stream has no leader for a while.
	loadWithin = 4 * time.Minute
)

// loadScript is what the model says in a session: each run has two groups of
// calls. It does not look at results, so that a run goes on after a call whose
// outcome is unknown.
const loadScript = `
turns:
  - calls: [{tool: take}, {tool: take}, {tool: look}]
  - calls: [{tool: put}]
  - say: First.
  - calls: [{tool: look}, {tool: take}]
  - calls: [{tool: put}, {tool: put}]
  - say: Second.
`

// loadTurns are the calls of loadScript, by run and turn.
var loadTurns = [loadRuns][][]string{{{"take", "take", "look"}, {"put"}}, {{"look", "take"}, {"put", "put"}}}

// loadSafe says which tools are retry-safe.
var loadSafe = map[string]bool{"take": false, "put": false, "look": true}

// load is a cluster with session-actors and bridges on it, and clients that keep
// them busy.
type load struct {
	*cluster
	t       *testing.T
	random  *rand.Rand // of the faults
	seed    uint64
	nc      *nats.Conn
	js      jetstream.JetStream
	client  *client.Client
	ledger  string
	daemons []*daemon // two session-actors, two bridges

	clients sync.WaitGroup
	stop    context.CancelFunc // no more runs are asked
	next    int                // number of the next session
	lost    lost               // by the last check, since the start

	mu      sync.Mutex
	ended   sync.Cond      // a run has ended
	runs    map[string]int // ended runs by session
	endedAt []time.Time    // of each run
	acked   []acknowledged
	asked   map[string]int // acknowledged requests by session
	wrong   []error
}

// acknowledged is when a request was, and how long that took.
type acknowledged struct {
	at   time.Time
	took time.Duration
}

// startLoad starts a system on a cluster.
func startLoad(t *testing.T, seed uint64) *load {
	t.Helper()
	return startLoadOn(t, seed, startCluster(t, clusterAccounts), make([]string, 4))
}

// startLoadOn starts a system, with two session-actors and two bridges on these hosts.
func startLoadOn(t *testing.T, seed uint64, on *cluster, hosts []string) *load {
	t.Helper()
	began := func(host, name string, args []string) *daemon {
		return (&daemon{t: t, host: host, name: name, args: args, out: &output{}}).begin()
	}
	t.Logf("seed %d; %s=%d repeats what was done, when it was done depends on the machine", seed, clusterSeedEnv, seed)
	l := &load{
		cluster: on, t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 1)),
		ledger: filepath.Join(t.TempDir(), "ledger.jsonl"), runs: map[string]int{}, asked: map[string]int{},
	}
	l.ended.L = &l.mu
	recording := writeFile(t, "load.jsonl", loadRecording(t))
	common := []string{"--nats", l.fronts(), "--replicas", fmt.Sprint(clusterSize), "--durability", "always", "--monitor", l.monitors()}
	actor := slices.Concat(common, []string{"--install", writeFile(t, "install.json", jsonText(t, loadRecord("recorded", scripted)))})
	bridge := slices.Concat(common, []string{
		"--model", "scripted=scripted:" + writeFile(t, "load.yaml", loadScript), "--tools", "recorded:" + recording, "--ledger", l.ledger,
	})
	l.daemons = []*daemon{began(hosts[0], "session-actor", actor)}
	l.nc = connect(t, l.direct())
	var err error
	if l.js, err = jetstream.New(l.nc); err != nil {
		t.Fatal(err)
	}
	recordStored(t, l.nc)
	l.daemons = append(l.daemons, began(hosts[1], "session-actor", actor), began(hosts[2], "bridge", bridge), began(hosts[3], "bridge", bridge))
	if l.client, err = client.Connect(t.Context(), client.Options{URL: l.direct()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.client.Close)
	listening, cancel := context.WithCancel(context.Background())
	var tail sync.WaitGroup
	tail.Go(func() { l.follow(listening) })
	t.Cleanup(func() {
		cancel()
		tail.Wait()
	})
	return l
}

// recordStored waits until there is a record for new sessions, and so all streams.
func recordStored(t *testing.T, nc *nats.Conn) {
	t.Helper()
	until(t, time.Minute, "a record for new sessions", func() bool {
		_, err := ask(nc, "$JS.API.STREAM.MSG.GET.REFOLD_LOG", `{"last_by_subj":"refold.install"}`)
		return err == nil
	})
}

// loadRecord is an install record with the tools of the load, which this executor
// carries out.
func loadRecord(executor string, config object) object {
	var tools list
	for _, name := range []string{"look", "put", "take"} {
		tools = append(tools, object{
			"tool_id": "load." + name, "tool_name": name, "description": "It is only counted.", "args_schema": object{"type": "object"},
			"executor": object{"kind": "effect", "target": executor}, "parallel_safe": true, "retry_safe": loadSafe[name],
		})
	}
	return object{"v": 1, "rules": 1, "tools": tools, "config": config}
}

// loadRecording is the conversation that the executors of calls know: every
// session load--1, load--2, … is one of it.
func loadRecording(t *testing.T) string {
	t.Helper()
	var messages list
	for run, turns := range loadTurns {
		messages = append(messages, object{"role": "user", "content": fmt.Sprint("run ", run+1)})
		for turn, calls := range turns {
			var asked, results list
			for call, name := range calls {
				id := fmt.Sprint("call_", run, turn, call)
				asked = append(asked, object{"id": id, "type": "function", "function": object{"name": name, "arguments": "{}"}})
				results = append(results, object{"role": "tool", "tool_call_id": id, "name": name, "content": "done"})
			}
			messages = append(append(messages, object{"role": "assistant", "content": nil, "tool_calls": asked}), results...)
		}
		messages = append(messages, object{"role": "assistant", "content": "ended"})
	}
	return jsonText(t, object{"id": "load", "messages": messages}) + "\n"
}

// begin has clients ask for runs, until quiet.
func (l *load) begin() {
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	l.t.Cleanup(cancel)
	for range loadSlots {
		l.clients.Go(func() {
			for ctx.Err() == nil {
				l.play()
				select {
				case <-ctx.Done():
				case <-time.After(loadPace):
				}
			}
		})
	}
}

// quiet lets the sessions end that have begun, and fails if one does not.
func (l *load) quiet() {
	l.t.Helper()
	l.stop()
	l.clients.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := errors.Join(l.wrong...); err != nil {
		l.t.Fatal(err)
	}
}

// busy waits until n more runs have ended.
func (l *load) busy(n int) {
	l.t.Helper()
	count := func() (all int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, runs := range l.runs {
			all += runs
		}
		return all
	}
	to := count() + n
	until(l.t, loadWithin, fmt.Sprint(to, " ended runs"), func() bool { return count() >= to })
}

// pauseSince returns the longest time without the end of a run, from a time to the
// latest one.
func (l *load) pauseSince(since time.Time) (longest time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range l.endedAt {
		if at.After(since) {
			longest, since = max(longest, at.Sub(since)), at
		}
	}
	return longest
}

// play holds one session from its first run to the end of its last.
func (l *load) play() {
	l.mu.Lock()
	l.next++
	sid := fmt.Sprint("load--", l.next)
	l.mu.Unlock()
	for run := range loadRuns {
		err := l.request(sid, run+1)
		if err == nil {
			err = l.await(sid, run+1)
		}
		if err != nil {
			l.mu.Lock()
			l.wrong = append(l.wrong, err)
			l.mu.Unlock()
			return
		}
	}
}

// request asks for a run until it is acknowledged, under one id: however often
// it arrives it is one request.
func (l *load) request(sid string, run int) error {
	ctx, cancel := context.WithTimeout(context.Background(), loadWithin)
	defer cancel()
	for began := time.Now(); ; {
		once, cancel := context.WithTimeout(ctx, 3*time.Second)
		_, err := l.client.Run(once, sid, fmt.Sprint("run ", run), client.RunOptions{ID: fmt.Sprint(sid, "-", run)})
		cancel()
		if err == nil {
			l.mu.Lock()
			l.asked[sid]++
			l.acked = append(l.acked, acknowledged{time.Now(), time.Since(began)})
			l.mu.Unlock()
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("run %d of %s is not acknowledged within %v: %w", run, sid, loadWithin, err)
		}
	}
}

// await waits for the end of a session's nth run.
func (l *load) await(sid string, run int) error {
	late := false
	timer := time.AfterFunc(loadWithin, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		late = true
		l.ended.Broadcast()
	})
	defer timer.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.runs[sid] < run && !late {
		l.ended.Wait()
	}
	if l.runs[sid] < run {
		view := "nobody answers for it"
		if answer, err := l.nc.Request("refold.view."+sid, nil, 5*time.Second); err == nil {
			view = tail(string(answer.Data), 1500)
		}
		return fmt.Errorf("run %d of %s does not end within %v: %s", run, sid, loadWithin, view)
	}
	return nil
}

// follow reads the notices of all sessions, again from where it was if the servers
// did not answer.
func (l *load) follow(ctx context.Context) {
	for from := uint64(1); ctx.Err() == nil; {
		for n, err := range l.client.Notices(ctx, "", from) {
			if err != nil {
				break
			}
			from = n.StreamSeq + 1
			if end, is := n.Body().(session.RunFinished); is {
				l.mu.Lock()
				l.runs[n.Session] = max(l.runs[n.Session], int(end.Run))
				l.endedAt = append(l.endedAt, time.Now())
				l.ended.Broadcast()
				l.mu.Unlock()
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}
