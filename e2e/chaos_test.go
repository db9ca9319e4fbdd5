package e2e_test

// Every message of the built-in demo, before and after: the process that sends
// it is killed there and started again, and what is left at the end is what is
// left without a kill. `refold chaos` finds the points by running; a point that
// is not come by when it is tried is counted, and few may be.

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// chaosWithin is no measure of speed: it ends what hangs.
	chaosWithin = 8 * time.Minute
	// chaosPointsLeast is how many points of its session the demo has at least:
	// fewer mean that the explorer no longer sees what daemons send.
	chaosPointsLeast = 100
)

var chaosSummary = regexp.MustCompile(`killed at (\d+) of (\d+) points in \d+ s: (\d+) wrong, (\d+) not come by`)

func TestKilledAtEachMessage(t *testing.T) {
	t.Parallel()
	out, errOut, status := run(t, chaosWithin, nil, "refold", "chaos", "--brief", "--parallel", "20", "--quiet")
	found := chaosSummary.FindStringSubmatch(out)
	if status != 0 || found == nil {
		t.Fatalf("status %d\n%s%s", status, tail(out, 6000), tail(errOut, 2000))
	}
	if n, err := strconv.Atoi(found[2]); err != nil || n < chaosPointsLeast {
		t.Errorf("%s points of the demo were tried, want %d at least", found[2], chaosPointsLeast)
	}
	t.Log(found[0])
}

// The points are found by running: all kinds of messages that daemons send are
// among them, on both sides.
func TestChaosPoints(t *testing.T) {
	t.Parallel()
	out, errOut, status := run(t, time.Minute, nil, "refold", "chaos", "--list")
	if status != 0 {
		t.Fatalf("status %d\n%s%s", status, out, errOut)
	}
	points := strings.Fields(out)
	for _, want := range []string{
		"session-actor/%s/install/1", "session-actor/%s/ask.r1t1/1", "session-actor/%s/ask.r1t2c1/1", "session-actor/%s/ask.w1/1", "session-actor/%s/withdraw.r1t1/1", "session-actor/%s/cancel/1",
		"session-actor/%s/notice.RunFinished/1", "session-actor/%s/snapshot/1", "session-actor/%s/blob/1",
		"bridge/%s/claim.r1t1/1", "bridge/%s/claim.r1t4c0/1", "bridge/%s/settle.r1t4c0/1", "bridge/%s/ack.tool-host/1", "bridge/%s/schedule.w1/1",
	} {
		for _, side := range []string{"before", "after"} {
			if name := strings.Replace(want, "%s", side, 1); !slices.Contains(points, name) {
				t.Errorf("%s is not among the %d points", name, len(points))
			}
		}
	}
	_, errOut, status = run(t, time.Minute, nil, "refold", "chaos", "--point", "bridge/beside/claim/1")
	if status != 2 || !strings.Contains(errOut, "beside") {
		t.Errorf("a point that is none: status %d, %q", status, errOut)
	}
}
