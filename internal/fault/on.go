//go:build faults

package fault

import (
	"os"
	"sync/atomic"
)

var injected atomic.Value // the Fault of this process

func init() { injected.Store(Fault(os.Getenv("REFOLD_FAULT"))) }

// On reports whether a fault is injected: the one that REFOLD_FAULT names, or the
// last that was injected with Inject.
func On(f Fault) bool { return injected.Load() == f }

// Inject selects the fault of this process in place of the last one; empty: none.
func Inject(f Fault) { injected.Store(f) }
