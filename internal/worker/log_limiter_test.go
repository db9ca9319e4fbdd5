package worker

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/subjects"
)

// A trouble of many effects is logged once in logEvery, with the number of
// occurrences.
func TestTroubleIsLoggedOncePerInterval(t *testing.T) {
	t.Parallel()
	q, now := logLimiter{}, time.Now()
	var told []int
	for i := range 1000 {
		if times, ok := q.allow("claim_not_answered", now.Add(time.Duration(i)*15*time.Millisecond)); ok {
			told = append(told, times)
		}
		if i == 500 {
			if times, ok := q.allow("transcript_not_read", now); !ok || times != 1 {
				t.Errorf("of another trouble: got %d, %t, want it told of once", times, ok)
			}
		}
	}
	if want := []int{1, 667}; !slices.Equal(told, want) {
		t.Errorf("in 15 s: told of %d times, want %d", told, want)
	}
}

// A bridge whose claims get no reply logs that twice in 15 s, however many wait.
func TestUnansweredClaimsAreLoggedTwice(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, q *queue) {
		w.claimLost = func(subjects.ClaimName) error { return journal.ErrUnknownOutcome }
		var lines bytes.Buffer
		b := startBridge(t, w, "me", q, Target{Class: session.ClassTool, Name: "host", Executor: executorFunc(nil)})
		b.log = slog.New(slog.NewTextHandler(&lines, nil))
		for _, name := range []string{"r1t1c0", "r1t1c1", "r1t1c2", "r1t1c3"} {
			q.ask(t, session.ClassTool, "host", "s1", name, toolCall(name, false))
		}
		pass(15 * time.Second)
		b.stop()
		if got := strings.Count(lines.String(), "claim_not_answered"); got != 2 {
			t.Errorf("got %d lines, want 2:\n%s", got, lines.String())
		}
	})
}
