package e2e_test

// Messages of the built-in demo, before and after: who sends it is killed there
// and started again, or both daemons are, or the server, or they are told to end;
// and what is left at the end is what is left without. `refold chaos` finds the
// points by running; one that is not come by when it is tried is counted, and few
// may be. A sample of all kinds is tried here, and everything by night.

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// chaosWithin is no measure of speed: it ends what hangs.
const chaosWithin = 8 * time.Minute

var (
	chaosSummary = regexp.MustCompile(`killed at (\d+) of (\d+) points in \d+ s: (\d+) wrong, (\d+) not come by.*`)
	chaosShare   = regexp.MustCompile(`tried (\d+) trials; of (\d+) strikes there are.*`)
)

// TestKilledAtEachMessage tries so many of the strikes that there are, of each
// kind one first: as many trials as every machine has the time for.
func TestKilledAtEachMessage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		args  []string
		tried int // at least
		of    int // at least: fewer mean that the explorer no longer sees what daemons send
		ways  []string
	}{
		{"the sender", []string{"--points", "36"}, 60, 350, []string{"bridge", "session-actor"}},
		{"both daemons, the server", []string{"--kill", "both,server", "--points", "22"}, 44, 700, []string{"both", "nats-server"}},
		{
			"told to end", []string{"--signal", "term", "--kill", "actor,bridge,both,server", "--points", "14"}, 28, 1000,
			[]string{"bridge by SIGTERM", "session-actor by SIGTERM", "both by SIGTERM", "nats-server by SIGTERM"},
		},
		{"twice", []string{"--kill", "actor,bridge,server", "--points", "4", "--twice", "2"}, 16, 700, []string{"twice"}},
	} {
		args := append([]string{"chaos", "--brief", "--parallel", "20", "--quiet"}, c.args...)
		out, errOut, status := run(t, chaosWithin, nil, "refold", args...)
		found, share := chaosSummary.FindStringSubmatch(out), chaosShare.FindStringSubmatch(out)
		if status != 0 || found == nil || share == nil {
			t.Errorf("%s: status %d\n%s%s", c.name, status, tail(out, 6000), tail(errOut, 2000))
			continue
		}
		if n, err := strconv.Atoi(share[1]); err != nil || n < c.tried {
			t.Errorf("%s: %s trials, want %d at least", c.name, share[1], c.tried)
		}
		if n, err := strconv.Atoi(share[2]); err != nil || n < c.of {
			t.Errorf("%s: there are %s strikes, want %d at least", c.name, share[2], c.of)
		}
		for _, way := range c.ways {
			if !regexp.MustCompile(`(?m)^struck: (.*, )?` + way + ` [1-9]`).MatchString(out) {
				t.Errorf("%s: nothing was done to %s:\n%s", c.name, way, tail(out, 2000))
			}
		}
		t.Logf("%s: %s; %s", c.name, found[0], share[0])
	}
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
