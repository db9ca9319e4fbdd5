package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// failure is a seed that broke a law.
type failure struct {
	seed   uint64
	drawn  []uint32
	broken []string
}

// shrink draws less as long as a law is broken: fewer steps, and zeros, which do
// the least harm. It plays at most most runs, each by play in its own bubble.
func (f *failure) shrink(most int, play func(*draws) *sim) *sim {
	best := play(&draws{seed: f.seed, given: f.drawn})
	tries := 0
	try := func(given []uint32) bool {
		tries++
		s := play(&draws{seed: f.seed, given: given})
		// Draws past the end were zeros.
		if len(s.broken) == 0 || cost(s.taken) >= cost(best.taken) {
			return false
		}
		best = s
		return true
	}
	for size := len(best.taken); size > 0 && tries < most; {
		smaller := false
		for at := 0; at < len(best.taken) && tries < most; {
			end := min(at+size, len(best.taken))
			cut := slices.Concat(best.taken[:at], best.taken[end:])
			zeros := slices.Clone(best.taken)
			clear(zeros[at:end])
			if try(cut) || try(zeros) {
				smaller = true
				continue
			}
			at += size
		}
		if !smaller || size > 1 {
			size /= 2
		}
	}
	return best
}

// cost is what shrinking reduces: numbers that aren't zero, then numbers.
func cost(drawn []uint32) int {
	n := len(drawn)
	for _, v := range drawn {
		if v != 0 {
			n += 3
		}
	}
	return n
}

// report formats a failure and the run to which it was shrunk.
func (f *failure) report(s *sim) string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %s\n", f.seed, strings.Join(f.broken, "; "))
	fmt.Fprintf(&b, "repeat it with REFOLD_SIM_FROM=%d REFOLD_SIM_SEEDS=1\n", f.seed)
	fmt.Fprintf(&b, "shrunk, from %d drawn numbers to %d, it is: %s\n\n%s\n", len(f.drawn), len(s.taken), strings.Join(s.broken, "; "), strings.Join(s.lines, "\n"))
	for _, sid := range slices.Sorted(maps.Keys(s.judge.sessions)) {
		fmt.Fprintf(&b, "\n%s", s.judge.scenario(sid))
	}
	return b.String()
}
