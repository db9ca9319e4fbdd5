package journal

import "math"

// Groups makes j store in groups, or one by one, until its connection is made again.
// After that it takes samples, and no sample proves single messages fast.
func (j *Journal) Groups(groups bool) {
	for _, c := range []*committer{j.logs, j.effects, j.timers, j.notices} {
		c.slowFrom, c.pace = 0, pace{fast: !groups, each: math.MaxInt64 / slowerBy, due: math.MaxInt}
	}
}
