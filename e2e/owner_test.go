//go:build unix

package e2e_test

// Session-actors that share the lanes, under load: one is killed, drained, or
// stopped for longer than its pins last; one becomes eight, and one again.
// Every run ends, no call runs twice though none is retry-safe, and the log
// folds again to the same bytes. The time of a handover is printed but not
// checked: it depends on the machine.

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

const (
	ownerLanes    = subjects.LanesDefault
	ownerInFlight = 3                      // runs of each lane
	ownerPace     = 250 * time.Millisecond // from the end of one to the next, so that a fast machine has no more to check than a slow one
	ownerScript   = "turns:\n  - calls: [{tool: count}, {tool: count}]\n  - say: Done.\n"
)

// traffic keeps some runs of each lane in flight, each in a session of its own.
type traffic struct {
	*system
	lab *lab

	mu      sync.Mutex
	stopped bool                  // no more is asked
	refused error                 // what the last request that failed failed with
	next    int                   // number that the next session is named by
	asked   map[string]bool       // sessions
	ended   map[string]string     // how the run of a session ended
	heard   [ownerLanes]time.Time // latest notice of a lane
	silence [ownerLanes]time.Duration
}

// startTraffic starts a system with load on it.
func startTraffic(t *testing.T) *traffic {
	t.Helper()
	f := &traffic{lab: &lab{}, asked: map[string]bool{}, ended: map[string]string{}}
	f.system = startSystem(t, object{
		"v": 1, "rules": 1, "config": scripted,
		"tools": list{tool("count", object{"retry_safe": false})},
	})
	f.at("warm-up", f.say(session.DoorCtl, "warm-up", session.TypeFactsSet, object{"facts": object{}}))
	f.models(ownerScript, "scripted")
	f.tools(f.lab)
	_, err := f.nc.Subscribe("refold.out.*", f.hear)
	if err == nil {
		err = f.nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	for lane := range ownerLanes {
		for range ownerInFlight {
			f.askOn(lane)
		}
	}
	f.more(30)
	return f
}

// askOn asks for a run in a new session of a lane.
func (f *traffic) askOn(lane int) {
	f.mu.Lock()
	var sid string
	for sid == "" || subjects.Lane(subjects.Partition(sid)) != lane {
		sid = "run" + strconv.Itoa(f.next)
		f.next++
	}
	if f.stopped {
		f.mu.Unlock()
		return
	}
	f.asked[sid] = true
	f.mu.Unlock()
	payload := `{"type":"RunRequested","data":{"input":{"text":"count"}}}`
	if _, err := f.js.PublishAsync("refold.in."+sid, []byte(payload)); err != nil {
		f.mu.Lock()
		f.refused = err
		f.mu.Unlock()
	}
}

// hear notes a notice; the end of a run makes room for the next.
func (f *traffic) hear(m *nats.Msg) {
	sid := m.Subject[len("refold.out."):]
	lane := subjects.Lane(subjects.Partition(sid))
	var end finished
	f.mu.Lock()
	now := time.Now()
	if last := f.heard[lane]; !last.IsZero() && !f.stopped {
		f.silence[lane] = max(f.silence[lane], now.Sub(last))
	}
	f.heard[lane] = now
	_, again := f.ended[sid]
	over := !again && end.isIn(m.Data)
	if over {
		f.ended[sid] = end.Lifecycle
	}
	f.mu.Unlock()
	if over {
		time.AfterFunc(ownerPace, func() { f.askOn(lane) })
	}
}

// more waits until n more runs have ended.
func (f *traffic) more(n int) {
	f.t.Helper()
	count := func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.ended)
	}
	to := count() + n
	until(f.t, endWithin, fmt.Sprintf("%d ended runs", to), func() bool { return count() >= to })
}

