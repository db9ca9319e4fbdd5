package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/refold/refold/proof/bench"
	"github.com/refold/refold/proof/chaos"
)

// Fold measures the fold.
type Fold struct {
	Runs int `default:"1000" help:"Runs, each of a session of its own, that Refold carries out first."`
	place
}

// Run carries runs out and folds them.
func (b Fold) Run(ctx context.Context, s Streams) error {
	return b.measure(ctx, s, func(p bench.Pace) column { return column{"fold_events_s", "folded/s", "%12.0f", p.FoldPerS} })
}

// Replay measures a replay of everything. It fails unless it is identical.
type Replay struct{ Fold }

// Run carries runs out and replays them.
func (b Replay) Run(ctx context.Context, s Streams) error {
	return b.measure(ctx, s, func(p bench.Pace) column { return column{"replay_events_s", "replayed/s", "%12.0f", p.ReplayPerS} })
}

func (b Fold) measure(ctx context.Context, s Streams, pace func(bench.Pace) column) error {
	if err := positive("--runs", b.Runs); err != nil {
		return err
	}
	p, err := bench.Fold(ctx, b.options(s, b.Runs))
	if err != nil {
		return err
	}
	return b.table(s).row(
		column{"sessions", "sessions", "%8d", p.Sessions}, column{"events", "events", "%8d", p.Events},
		column{"bytes_per_event", "bytes/event", "%11.0f", p.BytesEach}, pace(p))
}

// Sleeping measures a session-actor's memory.
type Sleeping struct {
	Sessions int `default:"100000" help:"Sessions that sleep."`
	Awake    int `default:"2000" help:"Sessions that are awake."`
	place
}

// Run has the sessions folded and measures the memory that they keep.
func (b Sleeping) Run(ctx context.Context, s Streams) error {
	if err := positive("--sessions and --awake", b.Sessions, b.Awake); err != nil {
		return err
	}
	f, err := bench.Memory(ctx, b.options(s, 0), b.Sessions, b.Awake)
	if err != nil {
		return err
	}
	return b.table(s).row(
		column{"sleeping", "sleeping", "%9d", f.Sleeping}, column{"bytes_per_sleeping_session", "bytes each", "%10.0f", f.SleepingEach},
		column{"awake", "awake", "%9d", f.Awake}, column{"awake_turns", "turns", "%6d", f.AwakeTurns},
		column{"bytes_per_awake_session", "bytes each", "%10.0f", f.AwakeEach})
}

// Wake measures cold wakes.
type Wake struct {
	Sessions int           `default:"300" help:"Sessions that are woken, one after the other."`
	Events   int           `default:"10000" help:"Events of each; its snapshot is 64 behind."`
	Every    time.Duration `default:"200ms" help:"From the start of one wake to the next; 0: without a pause."`
	Asleep   time.Duration `default:"130s" help:"Idle time before the first wake: after two minutes the server has nothing of the sessions' blocks of the log in memory."`
	place
}

// Run wakes the sessions.
func (b Wake) Run(ctx context.Context, s Streams) error {
	if err := positive("--sessions and --events", b.Sessions, b.Events); err != nil {
		return err
	}
	w, err := bench.Wake(ctx, b.options(s, 0), bench.WakeOptions{
		Sessions: b.Sessions, Events: b.Events, Asleep: max(b.Asleep, 0), Every: max(b.Every, 0),
	})
	if err != nil {
		return err
	}
	return b.table(s).row(
		column{"sessions", "sessions", "%8d", w.Sessions}, column{"events", "events", "%8d", w.Events},
		column{"behind", "behind", "%6d", w.Behind},
		column{"p50_ms", "p50 ms", "%9.2f", ms(w.P50)}, column{"p99_ms", "p99 ms", "%9.2f", ms(w.P99)},
		column{"others", "only read", "%9d", w.Others},
		column{"read_p50_ms", "p50 ms", "%9.2f", ms(w.ReadP50)}, column{"read_p99_ms", "p99 ms", "%9.2f", ms(w.ReadP99)})
}

