package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/proof/bench"
)

// Bench measures this machine, on servers of its own.
type Bench struct {
	Runs   Runs      `cmd:"" default:"withargs" help:"Runs a second and their latency, and what the design could reach here."`
	Fold   Fold      `cmd:"" help:"Events a second that are folded from memory."`
	Replay Replay    `cmd:"" help:"Events a second that a client replays from the log, compared with all that was stored."`
	Wake   Wake      `cmd:"" help:"How long a session that nobody has in memory takes to begin a run."`
	Calls  Calls     `cmd:"" help:"Tool calls a second that one bridge carries out, and what a call takes besides its tool."`
	Part   BenchPart `cmd:"" hidden:""`
}

// BenchAll has the measurements of single mechanisms besides.
type BenchAll struct {
	Runs     RunsAll   `cmd:"" default:"withargs" help:"As refold bench runs, with profiles."`
	Sleeping Sleeping  `cmd:"" help:"Bytes that a session-actor keeps of a session that sleeps, and of one that is awake and idle."`
	Growth   Growth    `cmd:"" help:"What an event costs with 100, 1,000, … sessions in the streams."`
	Prefix   Prefix    `cmd:"" help:"Which share of what a recording's conversations send to a model a prompt cache can hold."`
	Handover Handover  `cmd:"" help:"How long a session-actor's lanes say nothing when it is told to end, or killed."`
	Part     BenchPart `cmd:"" hidden:""`
}

// Runs measures whole runs.
type Runs struct {
	Durability []string `default:"always,interval" enum:"always,interval" help:"When the servers sync what they store: ${enum}."`
	InFlight   []int    `default:"1,100,1000" help:"Runs at a time."`
	Seconds    float64  `default:"5" help:"How long each side of a row is measured, after a fifth of that to warm up."`
	Runs       int      `placeholder:"N" help:"Measure so many runs of each side instead."`
	Rounds     int      `default:"1" help:"Measure each row so often, the sides by turns, and print the round with the median ratio."`
	Replicas   int      `default:"1" help:"3 runs three servers as a cluster, on loopback."`
	Processes  bool     `help:"Give the server, the session-actor, the bridge and the clients a process each, on loopback, and compare a bridge that is told --durability with one of default options."`
	Telemetry  bool     `help:"Compare Refold that keeps metrics and traces a tenth of the runs with one that does neither."`
	place
}

// Run measures and prints as rows are done.
func (b Runs) Run(ctx context.Context, s Streams) error { return RunsAll{Runs: b}.Run(ctx, s) }

// RunsAll writes profiles besides.
type RunsAll struct {
	Runs
	CPUProfile string `name:"cpuprofile" type:"path" placeholder:"DIR" help:"Write a CPU profile of each side of each row."`
}

// place is where the files go and the results.
type place struct {
	Dir  string `type:"existingdir" placeholder:"DIR" help:"Where the servers keep their files while they run. Default: the system's directory for temporary files."`
	JSON bool   `help:"Print a line of JSON a row."`
}

// runsRow is a row as --json prints it.
type runsRow struct {
	Durability     string             `json:"durability"`
	InFlight       int                `json:"in_flight"`
	Replicas       int                `json:"replicas"`
	CeilingRunsS   float64            `json:"ceiling_runs_s"`
	RunsS          float64            `json:"runs_s"`
	Ratio          float64            `json:"ratio"`
	Ratios         []float64          `json:"ratios"`
	P50            float64            `json:"p50_ms"`
	P99            float64            `json:"p99_ms"`
	CeilingP50     float64            `json:"ceiling_p50_ms"`
	CeilingP99     float64            `json:"ceiling_p99_ms"`
	CPU            float64            `json:"cpu_ms_per_run"`
	CeilingCPU     float64            `json:"ceiling_cpu_ms_per_run"`
	Heap           float64            `json:"heap_mib"`
	Sys            float64            `json:"sys_mib"`
	Messages       map[string]int     `json:"messages_per_run"`
	CeilingStored  map[string]int     `json:"ceiling_messages_per_run"`
	PerCommit      map[string]float64 `json:"messages_per_commit"`
	CeilingCommits map[string]float64 `json:"ceiling_messages_per_commit"`
	Bytes          float64            `json:"bytes_per_message"`
}

