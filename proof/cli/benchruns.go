package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/proof/bench"
)

// Runs measures whole runs.
type Runs struct {
	Durability []string `default:"always,interval" enum:"always,interval" help:"When the servers sync what they store: ${enum}."`
	InFlight   []int    `default:"1,100,1000" help:"Runs at a time."`
	Seconds    float64  `default:"5" help:"How long each side of a row is measured, after a fifth of that to warm up."`
	Runs       int      `placeholder:"N" help:"Measure this number of runs of each side instead."`
	Rounds     int      `default:"1" help:"How often to measure each row, with the sides in turns; the round with the median ratio is printed."`
	Replicas   int      `default:"1" help:"3 runs three servers as a cluster, on loopback."`
	Processes  bool     `help:"Run the server, the session-actor, the bridge and the clients as a process each, on loopback, and compare a bridge with the option --durability with one of default options."`
	Telemetry  bool     `help:"Compare Refold that keeps metrics and traces a tenth of the runs with one that does neither."`
	place
}

// Run measures and prints rows as they are done.
func (b Runs) Run(ctx context.Context, s Streams) error {
	if b.Runs < 0 || b.Runs == 0 && b.Seconds <= 0 || b.Replicas < 1 || b.Rounds < 1 || slices.ContainsFunc(b.InFlight, func(n int) bool { return n < 1 }) {
		return &Error{Usage, "bench: --seconds, --runs, --rounds, --replicas and --in-flight are above zero"}
	}
	if b.Processes && (b.Replicas > 1 || b.Telemetry) {
		return &Error{Usage, "bench: --processes runs one server and measures nothing else: leave --replicas and --telemetry out"}
	}
	o := b.options(s, b.Runs)
	o.InFlight, o.Replicas, o.Rounds = b.InFlight, b.Replicas, b.Rounds
	o.For = time.Duration(b.Seconds * float64(time.Second))
	for _, text := range b.Durability {
		d, err := natsio.ParseDurability(text)
		if err != nil {
			return err
		}
		o.Durabilities = append(o.Durabilities, d)
	}
	than := "ceiling"
	switch {
	case b.Processes:
		than, o.Processes = "told", func(p bench.Part) *exec.Cmd { return startPart(s, p) }
	case b.Telemetry:
		than, o.Telemetry = "without", startTelemetry
	}
	t := b.table(s)
	var last bench.Row
	err := bench.Runs(ctx, o, func(r bench.Row) error {
		last = r
		return t.row(runsColumns(r, than)...)
	})
	if err == nil && !b.JSON && than == "ceiling" {
		tellMessages(s.Out, last)
	}
	return err
}

// runsColumns returns the figures of a row. than names the other side.
func runsColumns(r bench.Row, than string) []column {
	a, b, their := &r.Refold, &r.Ceiling, "their"
	if than == "ceiling" {
		their = "ceil"
	}
	columns := []column{
		{"durability", "durability", "%-10s", r.Durability.String()},
		{"in_flight", "in flight", "%9d", r.InFlight},
		{than + "_runs_s", than + "/s", "%10.0f", b.RunsPerS},
		{"runs_s", "runs/s", "%10.0f", a.RunsPerS},
		{"ratio", "ratio", "%6.2f", r.Ratio()},
		{"p50_ms", "p50 ms", "%9.2f", ms(a.P50)},
		{than + "_p50_ms", their + " p50", "%9.2f", ms(b.P50)},
		{"cpu_ms_per_run", "cpu ms", "%9.2f", ms(a.CPU)},
		{than + "_cpu_ms_per_run", their + " cpu", "%9.2f", ms(b.CPU)},
		{"ratios", "", "", r.Ratios},
	}
	if than != "ceiling" {
		return append(columns,
			column{"commits_per_run", "syncs/run", "%9.1f", a.Commits},
			column{than + "_commits_per_run", their, "%9.1f", b.Commits},
			column{"", "ratios of the rounds", "%s", ratios(r)})
	}
	return append(columns,
		column{"p99_ms", "p99 ms", "%9.2f", ms(a.P99)},
		column{"ceiling_p99_ms", "ceil p99", "%9.2f", ms(b.P99)},
		column{"", "ratios of the rounds; messages a commit: ceiling, refold", "%s", ratios(r) + "; " + commits(r)},
		column{"replicas", "", "", r.Replicas},
		column{"messages_per_run", "", "", a.PerRun},
		column{"ceiling_messages_per_run", "", "", b.PerRun},
		column{"messages_per_commit", "", "", a.PerCommit},
		column{"ceiling_messages_per_commit", "", "", b.PerCommit},
		column{"bytes_per_message", "", "", a.BytesEach})
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

// ratios lists the ratio of each round, in order.
func ratios(r bench.Row) string {
	var all []string
	for _, ratio := range r.Ratios {
		all = append(all, fmt.Sprintf("%.2f", ratio))
	}
	return strings.Join(all, " ")
}

// commits lists the messages of a commit, by stream.
func commits(r bench.Row) string {
	var all []string
	for _, stream := range slices.Sorted(maps.Keys(r.Refold.PerCommit)) {
		all = append(all, fmt.Sprintf("%s %.1f, %.1f", stream, r.Ceiling.PerCommit[stream], r.Refold.PerCommit[stream]))
	}
	return strings.Join(all, "; ")
}