// Calls measures one bridge.
type Calls struct {
	Calls    int           `default:"10000" help:"Tool calls of each row."`
	InFlight []int         `default:"64,256" help:"Calls at a time."`
	Least    time.Duration `default:"1ms" help:"Time of the shortest call's tool."`
	Most     time.Duration `default:"50ms" help:"Time of the longest call's tool."`
	place
}

// Run measures tools that take time, evenly spread and then mostly short, and
// then tools that take none, each retry-safe and not.
func (b Calls) Run(ctx context.Context, s Streams) error {
	if err := positive("--calls and --in-flight", append(slices.Clone(b.InFlight), b.Calls)...); err != nil {
		return err
	}
	if b.Least < 0 || b.Most < b.Least {
		return &Error{Usage, "bench: --least is not negative, and --most not below it"}
	}
	var rows []bench.CallRow
	for _, row := range []bench.CallRow{{Least: b.Least, Most: b.Most}, {Least: b.Least, Most: b.Most, Short: true}, {}} {
		for _, row.InFlight = range b.InFlight {
			for _, row.RetrySafe = range []bool{true, false} {
				rows = append(rows, row)
			}
		}
	}
	t := b.table(s)
	return bench.Calls(ctx, b.options(s, b.Calls), rows, func(c bench.Called) error {
		tool := fmt.Sprintf("%v to %v", c.Least, c.Most)
		switch {
		case c.Most == 0:
			tool = "no time"
		case c.Short:
			tool += ", most short"
		}
		return t.row(
			column{"", "tool", "%-24s", tool}, column{"retry_safe", "retry-safe", "%-10v", c.RetrySafe},
			column{"least_ms", "", "", ms(c.Least)}, column{"most_ms", "", "", ms(c.Most)}, column{"mean_ms", "", "", ms(c.Mean())},
			column{"in_flight", "in flight", "%9d", c.InFlight}, column{"calls", "calls", "%8d", c.Calls},
			column{"calls_s", "calls/s", "%9.0f", c.CallsPerS}, column{"bound_calls_s", "bound/s", "%9.0f", c.Bound},
			column{"overhead_ms", "overhead ms", "%12.2f", ms(c.Overhead)}, column{"cpu_us_per_call", "cpu us", "%8.0f", us(c.CPU)},
			column{"", "cpu %", "%6.0f", 100 * c.CPUShare}, column{"cpu_share", "", "", c.CPUShare})
	})
}

// Growth measures with growing numbers of stored sessions.
type Growth struct {
	GrowthMin int `default:"100" placeholder:"N" help:"The fewest sessions; then ten times as many, and so on."`
	GrowthMax int `default:"10000" placeholder:"N" help:"The most sessions; up to 1,000,000, of which each takes about 4 KB of disk, and as much again while it is stored."`
	Recent    int `default:"100000" placeholder:"N" help:"How many of them, at most, are of the last hour: their effects and claims are still stored, another 4 KB each."`
	Runs      int `default:"5000" help:"Measured runs with each number of sessions."`
	place
}

// Run measures and prints rows as they are done.
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
	t := b.table(s)
	return bench.Growth(ctx, b.options(s, b.Runs), b.GrowthMin, b.GrowthMax, b.Recent, func(g bench.Grown) error {
		return t.row(
			column{"sessions", "sessions", "%10d", g.Sessions}, column{"recent", "", "", g.Recent},
			column{"runs_s", "runs/s", "%10.0f", g.RunsPerS}, column{"us_per_event", "us/event", "%10.1f", us(g.Event)},
			column{"cpu_us_per_event", "cpu us/event", "%14.1f", us(g.EventCPU)}, column{"cpu_relative_to_1000", "of 1,000", "%9.2f", g.Relative},
			column{"collect_us_per_event", "collect us", "%12.1f", us(g.Collect)},
			column{"p50_ms", "p50 ms", "%9.2f", ms(g.P50)}, column{"p99_ms", "p99 ms", "%9.2f", ms(g.P99)},
			column{"heap_mib", "heap MiB", "%9.0f", mib(g.Heap)}, column{"taken_ms", "taken ms", "%9.0f", ms(g.Taken)})
	})
}