// silences begins to measure how long nothing was said of a lane, and returns
// what it was until now: the longest of some lanes, and of the others.
func (f *traffic) silences(lanes []int) (of, others time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for lane, silent := range f.silence {
		if slices.Contains(lanes, lane) {
			of = max(of, silent)
		} else {
			others = max(others, silent)
		}
	}
	clear(f.silence[:])
	return of, others
}

// finish lets what is in flight end, and checks all that was done.
func (f *traffic) finish() {
	f.t.Helper()
	f.mu.Lock()
	f.stopped = true
	asked := len(f.asked)
	f.mu.Unlock()
	until(f.t, endWithin, "the end of every run", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.ended) >= asked
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refused != nil {
		f.t.Errorf("ask for a run: %v", f.refused)
	}
	ran := map[string]int{}
	for _, call := range f.lab.did() {
		ran[call.IdempotencyKey]++
	}
	for sid := range f.asked {
		if end := f.ended[sid]; end != string(session.Completed) {
			f.t.Errorf("the run of %s ended %q", sid, end)
		}
		for _, effect := range []string{"r1t1c0", "r1t1c1"} {
			if times := ran[sid+"."+effect]; times != 1 {
				f.t.Errorf("%s.%s ran %d times", sid, effect, times)
			}
			delete(ran, sid+"."+effect)
		}
	}
	for key, times := range ran {
		f.t.Errorf("%s ran %d times, and belongs to no run", key, times)
	}
	verifyAll(f.t, f.url)
	f.t.Logf("%d runs ended, each call ran once", asked)
}

// another starts a session-actor beside the others.
func (f *traffic) another() *daemon {
	f.t.Helper()
	return startDaemon(f.t, "session-actor", "--nats", f.url)
}

var sharedLine = regexp.MustCompile(`msg=lanes_shared .*lanes="?\[([0-9 ]*)\]"? hosts=(\d+)`)

// shareOf returns the lanes that a session-actor said are its share, and how
// many share them.
func shareOf(d *daemon) (lanes []int, hosts int) {
	all := sharedLine.FindAllStringSubmatch(d.out.String(), -1)
	if len(all) == 0 {
		return nil, 0
	}
	last := all[len(all)-1]
	for _, n := range strings.Fields(last[1]) {
		lane, _ := strconv.Atoi(n) // the pattern has digits only
		lanes = append(lanes, lane)
	}
	hosts, _ = strconv.Atoi(last[2])
	return lanes, hosts
}

// shared waits until these session-actors share the lanes among them.
func shared(t *testing.T, actors ...*daemon) {
	t.Helper()
	until(t, time.Minute, fmt.Sprintf("%d session-actors that share", len(actors)), func() bool {
		var all []int
		for _, d := range actors {
			lanes, hosts := shareOf(d)
			if hosts != len(actors) {
				return false
			}
			all = append(all, lanes...)
		}
		slices.Sort(all)
		return slices.Equal(all, []int{0, 1, 2, 3, 4, 5, 6, 7})
	})
}

var ownedLine = regexp.MustCompile(`(?m)^time=(\S+) .*msg=lane_owned .*lane=l(\d+)`)

// ownedSince returns how long after a moment a session-actor had each lane.
func ownedSince(d *daemon, since time.Time) map[int]time.Duration {
	owned := map[int]time.Duration{}
	for _, m := range ownedLine.FindAllStringSubmatch(d.out.String(), -1) {
		at, err := time.Parse(time.RFC3339Nano, m[1])
		if lane, _ := strconv.Atoi(m[2]); err == nil && at.After(since) && owned[lane] == 0 {
			owned[lane] = at.Sub(since)
		}
	}
	return owned
}

// takesOver waits until a session-actor has had these lanes since a moment, and
// prints when.
func takesOver(t *testing.T, what string, d *daemon, lanes []int, since time.Time) {
	t.Helper()
	var owned map[int]time.Duration
	until(t, endWithin, what, func() bool {
		owned = ownedSince(d, since)
		return !slices.ContainsFunc(lanes, func(lane int) bool { return owned[lane] == 0 })
	})
	maps.DeleteFunc(owned, func(lane int, _ time.Duration) bool { return !slices.Contains(lanes, lane) })
	times := slices.Sorted(maps.Values(owned))
	t.Logf("%s: %d lanes, the first after %d ms, the last after %d ms", what, len(times), times[0].Milliseconds(), times[len(times)-1].Milliseconds())
}

