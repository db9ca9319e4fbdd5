package worker

// Seeds are played, a failing one is made smaller, and what is left is printed:
// the seed, the numbers that were drawn, what happened, and each session's
// history as a scenario.

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/scenario"
	"github.com/refold/refold/codec"
)

// simWhole is how many seeds `make check` plays. REFOLD_SIM_SEEDS, and
// REFOLD_SIM_FROM for the first, say otherwise.
const simWhole = 100

// shrinkTries is how often a failing seed is played again to make it smaller,
// unless REFOLD_SIM_SHRINK says otherwise.
const shrinkTries = 400

func TestSimulation(t *testing.T) {
	t.Parallel()
	from, seeds := numberIn(t, "REFOLD_SIM_FROM", 0), numberIn(t, "REFOLD_SIM_SEEDS", simSeeds)
	failed, happened := playSeeds(t, from, from+seeds)
	if failed != nil {
		t.Error(failed.report(t))
		return
	}
	// What never happened was not simulated.
	for _, what := range simHappens {
		if happened[what] == 0 && seeds >= simWhole {
			t.Errorf("%q happened in none of %d seeds", what, seeds)
		}
	}
	t.Logf("%d seeds, of %d that make check plays: %v", seeds, simWhole, happened)
}

// simHappens is what must happen in some seed, or the simulation does not try
// what it is for.
var simHappens = []string{
	"answer late", "answer lost", "call fails", "ack lost", "delivery lost", "host killed", "bridge killed", "bridge stops", "cut off",
	"consumers forget", "log loses", "effects lost", "clock jumps", "an hour passes", "owners outlived", "lane lost", "redelivered", "model started", "tool started",
	"a gap in deliveries", "an acknowledged event came again", "the connection was made anew", "a request got no answer", "lane handed over",
	"withdrawn first", "withdrawn too late", "conflict", "group stored", "group rejected", "taken together", "folded while others were loaded", "wake settled", "wake fires early",
	"host stopped", "bridge stopped", session.TypeApprovalDecided, session.TypeToolRegistrySet, session.TypeToolOverridesSet,
	"space read", session.TypeWorkspaceSyncRequested, session.TypeWorkspaceApplyRequested, session.TypeWorkspaceDetached,
	session.NoticeWorkspaceApplied, session.NoticeWorkspaceFailed, session.NoticeWorkspaceGone,
	"pack applied", "pack gone", "pack refused", "pack asked for by a model", "tool of a pack started",
}

// TestSimulationScenario: what a failure prints of a session reads back, and folds
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

func seeded(seed uint64) *draws { return &draws{seed: seed, rand: rand.New(rand.NewPCG(seed, 5))} }

// failure is a seed that broke a law.
type simFailure struct {
	seed   uint64
	drawn  []uint32
	broken []string
}

// playSeeds plays seeds on two goroutines, and returns the first that failed,
// nil if none did, and what happened how often.
func playSeeds(t *testing.T, from, to uint64) (first *simFailure, happened map[string]int) {
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
					first = &simFailure{seed, s.taken, s.broken}
					next.Store(to)
				}
				mu.Unlock()
			}
		})
	}
	both.Wait()
	return first, happened
}

// shrink draws less as long as a law is broken: fewer steps, and zeros, which do
// the least harm.
func (f *simFailure) shrink(t *testing.T) *sim {
	t.Helper()
	best := inBubble(t, &draws{seed: f.seed, given: f.drawn})
	tries, most := 0, int(numberIn(t, "REFOLD_SIM_SHRINK", shrinkTries))
	try := func(given []uint32) bool {
		tries++
		s := inBubble(t, &draws{seed: f.seed, given: given})
		// What was drawn past the end was zeros.
		if len(s.broken) == 0 || cost(s.taken) >= cost(best.taken) {
			return false
		}
		best = s
		return true
	}
	for size := len(best.taken); size > 0 && tries < most; {
		smaller := false
		for at := 0; at < len(best.taken) && tries < most; {
			end := min(at+size, len(best.taken))
			cut := slices.Concat(best.taken[:at], best.taken[end:])
			zeros := slices.Clone(best.taken)
			clear(zeros[at:end])
			if try(cut) || try(zeros) {
				smaller = true
				continue
			}
			at += size
		}
		if !smaller || size > 1 {
			size /= 2
		}
	}
	return best
}

// cost is what shrinking lowers: numbers that aren't zero, then numbers.
func cost(drawn []uint32) int {
	n := len(drawn)
	for _, v := range drawn {
		if v != 0 {
			n += 3
		}
	}
	return n
}

// report is what is printed of a failure.
func (f *simFailure) report(t *testing.T) string {
	t.Helper()
	s := f.shrink(t)
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %s\n", f.seed, strings.Join(f.broken, "; "))
	fmt.Fprintf(&b, "play it with REFOLD_SIM_FROM=%d REFOLD_SIM_SEEDS=1\n", f.seed)
	fmt.Fprintf(&b, "made smaller, from %d numbers drawn to %d, it is: %s\n\n%s\n", len(f.drawn), len(s.taken), strings.Join(s.broken, "; "), strings.Join(s.lines, "\n"))
	for _, sid := range slices.Sorted(maps.Keys(s.judge.sessions)) {
		fmt.Fprintf(&b, "\n%s", s.judge.scenario(sid))
	}
	return b.String()
}

// scenario returns a session's history in the text form of package scenario.
func (r *referee) scenario(sid string) string {
	file := &scenario.File{Steps: []scenario.Step{{
		Prose: []string{"# The history of session " + sid + "."},
		Input: "install " + simInstall, Want: fmt.Sprintf("%d tools, rules %d\n", r.install.Registry.Len(), r.install.Rules),
	}}}
	state := session.New(r.install, sid)
	for i, e := range r.sessions[sid].events {
		if i > 0 && e.Time > r.sessions[sid].events[i-1].Time {
			passed := e.Time - r.sessions[sid].events[i-1].Time
			file.Steps = append(file.Steps, scenario.Step{Prose: []string{""}, Input: fmt.Sprintf("clock +%dms", passed)})
		}
		step := scenario.Step{Prose: []string{"", fmt.Sprintf("# sequence %d", e.Seq)}, Input: fmt.Sprintf("bytes %s %x", e.Door, e.Payload)}
		if canonical, err := codec.Canonicalize(e.Payload); err == nil {
			if text, err := codec.ToJSON(canonical); err == nil {
				step.Input = fmt.Sprintf("event %s %s", e.Door, text)
			}
		}
		before := state.View()
		notices, _ := state.Evolve(e)
		var said []scenario.Said
		for _, n := range notices {
			var one scenario.Said
			if err := json.Unmarshal(n.JSON(), &one); err != nil {
				panic(err)
			}
			said = append(said, one)
		}
		action, err := scenario.Read(step.Input, nil)
		if err != nil {
			panic(err)
		}
		step.Want = scenario.Picture(before, state.View(), action.Settles, said)
		file.Steps = append(file.Steps, step)
	}
	return file.Format()
}
