package sim

// Seeds are played, each in its own bubble. A seed that breaks a law is shrunk,
// and printed as a scenario.

import (
	"context"
	"encoding/json"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/scenario"
	"github.com/refold/refold/actors/spaces"
)

// wholeSeeds is how many seeds `make check` plays. REFOLD_SIM_SEEDS, and
// REFOLD_SIM_FROM for the first, say otherwise.
const wholeSeeds = 100

// shrinkTries is how often a failing seed is played again to make it smaller,
// unless REFOLD_SIM_SHRINK says otherwise.
const shrinkTries = 400

func TestSimulation(t *testing.T) {
	t.Parallel()
	from, seeds := numberIn(t, "REFOLD_SIM_FROM", 0), numberIn(t, "REFOLD_SIM_SEEDS", defaultSeeds)
	tries := numberIn(t, "REFOLD_SIM_SHRINK", shrinkTries)
	failed, happened := playSeeds(t, from, from+seeds)
	if failed != nil {
		t.Error(failed.report(failed.shrink(int(tries), func(d *draws) *sim { return inBubble(t, d) })))
		return
	}
	// What never happened was not simulated.
	for _, what := range mustHappen {
		if happened[what] == 0 && seeds >= wholeSeeds {
			t.Errorf("%q happened in none of %d seeds", what, seeds)
		}
	}
	t.Logf("%d seeds, of %d that make check plays: %v", seeds, wholeSeeds, happened)
}

// mustHappen is what must happen in some seed, or the simulation does not try
// what it is for.
var mustHappen = []string{
	"answer late", "answer lost", "call fails", "ack lost", "delivery lost", "host killed", "bridge killed", "bridge stops", "cut off",
	"consumers forget", "log loses", "effects lost", "past lost", "frozen", "timers lost", "notices lost", "snapshots lost", "a session fails", "a stream fails", "quarantined for a failure", "withdrawn at the next claim", "clock jumps", "clock is wrong by minutes", "start_by passed", "bridge killed by an effect", "killer apart", "bridge_lost", "an hour passes", "owners outlived", "lane lost", "redelivered", "model started", "tool started",
	"a gap in deliveries", "an acknowledged event came again", "the connection was made anew", "a request got no answer", "lane handed over",
	"withdrawn first", "withdrawn too late", "conflict", "group stored", "group rejected", "taken together", "folded while others were loaded", "wake settled", "wake fires early",
	"event for another session stored twice",
	"host stopped", "bridge stopped", session.TypeApprovalDecided, session.TypeToolRegistrySet, session.TypeToolOverridesSet,
	"space read", session.TypeWorkspaceSyncRequested, session.TypeWorkspaceApplyRequested, session.TypeWorkspaceDetached,
	spaces.NoticeWorkspaceApplied, spaces.NoticeWorkspaceFailed, spaces.NoticeWorkspaceGone,
	"pack applied", "pack gone", "pack refused", "pack asked for by a model", "tool of a pack started",
}

// playSeeds plays seeds on two goroutines, and returns the first that failed,
// nil if none did, and what happened how often.
func playSeeds(t *testing.T, from, to uint64) (first *failure, happened map[string]int) {
	t.Helper()
	debug.SetGCPercent(400) // runs are short, and what they leave is small
	var next atomic.Uint64
	next.Store(from)
	var mu sync.Mutex
	happened = map[string]int{}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			for {
				seed := next.Add(1) - 1
				if seed >= to {
					return
				}
				s := inBubble(t, seeded(seed))
				mu.Lock()
				for what, n := range s.happened {
					happened[what] += n
				}
				if len(s.broken) > 0 && (first == nil || seed < first.seed) {
					first = &failure{seed, s.taken, s.broken}
					next.Store(to)
				}
				mu.Unlock()
			}
		})
	}
	both.Wait()
	return first, happened
}

// againSeeds is how many seeds are played twice; REFOLD_SIM_AGAIN says otherwise.
const againSeeds = 4

// TestSimulationAgain: a seed has one history, whichever goroutine the
// processor runs first. The race detector randomizes that for every play.
func TestSimulationAgain(t *testing.T) {
	t.Parallel()
	from, seeds := numberIn(t, "REFOLD_SIM_FROM", 0), numberIn(t, "REFOLD_SIM_AGAIN", againSeeds)
	for seed := from; seed < from+seeds; seed++ {
		one, two := inBubble(t, seeded(seed)).lines, inBubble(t, seeded(seed)).lines
		for i := range min(len(one), len(two)) {
			if one[i] != two[i] {
				t.Fatalf("seed %d, line %d is\n%s\nand then\n%s\nafter\n%s", seed, i, one[i], two[i], strings.Join(one[max(0, i-20):i], "\n"))
			}
		}
		if len(one) != len(two) {
			t.Fatalf("seed %d has %d lines, and then %d", seed, len(one), len(two))
		}
	}
}

// TestSimulationScenario: the printed scenario of a failure parses, and folds
// to the same View.
func TestSimulationScenario(t *testing.T) {
	t.Parallel()
	s := inBubble(t, seeded(1))
	for _, sid := range sortedKeys(s.judge.sessions) {
		one := s.judge.sessions[sid]
		file, err := scenario.Parse(s.judge.scenario(sid))
		if err != nil {
			t.Fatalf("%s: %v", sid, err)
		}
		state := session.New(s.judge.install, sid)
		n := 0
		for _, step := range file.Steps {
			action, err := scenario.Read(step.Input, nil, state.View())
			if err != nil {
				t.Fatalf("%s: %s: %v", sid, step.Input, err)
			}
			if action.Kind != scenario.KindEvent {
				continue
			}
			_, _ = state.Evolve(session.Event{Session: sid, Door: action.Door, Seq: one.events[n].Seq, Time: one.events[n].Time, Payload: action.Payload})
			n++
		}
		read, wanted := state.View(), one.state.View()
		read.Hash, read.Chain = wanted.Hash, wanted.Chain // of bytes, which are written as JSON
		got, want := encoded(t, read), encoded(t, wanted)
		if n != len(one.events) || got != want {
			t.Errorf("%s: %d events read back fold to\n%s\nwant %d and\n%s", sid, n, got, len(one.events), want)
		}
	}
}

func encoded(t *testing.T, v session.View) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func numberIn(t *testing.T, name string, otherwise uint64) uint64 {
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

// labelsShown has tracebacks print labels. A //go:debug line can't: go 1.26 knows
// the setting only from the environment, which the runtime reads anew.
var labelsShown = sync.OnceValue(func() error {
	return os.Setenv("GODEBUG", strings.TrimPrefix(os.Getenv("GODEBUG")+",tracebacklabels=1", ","))
})

// inBubble plays a run in a bubble of its own.
func inBubble(t *testing.T, d *draws) (s *sim) {
	t.Helper()
	labelled(t, d.seed, func() { s = play(d) })
	return s
}

// labelled calls f in a bubble. A panic in any goroutine of it, and a bubble that
// can't go on, end the whole test before anything is reported: so each goroutine
// has the seed as a label, which its traceback prints.
func labelled(t *testing.T, seed uint64, f func()) {
	t.Helper()
	if err := labelsShown(); err != nil {
		t.Fatal(err)
	}
	labels := pprof.Labels("REFOLD_SIM_FROM", strconv.FormatUint(seed, 10))
	pprof.Do(t.Context(), labels, func(context.Context) {
		synctest.Test(t, func(*testing.T) { f() })
	})
}
