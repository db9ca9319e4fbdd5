package e2e_test

// A bridge that is frozen (SIGSTOP) and wakes (SIGCONT).

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
)

// TestFrozenBridge: a bridge is frozen while it runs a call that may not run twice, and
// before it starts another one. A second bridge answers for it as for a dead one: the
// first call ends as outcome_unknown, the other one runs there. When the first bridge
// wakes it runs nothing again, its late settlement has no effect, and it goes on.
func TestFrozenBridge(t *testing.T) {
	t.Parallel()
	s, start, began := startMortals(t)
	frozen := start()
	s.run(session.DoorIn, "s1", "note", nil)
	until(t, time.Minute, "the start of the call", func() bool { return began("note") == 1 })
	signal := func(to syscall.Signal) {
		t.Helper()
		if err := frozen.cmd.Process.Signal(to); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	s.run(session.DoorIn, "s2", "note", nil) // the server delivers it to the frozen one
	s.view("s2", "its call", func(v session.View) bool { return v.Batch != nil })
	other := start()
	heard := listen(t, s.nc, "refold.out.s1")
	s.wantEnd("s1", 1, session.Completed, "")
	s.wantEnd("s2", 1, session.Completed, "")
	for sid, want := range map[string]string{"s1": "outcome_unknown", "s2": "succeeded"} {
		if got := outcomes(t, s, sid); !strings.HasPrefix(got, want) {
			t.Errorf("call of %s while its bridge is frozen: got %q, want %q", sid, got, want)
		}
	}
	signal(syscall.SIGCONT)
	until(t, time.Minute, "the late settlement", func() bool { return strings.HasSuffix(outcomes(t, s, "s1"), ", succeeded") })
	until(t, time.Minute, "that it has no effect", func() bool { return heard.count(session.NoticeEventRejected) == 1 })
	other.kill()
	s.run(session.DoorIn, "s1", "note", nil)
	s.wantEnd("s1", 2, session.Completed, "")
	if n := began("note"); n != 3 {
		t.Errorf("the tool began %d times, want once for each of 3 calls", n)
	}
	verifyAll(t, s.url)
}
