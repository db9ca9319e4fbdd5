package bench_test

// Small rows on both sides. The tests check that every run ended, and what was
// stored, but no times.

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/proof/bench"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// perRun is what a run stores: 6 events, 7 effects and claims, a wake, 3
// notices.
var perRun = map[string]int{
	"REFOLD_LOG RunRequested": 1, "REFOLD_LOG ToolCallsObserved": 1, "REFOLD_LOG ToolCallSettled": 3, "REFOLD_LOG GenerationSettled": 1,
	"REFOLD_FX llm": 2, "REFOLD_FX tool": 3, "REFOLD_FX claim": 2, "REFOLD_TIMERS wake": 1,
	"REFOLD_OUT SessionOpened": 1, "REFOLD_OUT RunStarted": 1, "REFOLD_OUT RunFinished": 1,
}

func TestRunsStoreTheSameOnBothSides(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	const runs = 24
	var rows []bench.Row
	o := bench.Options{
		Dir: t.TempDir(), Durabilities: []natsio.Durability{natsio.DurabilityAlways}, InFlight: []int{1, 20}, Runs: runs, Rounds: 2,
	}
	if err := bench.Runs(ctx, o, func(r bench.Row) error { rows = append(rows, r); return nil }); err != nil {
		t.Fatal(err)
	}
	if got, want := len(rows), 2; got != want {
		t.Fatalf("%d rows, want %d", got, want)
	}
	for _, r := range rows {
		if got, want := len(r.Ratios), o.Rounds; got != want || r.Ratio() != slices.Min(r.Ratios) {
			t.Errorf("%s, %d in flight: told ratio %v of %v; want the lower one of two", r.Durability, r.InFlight, r.Ratio(), r.Ratios)
		}
		for name, side := range map[string]bench.Side{"ceiling": r.Ceiling, "refold": r.Refold} {
			if side.Runs != runs {
				t.Errorf("%s, %d in flight, %s: %d runs ended, want %d", r.Durability, r.InFlight, name, side.Runs, runs)
			}
			if !maps.Equal(side.PerRun, perRun) {
				t.Errorf("%s, %d in flight, %s: stored %v a run, want %v", r.Durability, r.InFlight, name, side.PerRun, perRun)
			}
			for stream, n := range side.PerCommit {
				if n < 1 {
					t.Errorf("%s, %d in flight, %s: %v messages a commit in %s", r.Durability, r.InFlight, name, n, stream)
				}
			}
		}
	}
}

func TestFoldFoldsEverySession(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	pace, err := bench.Fold(ctx, bench.Options{Dir: t.TempDir(), Runs: 5})
	if err != nil {
		t.Fatal(err)
	}
	if pace.Sessions != 5 || pace.Events != 30 || pace.FoldPerS <= 0 || pace.ReplayPerS <= 0 {
		t.Errorf("got %+v, want 5 sessions of 30 events together", pace)
	}
}

// TestWakeRunsEverySession: every session gets one run, and answers.
func TestWakeRunsEverySession(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	w, err := bench.Wake(ctx, bench.Options{Dir: t.TempDir()}, bench.WakeOptions{Sessions: 7, Events: 100, Asleep: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if w.Sessions != 7 || w.Others != 2 || w.Behind != 64 || w.P50 <= 0 || w.P99 < w.P50 || w.ReadP50 <= 0 || w.ReadP99 < w.ReadP50 {
		t.Errorf("got %+v", w)
	}
}

func TestGrowthMeasuresAtEachSize(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var got []int
	err := bench.Growth(ctx, bench.Options{Dir: t.TempDir(), Runs: 5}, 100, 100, 30, func(g bench.Grown) error {
		got = append(got, g.Sessions)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0] != 100 {
		t.Errorf("measured with %v sessions, want 100", got)
	}
}

// TestSleeping: a session-actor folds all events while they are stored.
func TestSleeping(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	var folded []string
	o := bench.Options{Dir: t.TempDir(), Step: func(what string, _ time.Duration) {
		if strings.HasPrefix(what, "folded") {
			folded = append(folded, what)
		}
	}}
	f, err := bench.Memory(ctx, o, 350, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"folded 35 sessions of 6 events", "folded 385 sessions of 6 events", "folded 1 sessions of 20 events", "folded 2 sessions of 20 events"}
	if !slices.Equal(folded, want) {
		t.Errorf("got %q, want %q", folded, want)
	}
	if f.Sleeping != 350 || f.Awake != 1 || f.AwakeTurns != 10 {
		t.Errorf("got %+v, want 350 sleeping and 1 awake session, of 10 turns", f)
	}
}

// TestCallsAllSucceed: calls of tools that take time and of tools that take none
// succeed, and each tool takes the expected time.
func TestCallsAllSucceed(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	rows := []bench.CallRow{{InFlight: 4, Least: time.Millisecond, Most: 3 * time.Millisecond, RetrySafe: true}, {InFlight: 2}, {InFlight: 2, Least: time.Millisecond, Most: 50 * time.Millisecond, Short: true}}
	var got []bench.Called
	if err := bench.Calls(ctx, bench.Options{Dir: t.TempDir(), Runs: 30}, rows, func(c bench.Called) error { got = append(got, c); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(rows) {
		t.Fatalf("%d rows, want %d", len(got), len(rows))
	}
	for i, c := range got {
		if c.CallRow != rows[i] || c.Calls != 30 || c.CallsPerS <= 0 || c.Overhead <= 0 || c.CPUShare <= 0 {
			t.Errorf("row %d: got %+v, want 30 calls of %+v", i, c, rows[i])
		}
	}
	if mean := rows[2].Mean(); mean < 8*time.Millisecond || mean > 9*time.Millisecond || got[2].CallsPerS > 2*1000 {
		t.Errorf("mostly short, of 1 to 50 ms: %v on the average, %v calls/s; want 8 to 9 ms, and no more than 2 of 1 ms come to", mean, got[2].CallsPerS)
	}
	if bound := got[0].Bound; math.Round(bound) != 2000 || got[0].CallsPerS > 4*1000 || got[1].Bound != 0 {
		t.Errorf("4 in flight of 2 ms: bound %v, want 2000 calls/s; and none without a time, got %v", bound, got[1].Bound)
	}
}
