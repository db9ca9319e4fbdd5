//go:build unix

package e2e_test

// Cancelled runs: a running command is ended, and one that has not started
// never starts.

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
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
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
  - shown: {asked: ^and, last: user, results: [{tool: shell, error: true, text: [cancelled, may have taken effect]}, {tool: shell, error: true, text: [cancelled, before the call was asked]}]}
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

// TestCancelBeforeAnybodyStarts: the run is cancelled while no bridge serves
// its call, which is not retry-safe. A bridge that starts later finds the claim
// withdrawn, and starts nothing.
func TestCancelBeforeAnybodyStarts(t *testing.T) {
	t.Parallel()
	ran := filepath.Join(t.TempDir(), "ran")
	s := startSystem(t, nil)
	s.models(opening+strings.ReplaceAll(`
  - shown: {asked: ^write, last: user}
    calls: [{tool: shell, arguments: {command: "echo first >> RAN"}}]
  - shown: {asked: ^again, last: user, results: [{tool: shell, error: true, text: [cancelled, may have taken effect]}]}
    calls: [{tool: shell, arguments: {command: "echo second >> RAN"}}]
  - shown: {results: [{tool: shell, error: false}]}
    say: Written.
`, "RAN", ran), "scripted")
	work := t.TempDir()
	first := s.host(work)
	s.run(session.DoorIn, "s1", "open", scripted)
	s.wantEnd("s1", 1, session.Completed, "")
	host := "tool-" + s.ended("s1", 1).HostSession.Route // where the session's calls go from now on
	s.idle(s.names.EffectsStream(), "tool-host", host)
	if err := first.drain(30 * time.Second); err != nil {
		t.Fatal(err)
	}
	s.run(session.DoorIn, "s1", "write", scripted)
	until(t, time.Minute, "a call that is asked", func() bool { return len(s.asked(session.ClassTool, "s1")) == 2 })
	s.say(session.DoorIn, "s1", session.TypeRunCancelRequested, object{})
	s.wantEnd("s1", 2, session.Cancelled, "cancelled")
	s.folded()
	if c := s.claimOf("s1", "r2t1c0"); !c.Withdrawn || c.By != "" {
		t.Errorf("the claim of the call is %+v, want it withdrawn", c)
	}
	settled := len(logOf(t, s.nc, session.DoorTool, "s1"))
	s.host(work)
	s.idle(s.names.EffectsStream(), host) // it has looked at the withdrawn one
	if l := lines(t, ran); len(l) > 0 {
		t.Errorf("a withdrawn call ran: %s", l)
	}
	if n := len(logOf(t, s.nc, session.DoorTool, "s1")); n != settled {
		t.Errorf("%d settlements came of a withdrawn call", n-settled)
	}
	s.run(session.DoorIn, "s1", "again", scripted)
	s.wantEnd("s1", 3, session.Completed, "")
	if l := lines(t, ran); len(l) != 1 || string(l[0]) != "second" {
		t.Errorf("ran: %s, want the second alone", l)
	}
	verifyAll(t, s.url)
}

// TestCancelWhileTheModelThinks: a running model turn is stopped, and the
// session is free at once.
func TestCancelWhileTheModelThinks(t *testing.T) {
	t.Parallel()
	s := startSystem(t, nil)
	p := &paced{asked: make(chan executor.Request), answers: make(chan string), stopped: make(chan string, 4)}
	s.serve(func(b *bridge.Bridge) error { return b.Model("scripted", p) })
	heard := listen(t, s.nc, "refold.out.s1")
	s.run(session.DoorIn, "s1", "think", scripted)
	p.next(t)
	s.say(session.DoorIn, "s1", session.TypeRunCancelRequested, object{"run": 1})
	s.wantEnd("s1", 1, session.Cancelled, "cancelled")
	select {
	case effect := <-p.stopped:
		if effect != "r1t1" {
			t.Errorf("stopped: %s", effect)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the model thinks on")
	}
	// What comes of it at last is no answer to anything.
	s.wantRejections(heard, "GenerationSettled effect_settled")
	next := s.run(session.DoorIn, "s1", "answer", scripted)
	if shown := p.next(t).Messages; len(shown) != 2 || shown[0].Text != "think" || shown[1].Text != "answer" {
		t.Errorf("the next run is shown %+v", shown)
	}
	p.answers <- "here"
	s.wantEnd("s1", 2, session.Completed, "")
	if shown := s.lastShown("s1", 1); shown != fmt.Sprintf("user#%d", next) {
		t.Errorf("the last turn was shown … %s", shown)
	}
	verifyAll(t, s.url)
}
