package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/refold/refold/proof/bench"
)

// Calls measures one bridge.
type Calls struct {
	Calls    int           `default:"10000" help:"Tool calls of each row."`
	InFlight []int         `default:"64,256" help:"Calls at a time."`
	Least    time.Duration `default:"1ms" help:"What the shortest call's tool takes."`
	Most     time.Duration `default:"50ms" help:"What the longest call's tool takes."`
	place
}

// Run measures tools that take their time, evenly spread and then mostly short,
// and then those that take none, each retry-safe and not, and prints as rows are
// done.
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
	if !b.JSON {
		fmt.Fprintf(s.Out, "%-24s %-10s %8s %8s %9s %9s %12s %8s %6s\n", "tool", "retry-safe", "flying", "calls", "calls/s", "bound/s", "overhead ms", "cpu us", "cpu %")
	}
	return bench.Calls(ctx, b.options(s, b.Calls), rows, func(c bench.Called) error {
		tool, bound := fmt.Sprintf("%v to %v", c.Least, c.Most), fmt.Sprintf("%.0f", c.Bound)
		switch {
		case c.Most == 0:
			tool, bound = "no time", "-"
		case c.Short:
			tool += ", most short"
		}
		row := map[string]any{
			"least_ms": ms(c.Least), "most_ms": ms(c.Most), "mean_ms": ms(c.Mean()), "retry_safe": c.RetrySafe, "in_flight": c.InFlight, "calls": c.Calls, "calls_s": c.CallsPerS,
			"bound_calls_s": c.Bound, "overhead_ms": ms(c.Overhead), "cpu_us_per_call": 1000 * ms(c.CPU), "cpu_share": c.CPUShare,
		}
		return b.tell(s, row, "%-24s %-10v %8d %8d %9.0f %9s %12.2f %8.0f %6.0f",
			tool, c.RetrySafe, c.InFlight, c.Calls, c.CallsPerS, bound, ms(c.Overhead), 1000*ms(c.CPU), 100*c.CPUShare)
	})
}