func TestHeirTakesOverTheLanes(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{true, false} {
		what := map[bool]string{true: "killed", false: "drained"}[killed]
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f := startTraffic(t)
			heir := f.another()
			shared(t, f.actor, heir)
			lanes, _ := shareOf(f.actor)
			f.more(40)
			f.silences(nil)
			ended := time.Now()
			if killed {
				f.actor.kill()
			} else if err := f.actor.drain(time.Minute); err != nil {
				t.Errorf("session-actor after SIGTERM: %v", err)
			}
			takesOver(t, what+": the other has its lanes", heir, lanes, ended)
			shared(t, heir)
			f.more(40)
			of, others := f.silences(lanes)
			t.Logf("%s: longest silence of its lanes %d ms, of the others %d ms", what, of.Milliseconds(), others.Milliseconds())
			f.finish()
		})
	}
}

// TestStoppedOwner: the owner of lanes with unacknowledged events is stopped
// until another has taken them over. Then it continues: it acknowledges late,
// publishes the same effects again, and finds that it has lost the lanes.
func TestStoppedOwner(t *testing.T) {
	t.Parallel()
	f := startTraffic(t)
	heir := f.another()
	shared(t, f.actor, heir)
	lanes, _ := shareOf(f.actor)
	t.Cleanup(func() { f.signal(syscall.SIGCONT) })
	var stopped time.Time
	until(t, time.Minute, "a moment with events unacknowledged", func() bool {
		f.signal(syscall.SIGSTOP)
		stopped = time.Now()
		unacked := f.unacked(lanes)
		if unacked == 0 {
			f.signal(syscall.SIGCONT)
		} else {
			t.Logf("stopped with %d events unacknowledged", unacked)
		}
		return unacked > 0
	})
	takesOver(t, "stopped: the other has its lanes", heir, lanes, stopped)
	f.more(40)
	goesOn := time.Now()
	f.signal(syscall.SIGCONT)
	takesOver(t, "going on: it has its lanes again", f.actor, lanes, goesOn)
	shared(t, f.actor, heir)
	f.more(40)
	f.finish()
}

// signal sends a signal to the first session-actor.
func (f *traffic) signal(sig syscall.Signal) {
	if f.actor.cmd == nil {
		return
	}
	if err := f.actor.cmd.Process.Signal(sig); err != nil {
		f.t.Errorf("%v: %v", sig, err)
	}
}

// unacked returns how many events of some lanes are delivered and not
// acknowledged.
func (f *traffic) unacked(lanes []int) (n int) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, lane := range lanes {
		consumer, err := f.js.Consumer(ctx, f.names.LogStream(), subjects.LaneName(lane))
		if err != nil {
			f.t.Fatal(err)
		}
		n += consumer.CachedInfo().NumAckPending
	}
	return n
}

func TestScaleOutAndIn(t *testing.T) {
	t.Parallel()
	f := startTraffic(t)
	actors := []*daemon{f.actor}
	for len(actors) < ownerLanes {
		actors = append(actors, f.another())
	}
	shared(t, actors...)
	f.more(40)
	for len(actors) > 1 {
		leaving := actors[0]
		actors = actors[1:]
		if err := leaving.drain(time.Minute); err != nil {
			t.Errorf("session-actor after SIGTERM: %v", err)
		}
		shared(t, actors...)
		f.more(8)
	}
	of, _ := f.silences([]int{0, 1, 2, 3, 4, 5, 6, 7})
	t.Logf("longest silence of a lane, on the way from 1 to 8 and back: %d ms", of.Milliseconds())
	f.finish()
}
