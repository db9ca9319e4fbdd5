package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// A small row in JSON: both sides stored the same, and a ratio came of it.
func TestBench(t *testing.T) {
	t.Parallel()
	var out, errOut strings.Builder
	status := Main(t.Context(), []string{"bench", "--runs", "20", "--json", "--durability", "interval", "--in-flight", "5", "--dir", t.TempDir()}, strings.NewReader(""), &out, &errOut)
	if status != 0 {
		t.Fatalf("status %d: %s", status, errOut.String())
	}
	var row benchRow
	if err := json.Unmarshal([]byte(out.String()), &row); err != nil {
		t.Fatalf("%q: %v", out.String(), err)
	}
	if row.Durability != "interval" || row.InFlight != 5 || row.Ratio <= 0 || row.P50 <= 0 || row.P99 < row.P50 {
		t.Errorf("got %+v", row)
	}
	total := 0
	for kind, n := range row.Messages {
		if row.CeilingStored[kind] != n {
			t.Errorf("%s: %d by the ceiling, %d by refold", kind, row.CeilingStored[kind], n)
		}
		total += n
	}
	if want := 17; total != want {
		t.Errorf("a run stored %d messages, want %d", total, want)
	}
}

func TestBenchRefuses(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"runs --in-flight 0", "runs --seconds 0", "runs --runs -1", "runs --rounds 0", "runs --replicas 0", "runs --durability sometimes",
		"growth --growth-max 50", "growth --growth-min 0", "growth --recent=-1",
	} {
		var out, errOut strings.Builder
		got, want := Main(t.Context(), append([]string{"bench"}, strings.Fields(args)...), strings.NewReader(""), &out, &errOut), statusUsage
		if got != want || out.Len() > 0 || errOut.Len() == 0 {
			t.Errorf("%s: status %d, want %d: %s%s", args, got, want, out.String(), errOut.String())
		}
	}
}
