package session_test

// Where a run stands, and what it takes there: the whole table, generated. Each
// stand with each request, through each door, addressed in each way, with and
// without a run in the queue; want is worked out from SEMANTICS' table alone.

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/refold/refold/actors/session"
)

// stand brings a session's run 1 to where a row of the table begins.
type stand struct {
	name  string
	row   string // of the table
	open  bool   // something but wakes is open, so that an interrupt does not end the run
	call  string // how r1t1c0 stands: made, waits for a person, or neither
	reach func(w *told)
}

var stands = []stand{
	{"no run", "no run", false, "", func(*told) {}},
	{"the model's turn", "running", true, "", func(w *told) { w.run(nil) }},
	{"a call", "running", true, "made", func(w *told) { w.run(nil); w.called("r1t1", "boxn", "boxn") }},
	{"a host loop's call", "running", true, "made", func(w *told) { w.run(nil); w.called("r1t1", "loopn") }},
	{"the hook's step", "running", true, "", func(w *told) { w.run(withHook()) }},
	{"a retry", "running", false, "", func(w *told) { w.run(patient()); w.overloaded("r1t1") }},
	{"an approval", "running", false, "awaits", func(w *told) { w.run(nil); w.called("r1t1", "askn") }},
	{"an approval, and a call", "running", true, "awaits", func(w *told) { w.run(nil); w.called("r1t1", "askp", "boxp") }},
	{"input", "waiting_input", false, "", func(w *told) { w.run(explicit()); w.answered("r1t1") }},
	{"paused, the model's turn", "paused", true, "", func(w *told) { w.run(nil); w.pause() }},
	{"paused, a call", "paused", true, "made", func(w *told) { w.run(nil); w.called("r1t1", "boxn"); w.pause() }},
	{"paused, the hook's step", "paused", true, "", func(w *told) { w.run(withHook()); w.pause() }},
	{"paused, a retry", "paused", false, "", func(w *told) { w.run(patient()); w.overloaded("r1t1"); w.pause() }},
	{"paused, an approval", "paused", false, "awaits", func(w *told) { w.run(nil); w.pause(); w.called("r1t1", "askn") }},
	{"paused, a group is held back", "paused", false, "made", func(w *told) { w.run(nil); w.pause(); w.called("r1t1", "boxn") }},
	{"paused, a turn is held back", "paused", false, "made", func(w *told) { w.run(nil); w.called("r1t1", "boxn"); w.pause(); w.settled("r1t1c0") }},
	{"paused, a generation is held back", "paused", false, "", func(w *told) { w.run(withHook()); w.pause(); w.prepared("r1t1s", nil) }},
	{"paused, input", "paused, input", false, "", func(w *told) { w.run(explicit()); w.answered("r1t1"); w.pause() }},
	{"paused, input came", "paused, input", false, "", func(w *told) { w.run(explicit()); w.pause(); w.answered("r1t1") }},
	{"paused by its budget", "budget", false, "made", func(w *told) {
		w.run(map[string]any{"budget": map[string]any{"tokens": 1000}})
		w.must(w.tell(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{
			"effect": "r1t1", "calls": []any{map[string]any{"tool_name": "nosuch", "arguments": "{}"}}, "usage": map[string]any{"input_tokens": 1000},
		}))
	}},
	{"interrupting, the model's turn", "interrupting", true, "", func(w *told) { w.run(nil); w.in(session.TypeRunInterrupt, nil) }},
	{"interrupting, a call", "interrupting", true, "made", func(w *told) {
		w.run(nil)
		w.called("r1t1", "askn", "boxn", "boxn")
		w.approved("r1t1c0")
		w.in(session.TypeRunInterrupt, nil)
	}},
	{"interrupting, the hook's step", "interrupting", true, "", func(w *told) { w.run(withHook()); w.in(session.TypeRunInterrupt, nil) }},
	{"completed", "over", false, "", func(w *told) { w.run(nil); w.answered("r1t1") }},
	{"cancelled", "over", false, "made", func(w *told) { w.run(nil); w.called("r1t1", "boxn"); w.in(session.TypeRunCancelRequested, nil) }},
	{"closed", "closed", false, "", func(w *told) { w.must(w.tell(session.DoorCtl, session.TypeSessionClosed, map[string]any{})) }},
}

