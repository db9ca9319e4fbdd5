package bridge

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/subjects"
)

// What goes wrong for many effects is told once in a while, with how often.
func TestOneTroubleIsOneLine(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	log, q, now := slog.New(slog.NewTextHandler(&lines, nil)), quiet{}, time.Now()
	for i := range 1000 {
		q.warn(log, now.Add(time.Duration(i)*15*time.Millisecond), "claim_not_answered", bus.ErrUnknownOutcome)
		if i == 500 {
			q.warn(log, now, "transcript_not_read", errors.New("no"))
		}
	}
	text := lines.String()
	if got := strings.Count(text, "claim_not_answered"); got != 2 {
		t.Errorf("in 15 s: got %d lines, want 2:\n%s", got, text)
	}
	if got := strings.Count(text, "transcript_not_read"); got != 1 {
		t.Errorf("of another trouble: got %d lines, want 1", got)
	}
	for _, want := range []string{"times=1\n", "times=667\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no line has %q:\n%s", want, text)
		}
	}
}

// A bridge whose claims nobody answers says so twice in 15 s, whatever waits.
func TestClaimsThatNobodyAnswersAreToldOfQuietly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, q := newWorld(), newQueue()
		w.claimLost = func(subjects.ClaimName) error { return bus.ErrUnknownOutcome }
		var lines bytes.Buffer
		b := startBridge(t, w, "me", q, served{class: session.ClassTool, target: "host", executor: executorFunc(nil)})
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
