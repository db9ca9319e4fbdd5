//go:build unix

package e2e_test

// A run that is interrupted while a real tool runs.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
)

// TestInterruptByAnotherClient: another client's request interrupts a run. Its
// tool settles, nothing more of it is published, and that client's run is next,
// before a queued one.
func TestInterruptByAnotherClient(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	s := startHost(t, g.in(`
  - shown: {asked: ^wait, last: user}
    calls:
      - {tool: shell, arguments: {command: "read line < GATE && echo passed"}}
      - {tool: shell, arguments: {command: echo never}}
  - shown: {asked: ^urgent, results: [{tool: shell, error: false, text: passed}, {tool: shell, error: true, text: [cancelled, before the call was started]}]}
    say: Yes?
  - shown: {asked: ^later, results: []}
    say: At last.
`))
	heard := listen(t, s.nc, "refold.out.s1")
	s.run(session.DoorIn, "s1", "wait", scripted)
	g.reached()
	s.run(session.DoorIn, "s1", "later", scripted)
	urgent := publish(t, connect(t, s.url), "refold.in.s1", envelope(t, session.TypeRunRequested, object{
		"input": object{"text": "urgent"}, "config": scripted, "when_busy": session.BusyInterrupt,
	}))
	if v := s.at("s1", urgent); v.Lifecycle != session.Interrupting || v.Run.Number != 2 || v.WaitsFor != "tools" || len(v.Queue) != 2 || v.Queue[0].Number != 4 {
		t.Errorf("run %d is %s, waits for %s, before %+v", v.Run.Number, v.Lifecycle, v.WaitsFor, v.Queue)
	}
	if n := heard.count(session.NoticeRunFinished); n > 0 {
		t.Error("the run ended before its tool did")
	}
	g.pass()
	var ends []string
	for n := range 3 {
		f := waitFinished(t, heard, n+1)
		ends = append(ends, fmt.Sprintf("%d %s %s", f.Run, f.Lifecycle, f.Output.Text))
	}
	if got, want := strings.Join(ends, ", "), "2 interrupted , 4 completed Yes?, 3 completed At last."; got != want {
		t.Errorf("the runs ended %q, want %q", got, want)
	}
	s.wantCalls("s1", "open_session", "shell")
	verifyAll(t, s.url)
}
