package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"

	"github.com/refold/refold/proof/bench"
)

// BenchPart plays a part of bench runs --processes, which starts it.
type BenchPart struct {
	Role       string `arg:""`
	URL        string
	Dir        string
	Always     bool
	Durability string
}

// Run plays it until standard input ends.
func (b BenchPart) Run(ctx context.Context, s Streams) error {
	return bench.Part(b).Play(ctx, s.In, s.Out)
}

// startPart starts a process that plays a part.
func startPart(s Streams, p bench.Part) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	args := []string{"bench", "part", p.Role, "--url=" + p.URL, "--dir=" + p.Dir, "--durability=" + p.Durability}
	if p.Always {
		args = append(args, "--always")
	}
	cmd := exec.Command(self, args...)
	cmd.Stderr = s.Err
	return cmd
}

// compare measures Refold against Refold with one thing changed, and prints
// each row when it is done. than names the other one.
func (b Runs) compare(ctx context.Context, s Streams, o bench.Options, than string) error {
	if !b.JSON {
		fmt.Fprintf(s.Out, "%-10s %8s %10s %10s %6s %9s %9s %9s %9s %9s %9s  %s\n", "durability", "flying", than+"/s", "runs/s", "ratio",
			"p50 ms", "their p50", "cpu ms", "their cpu", "syncs", "their", "ratios of the rounds")
	}
	out := json.NewEncoder(s.Out)
	return bench.Runs(ctx, o, func(r bench.Row) error {
		if b.JSON {
			return out.Encode(map[string]any{
				"durability": r.Durability.String(), "in_flight": r.InFlight, than + "_runs_s": r.Ceiling.RunsPerS, "runs_s": r.Refold.RunsPerS,
				"ratio": r.Ratio(), "ratios": r.Ratios, than + "_p50_ms": ms(r.Ceiling.P50), "p50_ms": ms(r.Refold.P50),
				than + "_cpu_ms_per_run": ms(r.Ceiling.CPU), "cpu_ms_per_run": ms(r.Refold.CPU),
				than + "_commits_per_run": r.Ceiling.Commits, "commits_per_run": r.Refold.Commits,
			})
		}
		_, err := fmt.Fprintf(s.Out, "%-10s %8d %10.0f %10.0f %6.2f %9.2f %9.2f %9.2f %9.2f %9.1f %9.1f  %s\n",
			r.Durability, r.InFlight, r.Ceiling.RunsPerS, r.Refold.RunsPerS, r.Ratio(), ms(r.Refold.P50), ms(r.Ceiling.P50),
			ms(r.Refold.CPU), ms(r.Ceiling.CPU), r.Refold.Commits, r.Ceiling.Commits, ratios(r))
		return err
	})
}
