package e2e_test

// A run that is paused overnight. Deadlines count by the session's own clock. A
// server's clock can't be moved, but a settled wake moves the session's clock
// to the wake's due time. Here the test settles wakes hours early; the streams,
// the session-actor and the model's bridge are real, and are killed during the
// night.

import (
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// nightRecord has runs that may take an hour, and calls that wait for a person
// for a night.
func nightRecord() object {
	return object{
		"v": 1, "rules": 1,
		"tools": list{
			tool("look", object{"parallel_safe": false, "retry_safe": false}), tool("note", object{"parallel_safe": false, "retry_safe": false}),
			tool("pay", object{"parallel_safe": false, "retry_safe": false, "approval": "always"}),
		},
		"config": object{
			"provider": "scripted", "model": "m",
			"deadlines_ms": object{"run": time.Hour.Milliseconds(), "approval": (8 * time.Hour).Milliseconds()},
		},
	}
}

// nightScript calls three tools, each of which has its group.
const nightScript = `
turns:
  - calls: [{tool: look}, {tool: note}, {tool: pay}]
  - shown: {results: [{tool: look, error: false, text: done}, {tool: note, error: false, text: done}, {tool: pay, error: true, text: approval_expired}]}
    say: Good morning.
`

// passes settles the wakes of a session, the earliest first, until its clock has
// come to a time, or no wake is left.
func (s *system) passes(sid string, to int64) session.View {
	s.t.Helper()
	v := s.view(sid, "the session", func(session.View) bool { return true })
	for v.Clock < to {
		var wake *session.ViewEffect
		for i, e := range v.Open {
			if e.Class == session.ClassWake && (wake == nil || e.Deadline < wake.Deadline) {
				wake = &v.Open[i]
			}
		}
		if wake == nil {
			return v
		}
		v = s.at(sid, s.say(session.DoorWake, sid, session.TypeWakeSettled, object{"effect": wake.Effect}))
	}
	return v
}

// TestPauseWhileTheClockMoves: a run with an hour's deadline is paused for
// eight. A running tool settles. A requested approval expires, since people can
// decide during a pause. The run's own deadline, and that of the unpublished
// call, stand still. In the morning the run continues on other processes, and
// completes. Without a pause the same hours end it.
func TestPauseWhileTheClockMoves(t *testing.T) {
	t.Parallel()
	s := startSystem(t, nightRecord())
	models := s.models(nightScript, "scripted")
	l := &lab{hold: map[string]chan struct{}{"look": make(chan struct{})}}
	s.tools(l)
	for _, sid := range []string{"paused", "awake"} {
		s.run(session.DoorIn, sid, "go", nil)
	}
	until(t, time.Minute, "two calls in progress", func() bool { return len(l.did()) == 2 })
	v := s.at("paused", s.say(session.DoorIn, "paused", session.TypeRunPauseRequested, object{"reason": "good night"}))
	evening, morning := v.Clock, v.Batch.Calls[2].Deadline // of the approval
	close(l.hold["look"])
	s.view("paused", "a tool that settles", func(v session.View) bool {
		return v.Batch != nil && v.Batch.Calls[0].Status == session.CallSucceeded && v.Lifecycle == session.Paused
	})
	s.actor.kill()
	s.actor.start()
	v = s.passes("paused", morning)
	models.kill()
	models.start()
	if v.Clock < morning || v.Lifecycle != session.Paused || v.Batch == nil ||
		v.Batch.Calls[1].Status != session.CallWaiting || v.Batch.Calls[2].Code != session.CodeApprovalExpired {
		t.Fatalf("after %v the session is %s, and its batch %+v", time.Duration(v.Clock-evening)*time.Millisecond, v.Lifecycle, v.Batch)
	}
	s.folded()
	s.wantCalls("paused", "look")
	s.say(session.DoorIn, "paused", session.TypeRunResumeRequested, object{})
	s.wantEnd("paused", 1, session.Completed, "")
	s.wantCalls("paused", "look", "note")
	for _, a := range s.asked(session.ClassTool, "paused")[1:] {
		var c session.ToolCall
		if err := codec.Unmarshal(a.payload, &c); err != nil || c.At < morning || c.StartBy <= c.At {
			t.Errorf("%s was asked %v after the evening, to start %v after that (%v)", a.name.Effect,
				time.Duration(c.At-evening)*time.Millisecond, time.Duration(c.StartBy-c.At)*time.Millisecond, err)
		}
	}
	if v := s.passes("awake", morning); v.Last == nil || v.Last.Lifecycle != session.Failed || v.Last.Code != "run_deadline" {
		t.Errorf("the run that was not paused is %s, and the last one %+v", v.Lifecycle, v.Last)
	}
	verifyAll(t, s.url)
}
