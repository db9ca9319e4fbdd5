package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/refold/refold/proof/bench"
)

// options returns what all measurements take.
func (p place) options(s Streams, runs int) bench.Options {
	begun := time.Now()
	o := bench.Options{Dir: p.Dir, Runs: runs, Step: func(what string, took time.Duration) {
		fmt.Fprintf(s.Err, "%7.1f s  %s, in %.1f s\n", time.Since(begun).Seconds(), what, took.Seconds())
	}}
	return o
}

// tell prints a result: the row as JSON, or the text.
func (p place) tell(s Streams, row any, format string, args ...any) error {
	if p.JSON {
		return json.NewEncoder(s.Out).Encode(row)
	}
	_, err := fmt.Fprintf(s.Out, format+"\n", args...)
	return err
}

// positive refuses numbers below one.
func positive(flags string, numbers ...int) error {
	for _, n := range numbers {
		if n < 1 {
			return &Error{Usage, "bench: " + flags + " must be above zero"}
		}
	}
	return nil
}

// Fold measures the fold.
type Fold struct {
	Runs int `default:"1000" help:"Runs, each of a session of its own, that Refold carries out first."`
	place
}

// Run carries runs out and folds them.
func (b Fold) Run(ctx context.Context, s Streams) error {
	if err := positive("--runs", b.Runs); err != nil {
		return err
	}
	p, err := bench.Fold(ctx, b.options(s, b.Runs))
	if err != nil {
		return err
	}
	row := map[string]any{"sessions": p.Sessions, "events": p.Events, "bytes_per_event": p.BytesEach, "fold_events_s": p.FoldPerS}
	return b.tell(s, row, "fold: %.0f events/s, of %.0f bytes, in %d sessions of %d events together", p.FoldPerS, p.BytesEach, p.Sessions, p.Events)
}

// Replay measures a replay of everything.
type Replay struct {
	Runs int `default:"1000" help:"Runs, each of a session of its own, that Refold carries out first."`
	place
}

// Run carries runs out and replays them.
func (b Replay) Run(ctx context.Context, s Streams) error {
	if err := positive("--runs", b.Runs); err != nil {
		return err
	}
	p, err := bench.Fold(ctx, b.options(s, b.Runs))
	if err != nil {
		return err
	}
	row := map[string]any{"sessions": p.Sessions, "events": p.Events, "bytes_per_event": p.BytesEach, "replay_events_s": p.ReplayPerS}
	return b.tell(s, row, "replay: %.0f events/s, of %.0f bytes, in %d sessions of %d events together; identical", p.ReplayPerS, p.BytesEach, p.Sessions, p.Events)
}

// Sleeping measures a session-actor's memory.
type Sleeping struct {
	Sessions int `default:"100000" help:"Sessions that sleep."`
	Awake    int `default:"2000" help:"Sessions that are awake."`
	place
}

// Run has the sessions folded and looks at what is kept.
func (b Sleeping) Run(ctx context.Context, s Streams) error {
	if err := positive("--sessions and --awake", b.Sessions, b.Awake); err != nil {
		return err
	}
	f, err := bench.Memory(ctx, b.options(s, 0), b.Sessions, b.Awake)
	if err != nil {
		return err
	}
	row := map[string]any{
		"sleeping": f.Sleeping, "bytes_per_sleeping_session": f.SleepingEach,
		"awake": f.Awake, "awake_turns": f.AwakeTurns, "bytes_per_awake_session": f.AwakeEach,
	}
	return b.tell(s, row, "sleeping: %.0f bytes a session (%d sessions)\nawake and idle, after %d turns: %.0f bytes a session (%d sessions)",
		f.SleepingEach, f.Sleeping, f.AwakeTurns, f.AwakeEach, f.Awake)
}

// Wake measures cold wakes.
type Wake struct {
	Sessions int           `default:"300" help:"Sessions that are woken, one after the other."`
	Events   int           `default:"10000" help:"Events of each; its snapshot is 64 behind."`
	Every    time.Duration `default:"200ms" help:"From the beginning of one wake to that of the next; 0: one right behind the other."`
	Asleep   time.Duration `default:"130s" help:"For how long nothing happens to them before the first is woken: after two minutes the server has nothing of their blocks of the log in memory."`
	Files    string        `enum:"kept,left" default:"kept" help:"kept: the log's files are locked in memory while it sleeps (or touched, where that is not permitted); left: they are not, and a system that pages out what is idle reads them from its disk."`
	place
}