func explicit() map[string]any { return map[string]any{"completion": "explicit"} }
func withHook() map[string]any { return map[string]any{"step_hook": map[string]any{"hook": "h"}} }
func patient() map[string]any  { return map[string]any{"retry": map[string]any{"attempts": 2}} }

// in says something through the door `in`, and it must be taken.
func (w *told) in(typ string, data map[string]any) {
	w.t.Helper()
	if data == nil {
		data = map[string]any{}
	}
	w.must(w.tell(session.DoorIn, typ, data))
}

func (w *told) pause() { w.t.Helper(); w.in(session.TypeRunPauseRequested, nil) }

// overloaded fails a generation in a way that may be tried again.
func (w *told) overloaded(effect string) {
	w.t.Helper()
	w.must(w.tell(session.DoorLLM, session.TypeGenerationSettled, map[string]any{
		"effect": effect, "status": "failed", "error": map[string]any{"code": "overloaded", "retryable": true},
	}))
}

func text(s string) map[string]any { return map[string]any{"text": s} }

// askInstall is loopInstall with tools whose calls wait for a person.
func askInstall(t testing.TB) *session.Install {
	t.Helper()
	tools := loopTools()
	for _, name := range []string{"askp", "askn"} {
		tools = append(tools, map[string]any{
			"tool_id": "x." + name, "tool_name": name, "args_schema": map[string]any{"type": "object"}, "approval": "always",
			"executor": map[string]any{"kind": "effect", "target": "box"}, "parallel_safe": name == "askp",
		})
	}
	install, err := session.ParseInstall(asJSON(t, map[string]any{
		"v": 1, "rules": 1, "tools": tools, "config": map[string]any{"provider": "p", "model": "m"},
	}))
	if err != nil {
		t.Fatal(err)
	}
	return install
}

// approved approves a call that waits.
func (w *told) approved(call string) {
	w.t.Helper()
	w.must(w.tell(session.DoorApprove, session.TypeApprovalDecided, w.decision(call, "approve")))
}

// decision is a decision over a call with the hash of its arguments, if it
// waits for one.
func (w *told) decision(call, decision string) map[string]any {
	hash := ""
	if b := w.state.View().Batch; b != nil {
		for _, c := range b.Calls {
			if c.Effect == call {
				hash = c.ArgsHash
			}
		}
	}
	return map[string]any{"call": call, "args_hash": hash, "decision": decision}
}

const illegal = string(session.RejectIllegalTransition)

// table is SEMANTICS' table of runs: where run 1 stands after a request, or why
// the request is rejected. `interrupt` is interrupting, or interrupted if
// nothing but wakes is open.
var table = map[string]map[string]string{
	"no run":        {"steer": "running", "cancel": "run_not_active", "interrupt": "run_not_active", "pause": "run_not_active", "resume": "run_not_active", "end": "run_not_active"},
	"running":       {"steer": "running", "cancel": "cancelled", "interrupt": "interrupt", "pause": "paused", "resume": illegal, "end": illegal},
	"waiting_input": {"steer": "running", "cancel": "cancelled", "interrupt": "interrupt", "pause": "paused", "resume": illegal, "end": "ends"},
	"paused":        {"steer": "paused", "cancel": "cancelled", "interrupt": "interrupt", "pause": illegal, "resume": "running", "end": illegal},
	"paused, input": {"steer": "paused", "cancel": "cancelled", "interrupt": "interrupt", "pause": illegal, "resume": "waiting_input", "end": illegal},
	"budget":        {"steer": "paused", "cancel": "cancelled", "interrupt": "interrupt", "pause": illegal, "resume": illegal, "end": illegal},
	"interrupting":  {"steer": "interrupting", "cancel": "cancelled", "interrupt": "interrupt", "pause": illegal, "resume": illegal, "end": illegal},
}

// wish is one column of the table, or another event about runs.
type wish struct {
	name, kind, typ string
	data            map[string]any
	addressed       bool // has a field run
	ctl             bool // said through ctl alone
}

