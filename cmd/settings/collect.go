package settings

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// How much garbage there may be, as a share of live memory, before it is
// collected. Go's own 100 percent spends a sixth of a busy daemon's processor
// time on collecting, 200 half of that, 400 a quarter (refold bench runs).
// Memory is bounded by --memory and by the effects in flight, not by the
// collector: so the most is for processes that hold little, the least for those
// that hold much.
const (
	collectLeast = 200
	collectMost  = 400
	garbageMost  = 256 << 20 // bytes of garbage for which less than collectMost is taken
)

// Collect sets how often the process collects garbage, unless GOGC says so. Call
// it first in main: tests that run a daemon in their own process keep theirs.
func Collect() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectMost)
		(&collector{percent: collectMost}).watch()
	}
}

// Collecting says what Collect set.
func Collecting() string {
	if set := os.Getenv("GOGC"); set != "" {
		return set
	}
	return fmt.Sprintf("%d-%d", collectLeast, collectMost)
}

// collector is itself garbage from the beginning: each collection of it is one
// of all the process has, after which there is another percentage.
type collector struct {
	percent int
	_       [16]byte // what is smaller shares its memory with others, and stays with them
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

// percentFor returns the percentage for so many live bytes, in steps of a tenth
// of the most: each that is set stops the process for a moment.
func percentFor(live uint64) int {
	const step = collectMost / 10
	percent := garbageMost / max(live/100, 1) / step * step
	return int(min(max(percent, collectLeast), collectMost))
}
