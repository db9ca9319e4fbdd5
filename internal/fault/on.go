//go:build faults

package fault

import (
	"os"
	"sync/atomic"
)

var planted atomic.Value // the Fault of this process

func init() { planted.Store(Fault(os.Getenv("REFOLD_FAULT"))) }

// On reports whether a fault is planted: the one that REFOLD_FAULT names, or the
// last that was planted with Plant.
func On(f Fault) bool { return planted.Load() == f }

// Plant plants a fault in place of the last one; empty: none.
func Plant(f Fault) { planted.Store(f) }