// Prefix measures the share of requests that prompt caches can hold.
type Prefix struct {
	File   string `arg:"" type:"existingfile" help:"The recording: OpenAI chat JSONL, a conversation a line."`
	Tools  string `type:"existingfile" placeholder:"FILE" help:"OpenAI tool definitions of the recording. Default: x-tools.json next to x.jsonl."`
	System string `type:"existingfile" placeholder:"FILE" help:"The system text, instead of the recording's own."`
	results
}

// Run folds the conversations and prints a line for each, and their sum.
func (b Prefix) Run(s Streams) error {
	system := ""
	if b.System != "" {
		text, err := os.ReadFile(b.System)
		if err != nil {
			return err
		}
		system = string(text)
	}
	t, all := b.table(s), bench.Prefix{Conversation: "together"}
	tell := func(p bench.Prefix) error {
		return t.row(
			column{"conversation", "conversation", "%-32s", p.Conversation}, column{"turns", "turns", "%6d", p.Turns},
			column{"exact_bytes", "exact bytes", "%12d", p.Exact.Sent}, column{"exact_share", "held", "%7.3f", p.Exact.Share()},
			column{"masked_bytes", "masked bytes", "%12d", p.Masked.Sent}, column{"masked_share", "held", "%7.3f", p.Masked.Share()})
	}
	err := bench.Prefixes(b.File, b.Tools, system, func(p bench.Prefix) error {
		all.Turns += p.Turns
		for _, sum := range []struct{ to, of *bench.Held }{{&all.Exact, &p.Exact}, {&all.Masked, &p.Masked}} {
			sum.to.Sent += sum.of.Sent
			sum.to.Held += sum.of.Held
		}
		return tell(p)
	})
	if err != nil {
		return err
	}
	return tell(all)
}

// Handover measures how long handovers take.
type Handover struct {
	Rounds   int `default:"5" help:"Measured handovers by SIGTERM, and as many by SIGKILL."`
	InFlight int `default:"2" help:"Runs in flight of each lane."`
	place
}

// Run kills session-actors, and prints each handover, the medians and the worst.
func (b Handover) Run(ctx context.Context, s Streams) error {
	if err := positive("--rounds and --in-flight", b.Rounds, b.InFlight); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	t, silences := b.table(s), map[string][]time.Duration{}
	o := chaos.HandoverOptions{Program: []string{self, "chaos-part"}, Dir: b.Dir, Rounds: b.Rounds, InFlight: b.InFlight}
	err = chaos.Handovers(ctx, o, func(h chaos.Handover) error {
		signal := "SIGKILL"
		if h.Term {
			signal = "SIGTERM"
		}
		silences[signal] = append(silences[signal], h.Silence)
		return t.row(
			column{"signal", "signal", "%-7s", signal}, column{"lanes", "lanes", "%5d", h.Lanes},
			column{"silence_ms", "silent ms", "%9.0f", ms(h.Silence)}, column{"first_ms", "the least", "%9.0f", ms(h.First)},
			column{"others_ms", "other lanes", "%11.0f", ms(h.Others)}, column{"calm_ms", "just before", "%11.0f", ms(h.Calm)},
			column{"ended_ms", "ended after", "%11.0f", ms(h.Ended)})
	})
	if b.JSON || err != nil {
		return err
	}
	for _, meant := range []struct {
		signal string
		ms     int // the target on an otherwise idle machine
	}{{"SIGTERM", 200}, {"SIGKILL", 3000}} {
		all := slices.Sorted(slices.Values(silences[meant.signal]))
		_, printErr := fmt.Fprintf(s.Out, "%-7s  median %.0f ms, worst %.0f ms, of %d; the target is %d ms at most on an otherwise idle machine\n",
			meant.signal, ms(all[len(all)/2]), ms(all[len(all)-1]), len(all), meant.ms)
		err = errors.Join(err, printErr)
	}
	return err
}
