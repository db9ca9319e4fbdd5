package worker

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/presence"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The relations of the limits, each with its reason.
func TestLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why  string
		hold bool
	}{
		{"an inline text is one that the session takes", inlineBytesMax <= session.TextBytesMax},
		{"a text, its fault and provider items fit an event", 2*inlineBytesMax+64<<10 < session.EventBytesMax},
		{"a delta fits a message that holds its JSON, six bytes a character at worst", 6*deltaBytesMax+1024 < 1<<20},
		{"a gap is seen before anybody counts as gone", aliveGapMax < holderGone},
		{"a late heartbeat is no gap", aliveGapMax >= 3*aliveEvery},
		{"heartbeats are those of the bus", aliveEvery == presence.HeartbeatEvery && holderGone == presence.GoneAfter},
		{"what was settled is remembered for longer than clocks differ", settledKept >= 5*time.Minute},
		{"takeovers within a deadline are fewer than claims", session.DeadlineMaxMS/holderGone.Milliseconds() < journal.ClaimsMax},
	} {
		if !c.hold {
			t.Errorf("does not hold: %s", c.why)
		}
	}
}
