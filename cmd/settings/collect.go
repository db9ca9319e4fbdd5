package settings

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// How much garbage may accumulate before a collection, as a percentage of live
// memory. At Go's own 100 a busy daemon spends a sixth of its processor time on
// collecting; at 200 half of that, at 400 a quarter (refold bench runs).
// --memory and the effects in flight bound memory, not the collector. Processes
// that hold little get the highest percentage, those that hold much the lowest.
const (
	collectLeast = 200
	collectMost  = 400
	garbageMost  = 256 << 20 // bytes of garbage above which the percentage drops below collectMost
)

// Collect sets how often the process collects garbage, unless GOGC is set. Call
// it first in main: tests that run a daemon in process keep their own setting.
func Collect() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectMost)
		(&collector{percent: collectMost}).watch()
	}
}

// Collecting describes the setting that Collect made.
func Collecting() string {
	if set := os.Getenv("GOGC"); set != "" {
		return set
	}
	return fmt.Sprintf("%d-%d", collectLeast, collectMost)
}

// collector is unreachable from the start. Its finalizer runs once after every
// garbage collection, and sets the percentage for the next one.
type collector struct {
	percent int
	_       [16]byte // keeps it out of the tiny allocator, where its neighbours would keep it alive
}

func (c *collector) watch() { runtime.SetFinalizer(c, (*collector).again) }

func (c *collector) again() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	if metrics.Read(live); live[0].Value.Kind() == metrics.KindUint64 {
		if percent := percentFor(live[0].Value.Uint64()); percent != c.percent {
			c.percent = percent
			debug.SetGCPercent(percent)
		}
	}
	c.watch()
}

// percentFor returns the percentage for a number of live bytes, in steps of a
// tenth of the maximum: setting one stops the process for a moment.
func percentFor(live uint64) int {
	const step = collectMost / 10
	percent := garbageMost / max(live/100, 1) / step * step
	return int(min(max(percent, collectLeast), collectMost))
}
