package settings

import (
	"os"
	"runtime/debug"
)

// collectPercent is how much of what is live may be garbage beside it before it
// is collected. Go's own 100 spends a sixth of a busy daemon's processor time
// on collecting, this half of that (refold bench runs), and memory is bounded by
// --memory and by the effects in flight, not by the collector.
const collectPercent = 200

// Collect sets how often the process collects garbage, unless GOGC says so. Call
// it first in main: tests that run a daemon in their own process keep theirs.
func Collect() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectPercent)
	}
}