// Run measures and prints as rows are done.
func (b RunsAll) Run(ctx context.Context, s Streams) error {
	if b.Runs.Runs < 0 || b.Runs.Runs == 0 && b.Seconds <= 0 || b.Replicas < 1 || b.Rounds < 1 || slices.ContainsFunc(b.InFlight, func(n int) bool { return n < 1 }) {
		return &Error{Usage, "bench: --seconds, --runs, --rounds, --replicas and --in-flight are above zero"}
	}
	if b.Processes && (b.Replicas > 1 || b.Telemetry) {
		return &Error{Usage, "bench: --processes runs one server and measures nothing else: leave --replicas and --telemetry out"}
	}
	o := b.options(s, b.Runs.Runs)
	o.InFlight, o.Replicas, o.Rounds, o.Profiles = b.InFlight, b.Replicas, b.Rounds, b.CPUProfile
	o.For = time.Duration(b.Seconds * float64(time.Second))
	for _, text := range b.Durability {
		d, err := bus.ParseDurability(text)
		if err != nil {
			return err
		}
		o.Durabilities = append(o.Durabilities, d)
	}
	if b.Processes {
		o.Processes = func(p bench.Part) *exec.Cmd { return startPart(s, p) }
		return b.compare(ctx, s, o, "told")
	}
	if b.Telemetry {
		o.Telemetry = startTelemetry
		return b.compare(ctx, s, o, "without")
	}
	if b.JSON {
		out := json.NewEncoder(s.Out)
		return bench.Runs(ctx, o, func(r bench.Row) error { return out.Encode(jsonRow(r)) })
	}
	fmt.Fprintf(s.Out, "%-10s %8s %10s %10s %6s %9s %9s %9s %9s %9s %9s %9s %9s  %s\n",
		"durability", "flying", "ceiling/s", "runs/s", "ratio", "p50 ms", "p99 ms", "ceil p50", "ceil p99", "cpu ms", "ceil cpu", "heap MiB", "sys MiB", "ratios of the rounds; messages a commit: ceiling, refold")
	var last bench.Row
	err := bench.Runs(ctx, o, func(r bench.Row) error {
		last = r
		_, err := fmt.Fprintf(s.Out, "%-10s %8d %10.0f %10.0f %6.2f %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f %9.0f %9.0f  %s\n",
			r.Durability, r.InFlight, r.Ceiling.RunsPerS, r.Refold.RunsPerS, r.Ratio(), ms(r.Refold.P50), ms(r.Refold.P99),
			ms(r.Ceiling.P50), ms(r.Ceiling.P99), ms(r.Refold.CPU), ms(r.Ceiling.CPU), mib(r.Refold.Heap), mib(r.Refold.Sys), ratios(r)+"; "+commits(r))
		return err
	})
	if err == nil {
		tellMessages(s.Out, last)
	}
	return err
}

// tellMessages prints what a run stored on both sides.
func tellMessages(out io.Writer, r bench.Row) {
	fmt.Fprintf(out, "\n%-52s %8s %8s\n", "messages a run", "ceiling", "refold")
	total := [2]int{}
	for _, kind := range slices.Sorted(maps.Keys(r.Refold.PerRun)) {
		fmt.Fprintf(out, "%-52s %8d %8d\n", kind, r.Ceiling.PerRun[kind], r.Refold.PerRun[kind])
		total[0] += r.Ceiling.PerRun[kind]
		total[1] += r.Refold.PerRun[kind]
	}
	fmt.Fprintf(out, "%-52s %8d %8d\n", fmt.Sprintf("together, of %.0f bytes", r.Refold.BytesEach), total[0], total[1])
}

// ratios says what each round came to, in their order.
func ratios(r bench.Row) string {
	var all []string
	for _, ratio := range r.Ratios {
		all = append(all, fmt.Sprintf("%.2f", ratio))
	}
	return strings.Join(all, " ")
}

// commits says how many messages were stored at once, by stream.
func commits(r bench.Row) string {
	var all []string
	for _, stream := range slices.Sorted(maps.Keys(r.Refold.PerCommit)) {
		all = append(all, fmt.Sprintf("%s %.1f, %.1f", stream, r.Ceiling.PerCommit[stream], r.Refold.PerCommit[stream]))
	}
	return strings.Join(all, "; ")
}

func jsonRow(r bench.Row) runsRow {
	return runsRow{
		Durability: r.Durability.String(), InFlight: r.InFlight, Replicas: r.Replicas,
		CeilingRunsS: r.Ceiling.RunsPerS, RunsS: r.Refold.RunsPerS, Ratio: r.Ratio(), Ratios: r.Ratios,
		P50: ms(r.Refold.P50), P99: ms(r.Refold.P99), CeilingP50: ms(r.Ceiling.P50), CeilingP99: ms(r.Ceiling.P99),
		CPU: ms(r.Refold.CPU), CeilingCPU: ms(r.Ceiling.CPU),
		Heap: mib(r.Refold.Heap), Sys: mib(r.Refold.Sys), Messages: r.Refold.PerRun, CeilingStored: r.Ceiling.PerRun,
		PerCommit: r.Refold.PerCommit, CeilingCommits: r.Ceiling.PerCommit, Bytes: r.Refold.BytesEach,
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func mib(bytes uint64) float64 { return float64(bytes) / (1 << 20) }
