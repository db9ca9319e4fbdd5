//go:build unix

package e2e_test

// Runs that people steer, pause and interrupt while a real tool runs. The
// effects are read from REFOLD_FX.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
)

// TestSteerWhileAToolRuns: a steer while a tool runs is shown after the tool's
// result, in the next turn.
func TestSteerWhileAToolRuns(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	s := startHost(t, g.in(`
  - shown: {asked: ^wait, last: user}
    calls: [{tool: shell, arguments: {command: "read line < GATE && echo passed with $line"}}]
  - shown: {last: user, text: also count, results: [{tool: shell, error: false, text: passed with go}]}
    say: "${user}, and ${result}"
`))
	heard := listen(t, s.nc, "refold.out.s1")
	s.run(session.DoorIn, "s1", "wait", scripted)
	g.reached()
	before := s.stored("s1")
	steer := s.say(session.DoorIn, "s1", session.TypeSteerRequested, object{"input": object{"text": "also count"}})
	if v := s.at("s1", steer); !slices.Equal(v.Run.Steers, []uint64{steer}) || v.WaitsFor != "tools" {
		t.Errorf("the session waits for %s, and the run holds the steers %v, want tools and %d", v.WaitsFor, v.Run.Steers, steer)
	}
	s.folded()
	if after := s.stored("s1"); !slices.Equal(after, before) {
		t.Errorf("REFOLD_FX had %q, and after the steer %q", before, after)
	}
	g.pass()
	if got := waitFinished(t, heard, 1); got.Lifecycle != "completed" || !strings.Contains(got.Output.Text, "also count, and ") || !strings.Contains(got.Output.Text, "passed with go") {
		t.Errorf("the run ended %+v", got)
	}
	s.wantShown(fmt.Sprintf("assistant, tool 0, user#%d", steer))
	s.wantCalls("s1", "open_session", "shell")
	verifyAll(t, s.url)
}

// paced is a model that answers when the test says so.
type paced struct {
	asked   chan executor.Request
	answers chan string
	stopped chan string // names of the turns that were stopped; nil: nobody wants to know
}

// Generate gives the test the request, and returns the test's answer.
func (p *paced) Generate(ctx context.Context, asked executor.Request, _ func(string)) (executor.Answer, error) {
	select {
	case p.asked <- asked:
	case <-ctx.Done():
		return executor.Answer{}, ctx.Err()
	}
	select {
	case text := <-p.answers:
		return executor.Answer{Text: text}, nil
	case <-ctx.Done():
		if p.stopped != nil {
			p.stopped <- asked.Effect
		}
		return executor.Answer{}, ctx.Err()
	}
}

// next waits until the model is asked.
func (p *paced) next(t *testing.T) executor.Request {
	t.Helper()
	select {
	case asked := <-p.asked:
		return asked
	case <-time.After(time.Minute):
		t.Fatal("the model is not asked")
	}
	return executor.Request{}
}

// TestSteerDuringTheLastAnswer: the answer that would have ended the run is
// followed by another turn, with that answer and the steer.
func TestSteerDuringTheLastAnswer(t *testing.T) {
	t.Parallel()
	s := startSystem(t, nil)
	p := &paced{asked: make(chan executor.Request), answers: make(chan string)}
	s.serve(func(b *bridge.Bridge) error { return b.Model("scripted", p) })
	heard := listen(t, s.nc, "refold.out.s1")
	s.run(session.DoorIn, "s1", "what is it?", scripted)
	p.next(t)
	steer := s.say(session.DoorIn, "s1", session.TypeSteerRequested, object{"input": object{"text": "in short"}})
	s.at("s1", steer)
	p.answers <- "a long story"
	shown := p.next(t).Messages
	if n := len(shown); n != 3 || shown[1].Text != "a long story" || shown[2].Text != "in short" {
		t.Errorf("the second turn is shown %+v", shown)
	}
	if n := heard.count(session.NoticeRunFinished); n > 0 {
		t.Error("the run ended without the steer")
	}
	p.answers <- "a word"
	if got := waitFinished(t, heard, 1); got.Run != 1 || got.Lifecycle != "completed" || got.Output.Text != "a word" {
		t.Errorf("the run ended %+v", got)
	}
	s.wantShown(fmt.Sprintf("assistant, user#%d", steer))
	if n := len(s.generations("s1")); n != 2 {
		t.Errorf("%d turns were asked, want 2", n)
	}
	verifyAll(t, s.url)
}

// TestPauseOvernight: while a run is paused its tool settles, and nothing is
// published, whichever session-actor folds the session.
func TestPauseOvernight(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	s := startHost(t, g.in(`
  - shown: {asked: ^wait, last: user}
    calls:
      - {tool: shell, arguments: {command: "read line < GATE && echo passed"}}
      - {tool: shell, arguments: {command: echo second}}
  - shown: {last: tool, results: [{tool: shell, error: false, text: passed}, {tool: shell, error: false, text: second}]}
    say: Both.
`))
	s.run(session.DoorIn, "s1", "wait", scripted)
	g.reached()
	s.at("s1", s.say(session.DoorIn, "s1", session.TypeRunPauseRequested, object{"reason": "good night"}))
	before := s.stored("s1")
	g.pass()
	s.view("s1", "a tool that settles", func(v session.View) bool {
		return v.Batch != nil && v.Batch.Calls[0].Status == session.CallSucceeded && v.Lifecycle == session.Paused && v.WaitsFor == "resume"
	})
	s.actor.kill()
	s.actor.start()
	v := s.at("s1", s.say(session.DoorCtl, "s1", session.TypeFactsSet, object{"facts": object{"day": "next"}}))
	if v.Lifecycle != session.Paused || v.WaitsFor != "resume" || v.Batch.Calls[1].Status != session.CallWaiting {
		t.Errorf("after the night the session is %s, waits for %s, and its second call is %s", v.Lifecycle, v.WaitsFor, v.Batch.Calls[1].Status)
	}
	s.folded()
	if after := s.stored("s1"); !slices.Equal(after, before) {
		t.Errorf("REFOLD_FX had %q, and after the night %q", before, after)
	}
	s.say(session.DoorIn, "s1", session.TypeRunResumeRequested, object{})
	s.wantEnd("s1", 2, session.Completed, "")
	s.wantShown("assistant, tool 0, tool 1")
	s.wantCalls("s1", "open_session", "shell", "shell")
	verifyAll(t, s.url)
}

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
  - shown: {asked: ^urgent, results: [{tool: shell, error: false, text: passed}, {tool: shell, error: true, text: [cancelled, before the call was asked]}]}
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
