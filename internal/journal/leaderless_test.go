package journal

import (
	"testing"
	"time"
)

// Requests without an answer that follow one another count from the first of
// them. After a while in which all were answered they begin anew.
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
