package client_test

// Calls that wait for a person, and calls that a host loop executes.

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus/bustest"
)

// calls says that turn 1 of run 1 made calls: pairs of a name and arguments.
func (w *world) calls(sid string, pairs ...string) {
	w.t.Helper()
	var calls []any
	for pair := range slices.Chunk(pairs, 2) {
		calls = append(calls, map[string]any{"tool_name": pair[0], "arguments": pair[1]})
	}
	w.say(session.DoorLLM, sid, session.TypeToolCallsObserved, map[string]any{"effect": "r1t1", "calls": calls})
}

// waiting returns the calls of a session that wait, and their count.
func (w *world) waiting(sid string, want int) []client.Approval {
	w.t.Helper()
	waiting, err := w.Approvals(w.ctx, sid)
	if err != nil || len(waiting) != want {
		w.t.Fatalf("approvals of %q: got %+v (%v), want %d", sid, waiting, err, want)
	}
	return waiting
}

func TestCallIsApprovedOrDenied(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, toolsRecord).host()
	w.waiting("", 0)
	w.ask("s1", "hi")
	w.waiting("s1", 0)
	w.calls("s1", "send", `{"to":"a"}`, "send", `{"to":"b"}`, "send", `{"to":"c"}`)
	waiting := w.waiting("s1", 3)
	a := waiting[0]
	if a.Session != "s1" || a.Call != "r1t1c0" || a.ToolID != "mail.send" || a.ToolName != "send" || a.Arguments != `{"to":"a"}` || a.Deadline == 0 {
		t.Errorf("the first: got %+v", a)
	}
	if a.ArgsHash != codec.Sum([]byte(a.Arguments)).String() {
		t.Errorf("its hash: got %s", a.ArgsHash)
	}
	c, o, took := w.Client, client.DecideOptions{}, w.took("s1")
	stale := a
	stale.ArgsHash = waiting[1].ArgsHash
	w.refuses("s1", session.RejectApprovalStale)(c.Approve(w.ctx, stale, o))
	w.refuses("s1", session.RejectInvalidData)(c.Approve(w.ctx, a, client.DecideOptions{Arguments: `{"to":1}`}))
	if v := took(c.Approve(w.ctx, a, o)); v.WaitsFor != "tools" || v.Batch.Calls[0].Status != session.CallOpen {
		t.Errorf("approved: got %s, %+v", v.WaitsFor, v.Batch.Calls[0])
	}
	w.refuses("s1", session.RejectApprovalStale)(c.Deny(w.ctx, a, o))
	if v := took(c.Deny(w.ctx, waiting[1], client.DecideOptions{Reason: "not b"})); v.Batch.Calls[1].Code != session.CodeApprovalDenied || !strings.Contains(v.Batch.Calls[1].Detail, "not b") {
		t.Errorf("denied: got %+v", v.Batch.Calls[1])
	}
	took(c.Approve(w.ctx, waiting[2], client.DecideOptions{Arguments: `{"to":"d"}`}))
	if got, err := c.Arguments(w.ctx, "s1", "r1t1c2"); err != nil || got != `{"to":"d"}` {
		t.Errorf("edited arguments: got %s (%v)", got, err)
	}
	for _, call := range []string{"r1t1c1", "r1t1c9", "r1t1c-1", "r1t2c0", "r1t1", ""} {
		if _, err := c.Arguments(w.ctx, "s1", call); err == nil || !strings.Contains(err.Error(), "no such call") {
			t.Errorf("arguments of %q: got %v", call, err)
		}
	}
	if _, err := c.Arguments(w.ctx, "nobody", "r1t1c0"); !errors.Is(err, client.ErrNoSession) {
		t.Errorf("arguments of no session: got %v", err)
	}
	w.waiting("s1", 0)
}

// Waiting calls are found in all sessions; decided and ended ones are left out.
func TestApprovalsOfAllSessions(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, toolsRecord).host()
	last := uint64(0)
	for _, sid := range []string{"waits", "decided", "ended", "idle"} {
		last = w.ask(sid, "hi")
		if sid != "idle" {
			w.calls(sid, "send", `{"to":"`+sid+`"}`)
		}
	}
	w.took("decided")(w.Approve(w.ctx, w.waiting("decided", 1)[0], client.DecideOptions{}))
	w.took("ended")(w.Cancel(w.ctx, "ended", client.ControlOptions{}))
	w.say(session.DoorLLM, "idle", session.TypeGenerationSettled, map[string]any{"effect": "r1t1", "status": "ok"})
	// The last notice of all is of another session than the one that waits.
	w.end("idle", last)
	bustest.Until(t, "the notice of the session that waits", func() bool {
		waiting, err := w.Approvals(w.ctx, "")
		return err == nil && len(waiting) == 1 && waiting[0].Session == "waits" && waiting[0].Arguments == `{"to":"waits"}`
	})
}

// Arguments that are too large for a view are read from the log.
func TestApprovalShowsLargeArguments(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, toolsRecord).host()
	w.ask("s1", "hi")
	large := func(c string) string { return `{"to":"` + strings.Repeat(c, 100<<10) + `"}` }
	w.calls("s1", "send", large("a"), "send", large("b"))
	for i, a := range w.waiting("s1", 2) {
		if want := large([]string{"a", "b"}[i]); a.Arguments != want {
			t.Errorf("call %d: got %d bytes, want %d", i, len(a.Arguments), len(want))
		}
	}
}

