package timeline_test

// Every scenario of the fold is folded again with a tracker beside it. The laws
// of the package doc hold in each; of some the spans are drawn and compared with
// testdata/spans.golden, which -rewrite writes.

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/scenario"
	"github.com/refold/refold/actors/session/timeline"
)

var rewrite = flag.Bool("rewrite", false, "write the spans into testdata/spans.golden; then read the diff")

// history is a scenario's events, and the install record under which they are
// folded.
type history struct {
	name    string
	install *session.Install
	events  []session.Event
}

// histories returns those of all scenarios that install a record that can be
// read.
func histories(t testing.TB) []history {
	t.Helper()
	paths, err := filepath.Glob("../testdata/scenarios/*.txt")
	if err != nil || len(paths) < 100 {
		t.Fatalf("%d scenarios: %v", len(paths), err)
	}
	var all []history
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := scenario.Parse(string(text))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if h, ok := fold(t, strings.TrimSuffix(filepath.Base(path), ".txt"), file); ok {
			all = append(all, h)
		}
	}
	return all
}

// fold reads the steps of a scenario, which depend on what the ones before left.
func fold(t testing.TB, name string, file *scenario.File) (history, bool) {
	t.Helper()
	h, now := history{name: name}, int64(1_000_000)
	var state *session.State
	for _, step := range file.Steps {
		var action scenario.Action
		var err error
		if state == nil {
			action, err = scenario.Read(step.Input, nil)
		} else {
			action, err = scenario.Read(step.Input, h.install.Registry, state.View())
		}
		if err != nil {
			t.Fatalf("%s: %s: %v", name, step.Input, err)
		}
		switch action.Kind {
		case scenario.KindInstall:
			payload := action.Payload
			if payload == nil {
				payload = session.BuiltinInstall()
			}
			if h.install, err = session.ParseInstall(payload); err != nil {
				return h, false // the scenario is about records that are refused
			}
			state = session.New(h.install, "s1")
		case scenario.KindClock:
			now += action.Clock
		case scenario.KindShow:
		default:
			e := session.Event{Session: "s1", Door: action.Door, Seq: uint64(len(h.events) + 2), Time: now, Payload: action.Payload}
			h.events = append(h.events, e)
			_, _ = state.Evolve(e) // rejections are a part of it
		}
	}
	return h, true
}

// follow folds the events up to the n-th and returns the spans that ended.
func (h *history) follow(n int) ([]*timeline.Span, *session.State, *timeline.Tracker) {
	state, tracker := session.New(h.install, "s1"), timeline.NewTracker(0, nil)
	var spans []*timeline.Span
	for _, e := range h.events[:n] {
		said, _ := state.Evolve(e)
		spans = append(spans, tracker.Follow(state, said, state.Progress(), "")...)
	}
	return spans, state, &tracker
}

func TestSpansFollowFromTheEventsAlone(t *testing.T) {
	t.Parallel()
	for _, h := range histories(t) {
		want, state, _ := h.follow(len(h.events))
		for range 9 {
			if got, _, _ := h.follow(len(h.events)); !cmp.Equal(got, want) {
				t.Fatalf("%s: another fold gives other spans:\n%s", h.name, cmp.Diff(want, got))
			}
		}
		plain := session.Fold(h.install, "s1", slices.Values(h.events))
		if state.Hash() != plain.Hash() {
			t.Errorf("%s: the state that was followed has the hash %s, without a tracker it is %s", h.name, state.Hash(), plain.Hash())
		}
		// Whoever begins in the middle, by folding what came before, goes on alike. Of
		// most scenarios one place is tried, of some every one.
		for n := range h.events {
			if n != len(h.events)/2 && !h.isDrawn() {
				continue
			}
			got, state, tracker := h.follow(n)
			said, _ := state.Evolve(h.events[n])
			got = append(got, tracker.Follow(state, said, state.Progress(), "")...)
			if all, _, _ := h.follow(n + 1); !cmp.Equal(got, all) {
				t.Fatalf("%s: event %d gives other spans after a load:\n%s", h.name, n+1, cmp.Diff(all, got))
			}
		}
	}
}

func TestSpansLieWithinTheirParents(t *testing.T) {
	t.Parallel()
	kinds := map[timeline.Kind]int{}
	for _, h := range histories(t) {
		spans, state, tracker := h.follow(len(h.events))
		byPlace := map[string]*timeline.Span{}
		for _, s := range spans {
			kinds[s.Kind]++
			if _, twice := byPlace[s.Place]; twice {
				t.Errorf("%s: two spans are called %s", h.name, s.Place)
			}
			byPlace[s.Place] = s
			if s.Begin > s.End || s.End == 0 || s.Seq == 0 {
				t.Errorf("%s: %s lasts from %d to %d, event %d", h.name, s.Place, s.Begin, s.End, s.Seq)
			}
		}
		for _, s := range spans {
			if s.Kind == timeline.KindRun {
				continue
			}
			parent, has := byPlace[s.Parent]
			_, over := byPlace[timeline.RunPlace(s.Run)]
			switch {
			case !has && over:
				t.Errorf("%s: %s lies in %s, which never ended although its run has", h.name, s.Place, s.Parent)
			case has && (s.Begin < parent.Begin || s.End > parent.End || s.Run != parent.Run):
				t.Errorf("%s: %s (%d to %d) lies outside of %s (%d to %d)", h.name, s.Place, s.Begin, s.End, parent.Place, parent.Begin, parent.End)
			}
		}
		if state.Run == nil && len(state.Queue) == 0 && tracker.Open() {
			t.Errorf("%s: no run is under way, and a span is open", h.name)
		}
	}
	for _, kind := range []timeline.Kind{
		timeline.KindRun, timeline.KindQueue, timeline.KindPause, timeline.KindTurn, timeline.KindStep,
		timeline.KindAttempt, timeline.KindRetry, timeline.KindGroup, timeline.KindCall, timeline.KindApproval,
	} {
		if kinds[kind] == 0 {
			t.Errorf("no scenario has a span of kind %s: the laws are not seen to hold for it", kind)
		}
	}
}

