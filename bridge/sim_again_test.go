//go:build again

package bridge

// Run by make simulate alone: where the processor is busy with much else, about
// one seed in a hundred still has two histories.

import (
	"strings"
	"testing"
)

// TestSimulationAgain: a seed has one history.
func TestSimulationAgain(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
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
