//go:build faults

package bridge

// Faults are injected in hosts and bridges one after another, and the simulation
// is to find them.

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/internal/fault"
)

// faultSeeds is how many seeds are tried for one fault, or REFOLD_FAULT_SEEDS.
const faultSeeds = 3000

// elsewhere are the faults that so many seeds did not find. Tests of their own find
// all of them.
var elsewhere = map[fault.Fault]string{
	fault.FirstAskForgotten: "TestClaims", fault.ForgottenBelieved: "TestClaims",
	fault.StaleReadAccepted: "TestAReplicaThatIsBehindIsNotBelieved",
}

// TestFaultsAreFound plants them all, or those that REFOLD_FAULT names.
func TestFaultsAreFound(t *testing.T) {
	seeds := numberIn(t, "REFOLD_FAULT_SEEDS", faultSeeds)
	only := strings.FieldsFunc(os.Getenv("REFOLD_FAULT"), func(r rune) bool { return r == ',' })
	for _, name := range only {
		if !slices.Contains(fault.All(), fault.Fault(name)) {
			t.Errorf("REFOLD_FAULT: there is no fault %q", name)
		}
	}
	for _, f := range fault.All() {
		if len(only) > 0 && !slices.Contains(only, string(f)) {
			continue
		}
		fault.Inject(f)
		failed, _ := playSeeds(t, 0, seeds)
		if failed == nil {
			test, known := elsewhere[f]
			t.Logf("%-22s NOT FOUND in %d seeds (%s)", f, seeds, cmp.Or(test, "and by nothing else"))
			if !known {
				t.Errorf("%s is to be found", f)
			}
			continue
		}
		t.Logf("%-22s found by seed %d: %s", f, failed.seed, failed.broken[0])
	}
	fault.Inject("")
}