// TestSpansAgreeWithNotices counts runs and calls in notices and progress: as many
// spans have ended.
func TestSpansAgreeWithNotices(t *testing.T) {
	t.Parallel()
	for _, h := range histories(t) {
		state, tracker := session.New(h.install, "s1"), timeline.NewTracker(0, nil)
		finished, runs := 0, 0
		for _, e := range h.events {
			said, _ := state.Evolve(e)
			for _, n := range said {
				if n.Type == session.NoticeRunFinished {
					finished++
				}
			}
			for _, s := range tracker.Follow(state, said, state.Progress(), "") {
				switch {
				case s.Kind == timeline.KindRun:
					runs++
					if s.Outcome.Lifecycle == "" {
						t.Errorf("%s: %s ended without a lifecycle", h.name, s.Place)
					}
				case s.Kind == timeline.KindCall && s.Call.Status == "":
					t.Errorf("%s: %s ended without a status", h.name, s.Place)
				}
			}
		}
		if runs != finished {
			t.Errorf("%s: %d runs finished, %d spans of runs ended", h.name, finished, runs)
		}
	}
}

// drawn are the scenarios whose spans are compared with the golden file.
var drawn = []string{"01", "04", "06", "23", "42", "49", "55", "66", "191", "200", "201"}

func (h *history) isDrawn() bool {
	number, _, _ := strings.Cut(h.name, "_")
	return slices.Contains(drawn, number)
}

func TestSpansOfScenarios(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, h := range histories(t) {
		if !h.isDrawn() {
			continue
		}
		fmt.Fprintf(&b, "# %s\n", h.name)
		spans, _, _ := h.follow(len(h.events))
		for _, s := range spans {
			s.Begin, s.End = s.Begin-1_000_000, s.End-1_000_000
			line, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s\n", line)
		}
		b.WriteByte('\n')
	}
	const golden = "testdata/spans.golden"
	if *rewrite {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("the spans are others (-want +got); -rewrite writes them:\n%s", diff)
	}
}

func TestOnlySampledRunsAreFollowed(t *testing.T) {
	t.Parallel()
	for _, h := range histories(t) {
		all, _, _ := h.follow(len(h.events))
		state, tracker := session.New(h.install, "s1"), timeline.NewTracker(0, func(_ *session.State, run uint32) bool { return run == 2 })
		var got []*timeline.Span
		for _, e := range h.events {
			said, _ := state.Evolve(e)
			got = append(got, tracker.Follow(state, said, state.Progress(), "")...)
		}
		var want []*timeline.Span
		for _, s := range all {
			if s.Run == 2 {
				want = append(want, s)
			}
		}
		if !cmp.Equal(got, want) {
			t.Errorf("%s: the spans of run 2 alone:\n%s", h.name, cmp.Diff(want, got))
		}
	}
}

func TestIDsAreHashesOfTheirPlace(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, prefix := range []string{"refold", "a.b"} {
		for _, sid := range []string{"s1", "s2"} {
			for run := uint32(1); run < 4; run++ {
				where := fmt.Sprint(prefix, sid, run)
				id := fmt.Sprintf("%x", timeline.TraceID(prefix, sid, timeline.RunPlace(run)))
				if other, twice := seen[id]; twice {
					t.Errorf("%s and %s have the trace id %s", where, other, id)
				}
				seen[id] = where
			}
		}
	}
	if got := fmt.Sprintf("%x %x", timeline.TraceID("refold", "s1", "r1"), timeline.SpanID("refold", "s1", "r1t1a1")); got !=
		"245d83fd9bf661e6fd6ddcca6079fb0d 72e3310e010a19cf" {
		t.Errorf("the ids of r1 and r1t1a1 are %s: ids that were exported once stay what they are", got)
	}
}

func BenchmarkFollow(b *testing.B) {
	for _, h := range histories(b) {
		if h.name != "23_groups" {
			continue
		}
		for _, c := range []struct {
			name    string
			sampled func(*session.State, uint32) bool
		}{{"off", nil}, {"none", func(*session.State, uint32) bool { return false }}, {"all", func(*session.State, uint32) bool { return true }}} {
			b.Run(c.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					state, tracker := session.New(h.install, "s1"), timeline.NewTracker(0, c.sampled)
					for _, e := range h.events {
						said, _ := state.Evolve(e)
						if progress := state.Progress(); c.sampled != nil {
							tracker.Follow(state, said, progress, "")
						}
					}
				}
			})
		}
	}
}
