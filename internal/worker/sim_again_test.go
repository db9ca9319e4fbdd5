package worker

import (
	"strings"
	"testing"
)

// simAgain is how many seeds are played twice; REFOLD_SIM_AGAIN says otherwise.
const simAgain = 4

// TestSimulationAgain: a seed has one history, whichever goroutine the processor
// runs first. Under the race detector that is drawn anew for every play.
func TestSimulationAgain(t *testing.T) {
	t.Parallel()
	from, seeds := numberIn(t, "REFOLD_SIM_FROM", 0), numberIn(t, "REFOLD_SIM_AGAIN", simAgain)
	for seed := from; seed < from+seeds; seed++ {
		one, two := inBubble(t, seeded(seed)).lines, inBubble(t, seeded(seed)).lines
		for i := range min(len(one), len(two)) {
			if one[i] != two[i] {
				t.Fatalf("seed %d, line %d is\n%s\nand then\n%s\nafter\n%s", seed, i, one[i], two[i], strings.Join(one[max(0, i-20):i], "\n"))
			}
		}
		if len(one) != len(two) {
			t.Fatalf("seed %d has %d lines, and then %d", seed, len(one), len(two))
		}
	}
}
