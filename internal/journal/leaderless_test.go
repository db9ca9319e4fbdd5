package journal

import (
	"testing"
	"time"
)

// A series of unanswered requests counts from its first. After a while without one, a
// new series begins.
func TestUnansweredSeriesBeginsAtItsFirstRequest(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	var u unanswered
	for _, c := range []struct{ at, want time.Duration }{{0, 0}, {leaderless - 1, 0}, {leaderless + 1, 0}, {3 * leaderless, 3 * leaderless}, {4 * leaderless, 3 * leaderless}} {
		if got := u.since(begin.Add(c.at)).Sub(begin); got != c.want {
			t.Errorf("after %v: got the first %v after the beginning, want %v", c.at, got, c.want)
		}
	}
}
