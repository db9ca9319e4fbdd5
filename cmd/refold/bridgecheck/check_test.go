package bridgecheck

// A small bridge makes one mistake at a time, and the check of that rule must
// fail. Without a mistake all checks must pass. e2e runs them against the
// bridge in Go.

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/natsio"
)

// checkForeign runs the named checks, all without names, against a foreign
// bridge.
func checkForeign(t *testing.T, does mistake, only ...string) map[string]Result {
	t.Helper()
	return checkForeignBy(t, natsio.NewLocalClock(), does, only...)
}

// checkForeignBy does so on a machine with this clock.
func checkForeignBy(t *testing.T, local natsio.LocalClock, does mistake, only ...string) map[string]Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	b := testbus.Provisioned(t, bustest.Server(t))
	f := startForeign(t, b.URL(), does)
	o := Options{
		Target: foreignTarget, Tool: "echo.wait", Arguments: `{}`, Slow: `{"ms":1600}`, Large: `{"bytes":300000}`, Instance: "I1",
		Stop: f.stop, Own: true, Within: 4 * time.Second, Quiet: 500 * time.Millisecond,
	}
	some := slices.DeleteFunc(slices.Clone(checks), func(one check) bool { return len(only) > 0 && !slices.Contains(only, one.name) })
	got := map[string]Result{}
	err := run(ctx, b, local, o, some, func(r Result) { got[r.Check] = r })
	if err != nil && got["consumer"].Verdict != Failed {
		t.Fatal(err)
	}
	if want := max(len(only), 1); err == nil && len(got) < want {
		t.Fatalf("%d checks ran of %v", len(got), only)
	}
	return got
}

func TestBridgeWithoutMistakePasses(t *testing.T) {
	t.Parallel()
	got := checkForeign(t, "")
	if len(got) != len(checks) {
		t.Errorf("%d checks ran of %d", len(got), len(checks))
	}
	for _, r := range got {
		if r.Verdict != OK {
			t.Errorf("%s: %s: %s", r.Check, r.Verdict, r.Seen)
		}
	}
}

// Bridges go by the server's clock, and so does the check: it finds no mistake of theirs
// on a machine whose own clock is wrong.
func TestCheckGoesByTheServersClock(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"ahead": 11 * time.Minute, "behind": -11 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			right := natsio.NewLocalClock()
			got := checkForeignBy(t, func() (time.Time, time.Duration) {
				shown, running := right()
				return shown.Add(ahead), running
			}, "", "call", "late")
			for _, r := range got {
				if r.Verdict != OK {
					t.Errorf("%s: %s: %s", r.Check, r.Verdict, r.Seen)
				}
			}
		})
	}
}

func TestCheckFindsMistakes(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, c := range []struct {
		does  mistake
		check string
		needs string // checks that run before it
		seen  string // part of what is said
	}{
		{"no heartbeat", "heartbeat", "", "no heartbeat"},
		{"slow heartbeat", "heartbeat", "", "heartbeats"},
		{"no rules", "heartbeat", "", "has no rules"},
		{"no pull", "consumer", "", "nobody pulls"},
		{"max_deliver", "consumer", "", "max_deliver is 5"},
		{"no claim", "call", "", "without a claim"},
		{"other name", "call", "", "which sent no heartbeat"},
		{"other hash", "call", "", "has the hash"},
		{"acknowledged first", "call", "", "before it was settled"},
		{"core publish", "call", "", "without a reply subject"},
		{"other plan", "call", "", "plan_hash"},
		{"field too many", "call", "", "can't read the settlement"},
		{"bad status", "call", "", `status "done"`},
		{"never settled", "call", "", "no settlement arrived"},
		{"never acknowledged", "retry-safe call", "", "not acknowledged"},
		{"run again", "redelivered when settled", "call", "settled twice"},
		{"late run", "late", "", "settled succeeded"},
		{"late not withdrawn", "late", "", "its claim is"},
		{"withdrawn run", "withdrawn", "", "it was settled"},
		{"withdrawn settled", "withdrawn", "", "it was settled"},
		{"lost run", "claim lost", "", "it was settled"},
		{"lost acknowledged", "claim lost", "", "it was acknowledged"},
		{"gone run", "holder gone", "", "settled succeeded"},
		{"unknown field passed over", "unknown field", "", "it was settled"},
		{"unknown acknowledged", "unknown field", "", "it was acknowledged"},
		{"given back at once", "unknown field", "", "without a delay"},
		{"version passed over", "newer version", "", "it was settled"},
		{"dies of it", "unreadable effect", "", "the call after it"},
		{"unreadable settled", "unreadable effect", "", "it was settled"},
		{"subject passed over", "unreadable effect", "", "it was settled"},
		{"large inline", "large result", "", "belong in a blob"},
		{"blob missing", "large result", "", "the blob"},
		{"no lease", "lease", "consumer", "no +WPI"},
		{"run twice at once", "redelivered while it runs", "consumer lease", "settled"},
		{"cancel ignored", "cancel", "consumer lease", "no settlement arrived"},
		{"cancel fails", "cancel", "consumer lease", "settled failed"},
		{"run_ms ignored", "run time", "consumer lease", "no settlement arrived"},
		{"stop drops", "stop", "consumer lease", "not settled"},
		{"stop ignored", "stop", "", "did not end"},
	} {
		found[c.check] = true
		t.Run(string(c.does), func(t *testing.T) {
			t.Parallel()
			got := checkForeign(t, c.does, append(strings.Fields(c.needs), c.check)...)[c.check]
			if got.Verdict != Failed || !strings.Contains(got.Seen, c.seen) || got.Rule == "" {
				t.Errorf("%s: %s: %q; want FAILED, and %q", c.check, got.Verdict, got.Seen, c.seen)
			}
		})
	}
	for _, one := range checks {
		if !found[one.name] {
			t.Errorf("no mistake of the check %q", one.name)
		}
	}
}
