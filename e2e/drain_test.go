//go:build unix

package e2e_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
)

// TestDrainEndsRunningCalls: a bridge with one slot gets SIGTERM while a call
// runs and another one waits. The running one completes, without a failure; the
// next bridge gets the other one at once.
func TestDrainEndsRunningCalls(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	s := startSystem(t, nil)
	s.models(g.in(opening+`
  - shown: {asked: ^wait, last: user}
    calls: [{tool: shell, arguments: {command: "read line < GATE; echo passed"}}]
  - shown: {asked: ^hurry, last: user}
    calls: [{tool: shell, arguments: {command: "echo hurried"}}]
  - say: "${result}"
`), "scripted")
	work := t.TempDir()
	args := []string{"--nats", s.url, "--tools", "host", "--workdir", work, "--concurrency", "1", "--grace", "5m", "--sandbox", "off", "--model-may-control-every-session"}
	first := startDaemon(t, "bridge", args...)
	for _, sid := range []string{"s1", "s2"} {
		s.run(session.DoorIn, sid, "open", scripted)
		s.wantEnd(sid, 1, session.Completed, "")
	}
	s.run(session.DoorIn, "s1", "wait", scripted)
	g.reached()
	s.run(session.DoorIn, "s2", "hurry", scripted)
	s.view("s2", "a call that is open", func(v session.View) bool { return v.Batch != nil && v.Run != nil && v.Run.Number == 2 })
	if err := first.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	startDaemon(t, "bridge", args...)
	s.wantEnd("s2", 2, session.Completed, "")
	if v := s.view("s1", "a view", func(session.View) bool { return true }); v.Run == nil {
		t.Errorf("the call that ran was ended: %+v", v.Last)
	}
	g.pass()
	s.wantEnd("s1", 2, session.Completed, "")
	ended := make(chan error, 1)
	go func() { ended <- first.cmd.Wait() }()
	select {
	case err := <-ended:
		first.cmd = nil
		if err != nil {
			t.Errorf("the first bridge: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the first bridge does not end, though nothing is left to do")
	}
	for sid, want := range map[string]int{"s1": 2, "s2": 2} {
		if got := len(logOf(t, s.nc, session.DoorTool, sid)); got != want {
			t.Errorf("%s: %d settlements of calls, want %d", sid, got, want)
		}
	}
	verifyAll(t, s.url)
}