var wishes = []wish{
	{"steer", "steer", session.TypeSteerRequested, map[string]any{"input": text("more")}, true, false},
	{"cancel", "cancel", session.TypeRunCancelRequested, nil, true, false},
	{"interrupt", "interrupt", session.TypeRunInterrupt, nil, true, false},
	{"pause", "pause", session.TypeRunPauseRequested, nil, true, false},
	{"resume", "resume", session.TypeRunResumeRequested, nil, true, false},
	{"completed", "end", session.TypeRunCompleted, nil, true, false},
	{"failed", "end", session.TypeRunFailed, nil, true, false},
	{"edit", "edit", session.TypeRunEdited, map[string]any{"input": text("other")}, true, false},
	{"run", "run", session.TypeRunRequested, map[string]any{"input": text("next")}, false, false},
	{"run, queue", "run", session.TypeRunRequested, map[string]any{"input": text("next"), "when_busy": "queue"}, false, false},
	{"run, steer", "steer", session.TypeRunRequested, map[string]any{"input": text("next"), "when_busy": "steer"}, false, false},
	{"run, interrupt", "run, interrupt", session.TypeRunRequested, map[string]any{"input": text("next"), "when_busy": "interrupt"}, false, false},
	{"run, reject", "run, reject", session.TypeRunRequested, map[string]any{"input": text("next"), "when_busy": "reject"}, false, false},
	{"close", "close", session.TypeSessionClosed, nil, false, true},
	{"decide", "decide", session.TypeApprovalDecided, nil, false, false},
}

// TestLifecycles tries every request in every lifecycle.
func TestLifecycles(t *testing.T) {
	t.Parallel()
	install := askInstall(t)
	for _, from := range stands {
		t.Run(from.name, func(t *testing.T) {
			t.Parallel()
			for _, r := range wishes {
				for _, door := range []session.Door{session.DoorIn, session.DoorCtl, session.DoorApprove} {
					for _, run := range []int{0, 1, 2, 9} {
						for _, queued := range []bool{false, true} {
							if (run == 0 || r.addressed) && (run != 2 || queued) {
								c := lifecycleCase{from, r, door, run, queued}
								c.check(toldUnder(t, install))
							}
						}
					}
				}
			}
		})
	}
}

// lifecycleCase is one request in one stand.
type lifecycleCase struct {
	stand
	wish
	door   session.Door
	run    int  // addressed; 0: none
	queued bool // run 2 waits
}

func (c lifecycleCase) isActive() bool {
	return c.row != "no run" && c.row != "over" && c.row != "closed"
}

// want says what the table says: where run 1 stands, or a rejection.
func (c lifecycleCase) want(before string) string {
	if want := c.refusal(); want != "" {
		return want
	}
	row := c.row
	if !c.isActive() {
		row = "no run"
	}
	want := table[row][c.kind]
	switch c.kind {
	case "run":
		if want = before; !c.isActive() {
			want = "running"
		}
	case "run, interrupt":
		if want = "interrupt"; !c.isActive() {
			want = "running"
		}
	case "run, reject":
		if want = string(session.RejectRunActive); !c.isActive() {
			want = "running"
		}
	case "edit", "decide":
		want = before
	case "close":
		if want = before; c.isActive() {
			want = "cancelled"
		}
	case "cancel":
		if c.run == 2 {
			want = before
		}
	}
	switch {
	case want == "interrupt" && c.open:
		return "interrupting"
	case want == "interrupt":
		return "interrupted"
	case want == "ends":
		return c.wish.name
	}
	return want
}

// refusal says why a request is rejected whatever the table says.
func (c lifecycleCase) refusal() string {
	switch {
	case (c.kind == "decide") != (c.door == session.DoorApprove), c.ctl && c.door == session.DoorIn:
		return string(session.RejectWrongDoor)
	case c.row == "closed":
		return string(session.RejectSessionClosed)
	case c.kind == "edit" && c.run == 0:
		return string(session.RejectInvalidData)
	case c.run == 9, c.run == 1 && !c.isActive():
		return string(session.RejectStale)
	case c.kind == "edit" && c.run == 1, c.run == 2 && c.kind != "edit" && c.kind != "cancel":
		return illegal
	case c.kind != "decide":
		return ""
	case c.call == "made":
		return string(session.RejectApprovalStale)
	case c.call == "":
		return string(session.RejectUnknownCall)
	}
	return ""
}

