//go:build faults

package bridge

// Faults are planted in hosts and bridges one after another, and the simulation
// is to find them.

import (
	"testing"

	"github.com/refold/refold/internal/fault"
)

// faultSeeds is how many seeds are tried for one fault, or REFOLD_FAULT_SEEDS.
const faultSeeds = 3000

// unfoundMax is how many faults the simulation may miss.
const unfoundMax = 2

func TestFaultsAreFound(t *testing.T) {
	seeds, unfound := numberIn(t, "REFOLD_FAULT_SEEDS", faultSeeds), 0
	for _, f := range fault.All() {
		fault.Plant(f)
		failed, _ := playSeeds(t, 0, seeds)
		if failed == nil {
			unfound++
			t.Logf("%-22s NOT FOUND in %d seeds", f, seeds)
			continue
		}
		t.Logf("%-22s found by seed %d: %s", f, failed.seed, failed.broken[0])
	}
	fault.Plant("")
	if unfound > unfoundMax {
		t.Errorf("%d of %d faults are not found, want %d at most", unfound, len(fault.All()), unfoundMax)
	}
}
