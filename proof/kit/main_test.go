package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/proof/cli"
)

// mainEnv says that the test binary is the program itself: bench --processes starts it.
const mainEnv = "REFOLD_TEST_KIT"

func TestMain(m *testing.M) {
	if os.Getenv(mainEnv) != "" {
		main()
	}
	os.Exit(m.Run())
}

// runBench runs kit bench and returns what it prints.
func runBench(t *testing.T, args ...string) string {
	t.Helper()
	var out, errOut strings.Builder
	args = append(append([]string{"bench"}, args...), "--dir", t.TempDir())
	if status := run(t.Context(), args, strings.NewReader(""), &out, &errOut); status != 0 {
		t.Fatalf("status %d: %s", status, errOut.String())
	}
	return out.String()
}

// wantKeys reads a row as programs do, by its keys: it has these and no others.
func wantKeys(t *testing.T, line, keys string) (row map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(line), &row); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	want := strings.Fields(keys)
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(row)); !slices.Equal(got, want) {
		t.Errorf("keys: got %q, want %q", got, want)
	}
	return row
}

// above returns a number of a row, which must be above zero.
func above(t *testing.T, row map[string]any, key string) float64 {
	t.Helper()
	n, ok := row[key].(float64)
	if !ok || n <= 0 {
		t.Errorf("%s: got %v, want a number above zero", key, row[key])
	}
	return n
}

// TestBench: a small row in JSON, with equal messages on both sides and a
// ratio.
func TestBench(t *testing.T) {
	t.Parallel()
	row := wantKeys(t, runBench(t, "--runs", "20", "--json", "--durability", "interval", "--in-flight", "5"), `
		durability in_flight replicas ceiling_runs_s runs_s ratio ratios p50_ms p99_ms ceiling_p50_ms ceiling_p99_ms
		cpu_ms_per_run ceiling_cpu_ms_per_run messages_per_run ceiling_messages_per_run
		messages_per_commit ceiling_messages_per_commit bytes_per_message`)
	if row["durability"] != "interval" || row["in_flight"] != 5.0 || row["replicas"] != 1.0 {
		t.Errorf("got %v", row)
	}
	ratio, ceiling := above(t, row, "ratio"), above(t, row, "ceiling_runs_s")
	if got, want := above(t, row, "runs_s"), ratio*ceiling; got < 0.99*want || got > 1.01*want {
		t.Errorf("runs_s: got %f, want %f, the ratio's part of the ceiling", got, want)
	}
	if p50, p99 := above(t, row, "p50_ms"), above(t, row, "p99_ms"); p99 < p50 {
		t.Errorf("p99 is %f, below p50, %f", p99, p50)
	}
	if p50, p99 := above(t, row, "ceiling_p50_ms"), above(t, row, "ceiling_p99_ms"); p99 < p50 {
		t.Errorf("the ceiling's p99 is %f, below its p50, %f", p99, p50)
	}
	for _, key := range []string{"cpu_ms_per_run", "ceiling_cpu_ms_per_run", "bytes_per_message"} {
		above(t, row, key)
	}
	messages, _ := row["messages_per_run"].(map[string]any)
	ceilings, _ := row["ceiling_messages_per_run"].(map[string]any)
	if !maps.Equal(messages, ceilings) {
		t.Errorf("a run stored %v, and one of the ceiling's %v", messages, ceilings)
	}
	total := 0.0
	for kind := range messages {
		total += above(t, messages, kind)
	}
	if want := 16.0; total != want {
		t.Errorf("a run stored %.0f messages, want %.0f", total, want)
	}
}

// TestBenchPrintsMessages: the text ends with the messages of a run by kind,
// the ceiling's and Refold's, and the sum.
func TestBenchPrintsMessages(t *testing.T) {
	t.Parallel()
	out := runBench(t, "--runs", "20", "--durability", "interval", "--in-flight", "5")
	_, table, found := strings.Cut(out, "\nmessages a run ")
	if !found {
		t.Fatalf("nothing says what a run stored:\n%s", out)
	}
	lines := strings.Split(strings.TrimSpace(table), "\n")
	if got, want := strings.Join(strings.Fields(lines[0]), " "), "ceiling refold"; got != want {
		t.Errorf("head of the counts: got %q, want %q", got, want)
	}
	total, sum := 0, 0
	for i, line := range lines[1:] {
		fields := strings.Fields(line)
		var ceiling, refold int
		if _, err := fmt.Sscan(strings.Join(fields[max(len(fields)-2, 0):], " "), &ceiling, &refold); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if ceiling != refold || refold == 0 {
			t.Errorf("the ceiling stored %d, refold %d: %q", ceiling, refold, line)
		}
		if i < len(lines)-2 {
			total += refold
		} else if sum = refold; fields[0] != "together," {
			t.Errorf("the last line is no sum: %q", line)
		}
	}
	if want := 16; total != want || sum != want {
		t.Errorf("%d messages by kind, %d together, want %d", total, sum, want)
	}
}

func TestBenchRefuses(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"runs --in-flight 0", "runs --seconds 0", "runs --runs -1", "runs --rounds 0", "runs --replicas 0", "runs --processes --replicas 3", "runs --durability sometimes",
	} {
		var out, errOut strings.Builder
		got, want := run(t.Context(), append([]string{"bench"}, strings.Fields(args)...), strings.NewReader(""), &out, &errOut), cli.Usage
		if got != want || out.Len() > 0 || errOut.Len() == 0 {
			t.Errorf("%s: status %d, want %d: %s%s", args, got, want, out.String(), errOut.String())
		}
	}
}

// TestBenchProcesses: each program has its own process, and they end with the
// measurement.
func TestBenchProcesses(t *testing.T) {
	t.Setenv(mainEnv, "1")
	row := wantKeys(t, runBench(t, "--processes", "--runs", "20", "--json", "--durability", "always", "--in-flight", "5"), `
		durability in_flight told_runs_s runs_s ratio ratios told_p50_ms p50_ms told_cpu_ms_per_run cpu_ms_per_run
		told_commits_per_run commits_per_run`)
	for _, key := range []string{"told_runs_s", "runs_s", "ratio", "told_commits_per_run", "commits_per_run"} {
		above(t, row, key)
	}
}

// TestBenchTelemetry compares Refold with and without metrics and traces.
func TestBenchTelemetry(t *testing.T) {
	t.Parallel()
	row := wantKeys(t, runBench(t, "--telemetry", "--runs", "20", "--json", "--durability", "interval", "--in-flight", "5"), `
		durability in_flight without_runs_s runs_s ratio ratios without_p50_ms p50_ms without_cpu_ms_per_run cpu_ms_per_run
		without_commits_per_run commits_per_run`)
	above(t, row, "ratio")
}