// check says it, and looks at what came of it.
func (c lifecycleCase) check(w *told) {
	w.t.Helper()
	what := fmt.Sprintf("%s, through %s, run %d, queued %v", c.wish.name, c.door, c.run, c.queued)
	c.reach(w)
	if c.queued && c.isActive() {
		w.in(session.TypeRunRequested, map[string]any{"input": text("queued")})
	} else if c.queued {
		return
	}
	data := merged(map[string]any{}, c.data)
	if c.kind == "decide" {
		data = w.decision("r1t1c0", "approve")
	}
	if c.run > 0 {
		data["run"] = c.run
	}
	before, was := standOf(w.state, 1), w.state.Bytes()
	runs, queue, steers := w.state.Runs, len(w.state.Queue), steersOf(w.state)
	_, err := w.tell(c.door, c.typ, data)
	got, want := standOf(w.state, c.number(runs)), c.want(before)
	var bad session.Rejection
	if errors.As(err, &bad) {
		got = string(bad)
		if more := moreThanHead(w.t, was, w.state.Bytes()); more != "" {
			w.t.Errorf("%s: rejected, and %s", what, more)
		}
	}
	if got != want {
		w.t.Errorf("%s: got %s, want %s", what, got, want)
	}
	if bad == "" {
		c.checkOthers(w, what, runs, queue, steers)
	}
}

// number is the run that want is about: run 1, or that which a request starts
// when none is active.
func (c lifecycleCase) number(runs uint32) uint32 {
	if !c.isActive() && c.kind != "close" {
		return runs + 1
	}
	return 1
}

// checkOthers checks what became of the runs beside run 1, and of its steers.
func (c lifecycleCase) checkOthers(w *told, what string, runs uint32, queue, steers int) {
	w.t.Helper()
	s, ended := w.state, standOf(w.state, 1)
	over := ended == "cancelled" || ended == "interrupted" || ended == "completed" || ended == "failed"
	asks := c.kind == "run" || c.kind == "run, interrupt" || c.kind == "steer" && (c.row == "interrupting" || !c.isActive())
	switch {
	case asks && s.Runs != runs+1, !asks && c.isActive() && s.Runs != runs:
		w.t.Errorf("%s: %d runs are numbered after %d", what, s.Runs, runs)
	case c.isActive() && over && c.kind != "close" && (s.Run != nil) != (queue > 0 || asks):
		w.t.Errorf("%s: run 1 is %s, %d runs waited, and active is %v", what, ended, queue, s.Run != nil)
	case c.kind == "steer" && (ended == "paused" || ended == "running" && c.row == "running") && steersOf(s) != steers+1:
		w.t.Errorf("%s: %d steers wait after %d", what, steersOf(s), steers)
	case c.kind == "run, interrupt" && c.isActive() && ended == "interrupting" && s.Queue[0].Number != s.Runs:
		w.t.Errorf("%s: run %d is at the head of the queue", what, s.Queue[0].Number)
	case c.kind == "run, interrupt" && c.isActive() && over && s.Run.Number != s.Runs:
		w.t.Errorf("%s: run %d is active, want the one that interrupted", what, s.Run.Number)
	case c.kind == "edit" && s.Queue[0].Seq != s.Seq:
		w.t.Errorf("%s: the queued run has the input of event %d, want %d", what, s.Queue[0].Seq, s.Seq)
	case c.kind == "cancel" && c.run == 2 && len(s.Queue) != queue-1:
		w.t.Errorf("%s: %d runs are queued", what, len(s.Queue))
	case c.kind == "close" && (s.Run != nil || len(s.Queue) > 0 || s.View().Status != "closed"):
		w.t.Errorf("%s: run %v is active, %d are queued", what, s.Run, len(s.Queue))
	}
	if c.isActive() && over && w.asked() != "" && (s.Run == nil || w.asked() != "r"+strconv.Itoa(int(s.Run.Number))+"t1") {
		w.t.Errorf("%s: run 1 is %s, open is %s", what, ended, w.asked())
	}
}

// standOf returns where a run stands: "" if it does not exist, queued and over
// ones included.
func standOf(s *session.State, number uint32) string {
	switch {
	case s.Run != nil && s.Run.Number == number:
		return string(s.Run.Lifecycle)
	case s.Last != nil && s.Last.Number == number:
		return string(s.Last.Lifecycle)
	}
	return ""
}

func steersOf(s *session.State) int {
	if s.Run == nil {
		return 0
	}
	return len(s.Run.Steers)
}
