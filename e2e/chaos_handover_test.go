//go:build unix

package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// handoverMost is no measure of speed: it ends what hangs. What handing over
// takes here is printed; `kit bench handover` measures it.
const handoverMost = 30 * time.Second

// TestBenchHandover: `kit bench handover` prints, for each killed
// session-actor, how long its lanes published nothing.
func TestBenchHandover(t *testing.T) {
	t.Parallel()
	out, errOut, status := run(t, 4*time.Minute, nil, "kit", "bench", "handover", "--rounds", "1", "--json")
	if status != 0 {
		t.Fatalf("status %d\n%s%s", status, out, errOut)
	}
	var signals []string
	for line := range strings.Lines(out) {
		var row struct {
			Signal  string  `json:"signal"`
			Lanes   int     `json:"lanes"`
			Silence float64 `json:"silence_ms"`
			Ended   float64 `json:"ended_ms"`
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		signals = append(signals, row.Signal)
		if row.Lanes != ownerLanes/2 || row.Silence <= 0 || row.Silence > float64(handoverMost.Milliseconds()) || (row.Ended > 0) != (row.Signal == "SIGTERM") {
			t.Errorf("a handover of half of the lanes tells %s", line)
		}
		t.Log(strings.TrimSpace(line))
	}
	if got := strings.Join(signals, " "); got != "SIGTERM SIGKILL" {
		t.Errorf("handovers by %s, want SIGTERM and SIGKILL", got)
	}
}
