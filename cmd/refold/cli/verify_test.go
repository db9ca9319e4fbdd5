package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/journal"
)

func TestVerifySaysWhatDiffers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, sid := range []string{"good", "bad"} {
		w.does(0, "run", sid, "hi", "--no-follow")
		w.waits(sid, 1)
		w.settle(sid, "r1t1", map[string]any{"text": map[string]any{"text": "hello"}})
		bustest.Until(t, sid+" ends", func() bool {
			v, err := w.View(w.ctx, sid)
			return err == nil && v.Lifecycle == session.Completed
		})
	}
	sum := `2 sessions, %d differ  4 events  2 effects compared, 0 not stored any more  \d snapshots compared  [0-9.]+ s, \d+ events/s(, \d+ bytes of memory a session)?\n$`
	w.prints(0, `^verify: identical  `+fmt.Sprintf(sum, 0), "verify", "--all")
	w.prints(0, `^verify: identical  1 sessions, 0 differ  2 events  1 effects compared`, "verify", "good")
	bustest.OK(t, errors.Join(w.bus.Store(w.ctx, []journal.Output{{Session: "bad", Effect: &session.Effect{Name: "r9t1", Class: session.ClassLLM, Target: "p", Payload: []byte{0x80}}}})...))
	line := `^session bad  seq \d+  effect r9t1 is stored, and the fold never asks for it\nverify: DIFFERENT  `
	w.prints(1, line+fmt.Sprintf(sum, 1), "verify", "--all")
	w.prints(1, line+fmt.Sprintf(sum, 1), "verify", "--all", "--jobs", "4")
	w.prints(1, line+`1 sessions, 1 differ  2 events`, "verify", "bad")
	w.prints(0, `^verify: identical  1 sessions`, "verify", "good")
	out, _ := w.does(1, "verify", "--all", "--json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var difference struct{ Session, Text, Expected string }
	var total struct{ Sessions, Differ, Events int }
	if len(lines) != 2 {
		t.Fatalf("got %q, want two lines", out)
	}
	if err := json.Unmarshal([]byte(lines[0]), &difference); err != nil || difference.Session != "bad" || len(difference.Expected) != 64 {
		t.Errorf("got %s (%v)", lines[0], err)
	}
	if err := json.Unmarshal([]byte(lines[1]), &total); err != nil || total.Sessions != 2 || total.Differ != 1 || total.Events != 4 {
		t.Errorf("got %s (%v)", lines[1], err)
	}
	if _, errOut := w.does(1, "verify", "--all", "--quarantine"); !regexp.MustCompile(`^session bad  quarantined from \d+ on\n$`).MatchString(errOut) {
		t.Errorf("got %q, want the session that was stopped", errOut)
	}
	w.prints(1, `(?s)effect r9t1 is stored.*\nsession bad  seq -  the session is quarantined: .*"reason":"refold verify: effect r9t1 is stored`, "verify", "bad")
	if _, found, err := w.bus.GetQuarantine(w.ctx, "good"); err != nil || found {
		t.Errorf("the other session is quarantined: %v (%v)", found, err)
	}
	for _, c := range []struct {
		status int
		want   string
		args   []string
	}{
		{statusUsage, "name one session, or give --all", nil},
		{statusUsage, "name one session, or give --all", []string{"good", "--all"}},
		{statusUsage, "--jobs is at least 1", []string{"--all", "--jobs", "0"}},
		{statusFailed, "the log holds no event of this session", []string{"nobody"}},
	} {
		if _, errOut := w.does(c.status, append([]string{"verify"}, c.args...)...); !strings.Contains(errOut, c.want) {
			t.Errorf("verify %v: got %q, want %q", c.args, errOut, c.want)
		}
	}
}