func TestNoticesHaveBodiesByType(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, toolsRecord).host()
	config := `{"provider":"p","model":"m","budget":{"tokens":1000}}`
	if _, err := w.Run(w.ctx, "s1", "hi", client.RunOptions{Config: []byte(config), Operator: true, Submission: "once"}); err != nil {
		t.Fatal(err)
	}
	w.calls("s1", "send", `{"to":"a"}`, "show", `{}`, "nothing", `{}`)
	w.took("s1")(w.Deny(w.ctx, w.waiting("s1", 1)[0], client.DecideOptions{}))
	w.took("s1")(w.SettleCall(w.ctx, "s1", session.ToolCallSettled{Effect: "r1t1c1", Status: "succeeded"}))
	w.say(session.DoorLLM, "s1", session.TypeToolCallsObserved, map[string]any{
		"effect": "r1t2", "usage": map[string]any{"input_tokens": 2000}, "calls": []any{map[string]any{"tool_name": "nothing"}},
	})
	w.refuses("s1", session.RejectIllegalTransition)(w.Resume(w.ctx, "s1", nil, client.ControlOptions{}))
	w.took("s1")(w.Resume(w.ctx, "s1", &session.Budget{Tokens: 3000}, client.ControlOptions{}))
	w.took("s1")(w.Cancel(w.ctx, "s1", client.ControlOptions{}))
	var got []string
	for n, err := range w.Notices(w.ctx, "s1", 0) {
		bustest.OK(t, err)
		text := "?"
		switch d := n.Body().(type) {
		case session.SessionOpened:
			text = fmt.Sprintf("%d %t", d.Rules, !d.Install.IsZero())
		case session.RunPlaced:
			text = fmt.Sprintf("%d %s", d.Run, d.Submission)
		case session.ToolRejected:
			text = d.Effect + " " + d.Code
		case session.ApprovalRequested:
			text = d.Call + " " + d.Arguments
		case session.CallsPlanned:
			text = fmt.Sprintf("%s %s", d.Batch, d.Calls)
		case session.BudgetExceeded:
			text = fmt.Sprintf("%s %d %d", d.Budget, d.Used, d.Limit)
		case session.EventRejected:
			text = string(d.Code)
		case session.RunFinished:
			text = string(d.Lifecycle)
		case session.SessionChanged: // the run is resumed
			text = string(n.Summary.Lifecycle)
		}
		got = append(got, n.Type+" "+text)
		if n.Type == session.NoticeRunFinished {
			break
		}
	}
	want := []string{
		"SessionOpened 1 true", "RunStarted 1 once", "SessionChanged running", "ToolRejected r1t1c2 tool_unknown", "ApprovalRequested r1t1c0 " + `{"to":"a"}`,
		"CallsPlanned r1t1 [r1t1c1]", "ToolRejected r1t2c0 tool_unknown", "BudgetExceeded tokens 2000 1000",
		"EventRejected illegal_transition", "RunFinished cancelled",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("notices: got %q, want %q", got, want)
	}
	for _, n := range []client.Notice{{Type: "Strange", Data: []byte(`{}`)}, {Type: session.NoticeRunStarted, Data: []byte(`[]`)}} {
		if n.Body() != nil {
			t.Errorf("%s %s is %+v, want nothing", n.Type, n.Data, n.Body())
		}
	}
}

func TestHostLoopSettlesRun(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, toolsRecord).host()
	w.ask("s1", "hi")
	w.calls("s1", "show", `{"n":1}`, "show", `{"n":2}`, "show", `{"n":3}`)
	if v, err := w.View(w.ctx, "s1"); err != nil || v.WaitsFor != "host_loop" || len(v.Batch.Groups) != 3 {
		t.Fatalf("got %+v (%v), want three groups of a host loop", v.Batch, err)
	}
	if got, err := w.Arguments(w.ctx, "s1", "r1t1c2"); err != nil || got != `{"n":3}` {
		t.Errorf("arguments: got %s (%v)", got, err)
	}
	done := func(call string, text string) session.ToolCallSettled {
		return session.ToolCallSettled{Effect: call, Status: string(session.CallSucceeded), Output: &session.Content{Text: text}}
	}
	w.refuses("s1", session.RejectIllegalTransition)(w.SettleCall(w.ctx, "s1", done("r1t1c1", "early")))
	large := strings.Repeat("0123456789abcdef", session.TextBytesMax/8)
	v := w.took("s1")(w.SettleCall(w.ctx, "s1", done("r1t1c0", large)))
	if got := v.Batch.Calls[1].Status; got != session.CallOpen {
		t.Errorf("the second: got %s, want open", got)
	}
	batch := session.ToolBatchSettled{Batch: "r1t1", PlanHash: "0", Results: []session.ToolCallSettled{done("r1t1c1", large), done("r1t1c2", "3")}}
	w.refuses("s1", session.RejectPlanMismatch)(w.SettleBatch(w.ctx, "s1", batch))
	batch.PlanHash = v.Batch.PlanHash
	if v := w.took("s1")(w.SettleBatch(w.ctx, "s1", batch)); v.WaitsFor != "model" {
		t.Errorf("after the batch it waits for %s, want model", v.WaitsFor)
	}
	w.took("s1")(w.SettleBatch(w.ctx, "s1", batch)) // again, alike
	if batch.Results[0].Output.Text != large {
		t.Error("the caller's batch was changed")
	}
}
