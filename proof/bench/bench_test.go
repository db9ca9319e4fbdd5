package bench_test

// Small rows on both sides. The tests check that every run ended, and what was
// stored, but no times.

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/proof/bench"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// perRun is what a run stores: 6 events, 7 effects and claims, a wake, 2 messages of
// notices, of which the first has two.
var perRun = map[string]int{
	"REFOLD_LOG RunRequested": 1, "REFOLD_LOG ToolCallsObserved": 1, "REFOLD_LOG ToolCallSettled": 3, "REFOLD_LOG GenerationSettled": 1,
	"REFOLD_FX llm": 2, "REFOLD_FX tool": 3, "REFOLD_FX claim": 2, "REFOLD_TIMERS wake": 1,
	"REFOLD_OUT SessionOpened": 1, "REFOLD_OUT RunFinished": 1,
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

// The model is shown all of a session without a context, and of one with a context at
// most its tokens.
func TestLongTurnsShowsAWindow(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var all []bench.Long
	what := bench.LongOptions{Turns: []int{5, 40}, Tokens: 2000}
	if err := bench.LongTurns(ctx, bench.Options{Dir: t.TempDir()}, what, func(l bench.Long) error {
		all = append(all, l)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(all) != 4 {
		t.Fatalf("got %+v, want four reports", all)
	}
	for i, l := range all {
		if l.Context != (i >= 2) || l.Turns != what.Turns[i%2] || l.P50 <= 0 || l.P99 < l.P50 || l.Ends != "" {
			t.Errorf("report %d is %+v", i, l)
		}
	}
	if whole, window := all[1].Tokens, all[3].Tokens; whole <= what.Tokens || window > what.Tokens || all[0].Tokens != all[2].Tokens {
		t.Errorf("the model is shown %d tokens without a context, %d with one of %d, after %d turns", whole, window, what.Tokens, all[1].Turns)
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
	if w.Sessions != 7 || w.Behind != 64 || w.P50 <= 0 || w.P99 < w.P50 {
		t.Errorf("got %+v", w)
	}
}
