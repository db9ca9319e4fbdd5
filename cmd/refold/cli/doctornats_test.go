package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/jwt/v2"

	"github.com/refold/refold/internal/bus/bustest"
)

// runOn runs a command against an account of a provider.
func runOn(t *testing.T, change func(*jwt.AccountClaims, *jwt.UserClaims), args ...string) (status int, out, errOut string) {
	t.Helper()
	n, creds := bustest.Operated(t, change)
	var o, e text
	status = Main(t.Context(), append([]string{"--nats", n.URL(), "--creds", creds}, args...), strings.NewReader(""), &o, &e)
	return status, o.String(), e.String()
}

// TestDoctorNATSSaysWhatToAskFor: a table, a line for each limit that is too small, and
// exit status 1.
func TestDoctorNATSSaysWhatToAskFor(t *testing.T) {
	t.Parallel()
	status, out, errOut := runOn(t, func(a *jwt.AccountClaims, _ *jwt.UserClaims) {
		a.Limits.Streams, a.Limits.Consumer = 5, 8
	}, "doctor", "nats", "--role", "session-actor")
	if status != statusFailed {
		t.Errorf("status %d, want %d: %s", status, statusFailed, errOut)
	}
	like(t, "the table", out, `CHECK +RESULT +HAS +NEEDS *\n(?s:.*)\nmax_streams +breaks +5 +9 *\nmax_consumers +breaks +8 +11 *\n`)
	like(t, "what to ask for", out, `\nbreaks: max_streams: a session-actor can't create all its streams, and does not start: ask for max_streams of at least 9\n`)
	like(t, "standard error", errOut, `^refold: 2 checks break a promise: `)
}

// TestDoctorNATSOfAnAccountThatSuffices ends with 0, also if it tries; --json prints an
// object a line.
func TestDoctorNATSOfAnAccountThatSuffices(t *testing.T) {
	t.Parallel()
	status, out, errOut := runOn(t, func(*jwt.AccountClaims, *jwt.UserClaims) {}, "doctor", "nats", "--try", "--json")
	if status != 0 || errOut != "" {
		t.Errorf("status %d, %s", status, errOut)
	}
	tried := 0
	for line := range strings.Lines(out) {
		var check struct{ Code, Result string }
		if err := json.Unmarshal([]byte(line), &check); err != nil || check.Code == "" || check.Result == "" || check.Result == "breaks" {
			t.Errorf("%q: %v", line, err)
		}
		if check.Code == "try" {
			tried++
		}
	}
	if tried != 9 {
		t.Errorf("%d streams tried, want 9:\n%s", tried, out)
	}
}

// TestDoctorNATSRefusesUnknownRoles with the list of roles.
func TestDoctorNATSRefusesUnknownRoles(t *testing.T) {
	t.Parallel()
	var out, errOut text
	if status := Main(t.Context(), []string{"doctor", "nats", "--role", "actor"}, strings.NewReader(""), &out, &errOut); status != statusUsage {
		t.Errorf("status %d", status)
	}
	like(t, "standard error", errOut.String(), `use one of \[session-actor client `)
}