// Run wakes the sessions.
func (b Wake) Run(ctx context.Context, s Streams) error {
	if err := positive("--sessions and --events", b.Sessions, b.Events); err != nil {
		return err
	}
	w, err := bench.Wake(ctx, b.options(s, 0), bench.WakeOptions{
		Sessions: b.Sessions, Events: b.Events, Asleep: max(b.Asleep, 0), Every: max(b.Every, 0), FilesLeft: b.Files == "left",
	})
	if err != nil {
		return err
	}
	row := map[string]any{
		"sessions": w.Sessions, "others": w.Others, "events": w.Events, "behind": w.Behind, "files": b.Files, "p50_ms": ms(w.P50), "p99_ms": ms(w.P99),
		"read_p50_ms": ms(w.ReadP50), "read_p99_ms": ms(w.ReadP99),
	}
	return b.tell(s, row, "wake: p50 %.2f ms, p99 %.2f ms, of %d sessions with %d events, %d of them behind the snapshot; the log's files %s\nits reads alone: p50 %.2f ms, p99 %.2f ms, of %d others",
		ms(w.P50), ms(w.P99), w.Sessions, w.Events, w.Behind, b.Files, ms(w.ReadP50), ms(w.ReadP99), w.Others)
}

// Growth measures with more and more stored sessions.
type Growth struct {
	GrowthMin  int    `default:"100" placeholder:"N" help:"The fewest sessions; then ten times as many, and so on."`
	GrowthMax  int    `default:"10000" placeholder:"N" help:"The most sessions; up to 1,000,000, of which each takes about 4 KB of disk."`
	Recent     int    `default:"100000" placeholder:"N" help:"How many of them, at most, are of the last hour: their effects and claims are stored, too, another 4 KB each."`
	Runs       int    `default:"5000" help:"Runs that are measured with each number of sessions."`
	CPUProfile string `name:"cpuprofile" type:"path" placeholder:"DIR" help:"Write a CPU profile of the runs with each number of sessions."`
	place
}

// Run measures and prints as numbers are done.
func (b Growth) Run(ctx context.Context, s Streams) error {
	if err := positive("--growth-min, --growth-max and --runs", b.GrowthMin, b.GrowthMax, b.Runs); err != nil {
		return err
	}
	if b.Recent < 0 {
		return &Error{Usage, "bench: --recent must not be negative"}
	}
	if b.GrowthMax < b.GrowthMin {
		return &Error{Usage, fmt.Sprintf("bench: --growth-max is %d, fewer than --growth-min, %d: nothing would be measured", b.GrowthMax, b.GrowthMin)}
	}
	if !b.JSON {
		fmt.Fprintf(s.Out, "%10s %10s %14s %14s %9s %12s %9s %9s %9s %9s\n", "sessions", "runs/s", "us an event", "cpu us/event", "of 1,000", "collect us", "p50 ms", "p99 ms", "heap MiB", "taken ms")
	}
	o := b.options(s, b.Runs)
	o.Profiles = b.CPUProfile
	return bench.Growth(ctx, o, b.GrowthMin, b.GrowthMax, b.Recent, func(g bench.Grown) error {
		row := map[string]any{
			"sessions": g.Sessions, "recent": g.Recent, "runs_s": g.RunsPerS, "us_per_event": 1000 * ms(g.Event), "cpu_us_per_event": 1000 * ms(g.EventCPU),
			"cpu_relative_to_1000": g.Relative, "collect_us_per_event": 1000 * ms(g.Collect), "p50_ms": ms(g.P50), "p99_ms": ms(g.P99), "heap_mib": mib(g.Heap), "taken_ms": ms(g.Taken),
		}
		return b.tell(s, row, "%10d %10.0f %14.1f %14.1f %9.2f %12.1f %9.2f %9.2f %9.0f %9.0f",
			g.Sessions, g.RunsPerS, 1000*ms(g.Event), 1000*ms(g.EventCPU), g.Relative, 1000*ms(g.Collect), ms(g.P50), ms(g.P99), mib(g.Heap), ms(g.Taken))
	})
}
