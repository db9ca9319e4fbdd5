package e2e_test

// `refold chaos` at the messages of the built-in demo, before and after each:
// the sender is killed there and started again, and the end must be the one
// without a kill. Of the other kills (both daemons, the server, two kills,
// SIGTERM) the tests try a sample, and nightly targets all. A point that two
// trials miss is reported, and few may be.

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
	chaosSummary = regexp.MustCompile(`killed at (\d+) of (\d+) points in \d+ s: (\d+) wrong, (\d+) missed.*`)
	chaosShare   = regexp.MustCompile(`tried (\d+) trials; of (\d+) kills there are.*`)
)

// chaosRun is a `refold chaos`, and what it has to have done.
type chaosRun struct {
	name  string
	args  []string
	tried int // points, at least
	of    int // at least: fewer mean that the explorer no longer sees what daemons send
	ways  []string
}

// TestKilledAtEachMessage kills the sender before and after a twelfth of the
// messages of the demo and of its cancelled conversation, each in its own
// trial. make nightly-demo tries all of them, which takes five minutes.
// TestKilledOtherwise tries a sample of the conversation that adopts a
// workspace.
func TestKilledAtEachMessage(t *testing.T) {
	t.Parallel()
	args := []string{"--conversation", "demo", "--conversation", "cancelled", "--missed-max", "0", "--part", "1/12"}
	killed, tried, of := kills(t, chaosRun{"the sender", args, 25, 350, []string{"bridge", "session-actor"}})
	if killed != tried {
		t.Errorf("killed at %d of %d points that were tried, of %d, want all", killed, tried, of)
	}
}

// TestKilledDensely tries an eighteenth of the demo's trials with many points
// each: they are reached, and the end is right.
func TestKilledDensely(t *testing.T) {
	t.Parallel()
	kills(t, chaosRun{"many in a trial", []string{"--dense", "--conversation", "demo", "--part", "1/18"}, 10, 200, []string{"bridge", "session-actor"}})
}

// TestKilledOtherwise tries a number of the other kills, one of each kind
// first. On a busy machine a second kill often comes too late for its message,
// so more of those points may be missed.
func TestKilledOtherwise(t *testing.T) {
	t.Parallel()
	for _, c := range []chaosRun{
		{"both daemons, the server", []string{"--kill", "both,server", "--points", "3"}, 6, 700, []string{"both", "nats-server"}},
		{
			"told to end", []string{"--signal", "term", "--kill", "actor,both,server", "--points", "4"}, 4, 800,
			[]string{"session-actor by SIGTERM", "both by SIGTERM", "nats-server by SIGTERM"},
		},
		// A bridge sends few of the kinds of messages, and a sample of all may have none.
		{"a bridge told to end", []string{"--signal", "term", "--kill", "bridge", "--points", "2"}, 2, 100, []string{"bridge by SIGTERM"}},
		{"a workspace, a pack", []string{"--conversation", "workspace", "--conversation", "pack", "--points", "4"}, 4, 200, []string{"bridge", "session-actor"}},
		{"a reply, a sleep, a schedule", []string{"--conversation", "wait", "--conversation", "schedule", "--points", "3"}, 6, 350, []string{"bridge", "session-actor"}},
		// The names of children differ between trials, and with them the lanes whose
		// acknowledgements are points.
		{"a tree of children", []string{"--conversation", "tree", "--points", "6", "--missed-max", "60"}, 6, 300, []string{"bridge", "session-actor"}},
		{"a long conversation", []string{"--conversation", "long", "--kill", "actor", "--points", "2"}, 2, 150, []string{"session-actor"}},
		{"a bridge in a long conversation", []string{"--conversation", "long", "--kill", "bridge", "--points", "2"}, 2, 30, []string{"bridge"}},
		{"twice", []string{"--kill", "actor,bridge,server", "--points", "2", "--twice", "1", "--missed-max", "25"}, 6, 700, []string{"twice"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			kills(t, c)
		})
	}
}

// kills runs it, and returns how many points it killed at, how many it tried,
// and how many there are.
func kills(t *testing.T, c chaosRun) (killed, tried, of int) {
	t.Helper()
	args := append([]string{"chaos", "--parallel", "6", "--quiet"}, c.args...)
	out, errOut, status := run(t, chaosWithin, nil, "kit", args...)
	found, share := chaosSummary.FindStringSubmatch(out), chaosShare.FindStringSubmatch(out)
	if status != 0 || found == nil || share == nil {
		t.Errorf("%s: status %d\n%s%s", c.name, status, tail(out, 6000), tail(errOut, 2000))
		return 0, 0, 0
	}
	tried, err := strconv.Atoi(found[2])
	if err != nil || tried < c.tried {
		t.Errorf("%s: tried %s points, want %d at least", c.name, found[2], c.tried)
	}
	if killed, err = strconv.Atoi(found[1]); err != nil {
		t.Errorf("%s: killed at %s points: %v", c.name, found[1], err)
	}
	if of, err = strconv.Atoi(share[2]); err != nil || of < c.of {
		t.Errorf("%s: there are %s kills, want %d at least", c.name, share[2], c.of)
	}
	for _, way := range c.ways {
		if !regexp.MustCompile(`(?m)^killed: (.*, )?` + way + ` [1-9]`).MatchString(out) {
			t.Errorf("%s: nothing was done to %s:\n%s", c.name, way, tail(out, 2000))
		}
	}
	t.Logf("%s: %s; %s", c.name, found[0], share[0])
	return killed, tried, of
}

// TestChaosPoints: all kinds of messages that daemons send are among the
// points, on both sides.
func TestChaosPoints(t *testing.T) {
	t.Parallel()
	out, errOut, status := run(t, time.Minute, nil, "refold", "chaos", "--list")
	if status != 0 {
		t.Fatalf("status %d\n%s%s", status, out, errOut)
	}
	points := strings.Fields(out)
	for _, want := range []string{
		"session-actor/%s/install/1", "session-actor/%s/ask.r1t1/1", "session-actor/%s/ask.r1t2c1/1", "session-actor/%s/schedule.w1/1", "session-actor/%s/withdraw.r1t1/1", "session-actor/%s/cancel/1",
		"session-actor/%s/notice.RunFinished/1", "session-actor/%s/snapshot/1", "session-actor/%s/blob.1/1",
		"bridge/%s/claim.r1t1/1", "bridge/%s/claim.r1t4c0/1", "bridge/%s/settle.r1t4c0/1", "bridge/%s/ack.tool-host/1",
		"session-actor/%s/ask.y1/1", "session-actor/%s/notice.WorkspaceStaged/1", "session-actor/%s/notice.WorkspaceApplied/1",
		"bridge/%s/settle.y1/1", "bridge/%s/ack.space-folder/1", "bridge/%s/claim.r2t1k1/1", "bridge/%s/settle.r1t2c0/1",
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

// TestChaosStopped: chaos prints its results when it is stopped, and where to
// continue.
func TestChaosStopped(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, "kit", "chaos", "--conversation", "demo", "--parallel", "2", "--skip", "7")
	until(t, time.Minute, "a trial is over", func() bool { return strings.Contains(d.out.String(), "\nok ") })
	err := d.drain(time.Minute)
	out := d.out.String()
	if err == nil {
		t.Errorf("stopped, it ends with status 0:\n%s", out)
	}
	if !chaosSummary.MatchString(out) || !regexp.MustCompile(`; stopped: continue with --skip ([7-9]|\d\d)\n`).MatchString(out) {
		t.Errorf("it does not say how far it came:\n%s", out)
	}
}
