//go:build unix

package e2e_test

// A cancelled run: its command is ended.

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/actors/session"
)

// processes waits for a file of process ids.
func processes(t *testing.T, path string) (ids []int) {
	t.Helper()
	var text []byte
	until(t, time.Minute, "the command's processes", func() bool {
		var err error
		text, err = os.ReadFile(path)
		return err == nil
	})
	for _, field := range strings.Fields(string(text)) {
		var id int
		if _, err := fmt.Sscan(field, &id); err != nil || id < 2 {
			t.Fatalf("%s holds %q", path, text)
		}
		ids = append(ids, id)
	}
	return ids
}

// isGone reports whether a process has ended, be it waited for or not.
func isGone(id int) bool {
	if syscall.Kill(id, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// TestCancelEndsTheCommand: the run is cancelled while a host bridge runs a
// shell and the `sleep 60` that it waits for.
func TestCancelEndsTheCommand(t *testing.T) {
	t.Parallel()
	for name, nobodyFolds := range map[string]bool{"at once": false, "session-actor killed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cancelCommand(t, nobodyFolds)
		})
	}
}

// cancelCommand cancels the run, perhaps while the session-actor is dead.
func cancelCommand(t *testing.T, nobodyFolds bool) {
	ids := filepath.Join(t.TempDir(), "ids")
	s := startHost(t, strings.ReplaceAll(`
  - shown: {asked: ^sleep, last: user}
    calls:
      - {tool: shell, arguments: {command: "sleep 60 & echo $$ $! > IDS.new; mv IDS.new IDS; wait; echo over >> IDS.over"}}
      - {tool: shell, arguments: {command: "echo second >> IDS.over"}}
  - shown: {asked: ^and, last: user, results: [{tool: shell, error: true, text: [cancelled, may have taken effect]}, {tool: shell, error: true, text: [cancelled, before the call was started]}]}
    say: I see.
`, "IDS", ids))
	heard := listen(t, s.nc, "refold.out.s1")
	withdrawn := make(chan string, 8)
	sub, err := s.nc.Subscribe("refold.cancel.s1", func(m *nats.Msg) { withdrawn <- string(m.Data) })
	if err == nil {
		err = s.nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Unsubscribe()
	s.run(session.DoorIn, "s1", "sleep", scripted)
	run := processes(t, ids)
	if isGone(run[0]) || isGone(run[1]) {
		t.Fatalf("the processes %v have ended by themselves", run)
	}
	if nobodyFolds {
		s.actor.kill()
	}
	asked := time.Now()
	s.say(session.DoorIn, "s1", session.TypeRunCancelRequested, object{"reason": "enough"})
	if nobodyFolds {
		s.actor.start()
	}
	if got := waitFinished(t, heard, 1); got.Run != 2 || got.Lifecycle != "cancelled" || got.Code != "cancelled" {
		t.Errorf("the run ended %+v", got)
	}
	told := time.Since(asked)
	until(t, time.Minute, "the end of the command's processes", func() bool { return isGone(run[0]) && isGone(run[1]) })
	t.Logf("the run was cancelled after %v, its processes were gone after %v", told.Round(time.Millisecond), time.Since(asked).Round(time.Millisecond))
	select {
	case got := <-withdrawn:
		if !strings.Contains(got, `"r2t1c0"`) || strings.Contains(got, `"r2t1c1"`) {
			t.Errorf("withdrawn: %s, want the call that was asked", got)
		}
	case <-time.After(30 * time.Second):
		t.Error("nobody was told of the withdrawal")
	}
	// The bridge's claim was there first, and stands.
	if c := s.claimOf("s1", "r2t1c0"); c.By == "" || c.Withdrawn {
		t.Errorf("the claim of the call is %+v, want its bridge's", c)
	}
	// What the bridge says of it at last changes nothing.
	s.wantRejections(heard, "ToolCallSettled effect_settled")
	next := s.run(session.DoorIn, "s1", "and now?", scripted)
	s.wantEnd("s1", 3, session.Completed, "")
	s.wantShown(fmt.Sprintf("assistant, tool 0 cancelled, tool 1 cancelled, user#%d", next))
	s.wantCalls("s1", "open_session", "shell")
	if l := lines(t, ids+".over"); len(l) > 0 {
		t.Errorf("the commands went on: %s", l)
	}
	verifyAll(t, s.url)
}
