package session_test

// Outside hooks: what they are asked, what becomes of their answers, and what
// happens when there is none.

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// hooked is a session whose run has a hook beside this config.
func hooked(t testing.TB, hook, config map[string]any) *told {
	t.Helper()
	w := toldUnder(t, stepInstall(t, nil, nil))
	w.must(w.tell(session.DoorCtl, session.TypeFactsSet, map[string]any{"facts": map[string]any{"mode": "safe"}}))
	full := merged(map[string]any{"provider": "openai", "model": "m", "step_hook": merged(map[string]any{"hook": "guide"}, hook)}, config)
	w.must(w.tell(session.DoorCtl, session.TypeRunRequested, map[string]any{"input": map[string]any{"text": "go"}, "config": full, "roles": []any{"admin"}}))
	return w
}

const stepPrepared = session.TypeStepPrepared

// prepared answers a step with these fields.
func (w *told) prepared(effect string, fields map[string]any) {
	w.t.Helper()
	w.must(w.tell(session.DoorStep, stepPrepared, merged(map[string]any{"effect": effect, "status": "ok"}, fields)))
}

// step returns the open step of that name.
func (w *told) step(name string) session.Step {
	w.t.Helper()
	var s session.Step
	if err := codec.Unmarshal(w.open(name).Payload, &s); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// The hook receives its request before each turn, with the run so far.
func TestHookReceivesItsRequest(t *testing.T) {
	t.Parallel()
	w := hooked(t, nil, nil)
	w.wants("r1t1s", "step")
	e, first := w.open("r1t1s"), w.step("r1t1s")
	if e.Class != session.ClassStep || e.Target != "guide" || e.Claimed || e.Deadline != w.time+session.StepDefaultMS || e.StartBy != w.time+session.StepDefaultMS/2 {
		t.Errorf("the effect is %+v", e)
	}
	if first.Step != 0 || first.Hook != "guide" || first.Provider != "openai" || first.Model != "m" || !slices.Equal(first.Roles, []string{"admin"}) ||
		len(first.Calls) > 0 || first.Used == nil || len(first.Used) > 0 || len(first.Context) > 0 || first.At != w.time || first.StartBy != e.StartBy || first.RunMS != session.StepDefaultMS/2 {
		t.Errorf("the first step is %+v", first)
	}
	var mode string
	if len(first.Facts) != 1 || first.Facts[0].Key != "mode" || codec.Decode(first.Facts[0].Value, &mode) != nil || mode != "safe" {
		t.Errorf("the facts are %+v", first.Facts)
	}
	w.prepared("r1t1s", map[string]any{"context": map[string]any{"n": 1}})
	w.wants("r1t1", "model")
	w.must(w.tell(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{"effect": "r1t1", "usage": map[string]any{"output_tokens": 5}, "calls": []any{
		map[string]any{"tool_name": "look", "arguments": ""}, map[string]any{"tool_name": "nosuch", "arguments": ""},
		map[string]any{"tool_name": "analyze", "arguments": ""}, map[string]any{"tool_name": "fix", "arguments": ""},
	}}))
	w.settled("r1t1c0")
	w.must(w.tell(session.DoorTool, callSettled, result("r1t1c2", "cancelled", "")))
	w.must(w.tell(session.DoorTool, callSettled, result("r1t1c3", "failed", "")))
	second := w.step("r1t2s")
	at := first.InputSeq + 2 // the run's request, the first hook's answer, the calls
	want := []session.StepCall{
		{Arguments: "{}", CallsSeq: at, Effect: "r1t1c0", Seq: at + 1, Status: session.CallSucceeded, ToolID: "x.look", ToolName: "look"},
		{CallsSeq: at, Code: "tool_unknown", Effect: "r1t1c1", Seq: at, Status: session.CallIgnored, ToolName: "nosuch"},
		{Arguments: "{}", CallsSeq: at, Effect: "r1t1c2", Seq: at + 2, Status: session.CallCancelled, ToolID: "x.analyze", ToolName: "analyze"},
		{Arguments: "{}", CallsSeq: at, Effect: "r1t1c3", Seq: at + 3, Status: session.CallFailed, ToolID: "x.fix", ToolName: "fix"},
	}
	if second.Step != 1 || !slices.Equal(second.Calls, want) || !slices.Equal(second.Used, []string{"x.fix", "x.look"}) || second.Usage.OutputTokens != 5 {
		t.Errorf("the second step is %+v, want the calls %+v", second, want)
	}
	if text, err := codec.ToJSON(second.Context); err != nil || string(text) != `{"n":1}` {
		t.Errorf("its context is %s: %v", text, err)
	}
}

// The hook decides for its turn only; context stays for later turns. Fields that it
// leaves out are the config's, and rules do not apply to a turn that it prepared.
func TestHookDecides(t *testing.T) {
	t.Parallel()
	w := hooked(t, nil, map[string]any{"system": "own", "tool_choice": "required", "active_tools": []any{"look", "fix"}, "steps": always("of a rule")})
	w.prepared("r1t1s", map[string]any{
		"active_tools": []any{"x.analyze", "look"}, "tool_choice": "x.look", "system": "hook's", "model": "hook's", "params": map[string]any{"p": 1},
		"context": map[string]any{"a": 1},
	})
	g := w.generation("r1t1")
	if w.offered("r1t1") != "analyze look" || g.ToolChoice != "look" || g.System != "hook's" || g.Model != "hook's" || len(g.Params) == 0 {
		t.Errorf("turn 1: offered %q, %+v", w.offered("r1t1"), g)
	}
	v := w.state.View()
	if step := v.Turn.Step; step.From != session.StepFromHook || step.Rule != nil || step.Open || v.Turn.Base != "step" {
		t.Errorf("turn 1: the view shows %+v, base %s", step, v.Turn.Base)
	}
	for _, tool := range v.Tools {
		if tool.ToolName == "fix" && !strings.HasSuffix(tool.Why, "(the step hook)") {
			t.Errorf("fix is not offered, because %s", tool.Why)
		}
	}
	w.called("r1t1", "look", "fix")
	w.settled("r1t1c0") // fix was not offered
	w.prepared("r1t2s", nil)
	g = w.generation("r1t2")
	if w.offered("r1t2") != "look fix" || g.ToolChoice != "" || g.System != "own" || g.Model != "m" || len(g.Params) > 0 {
		t.Errorf("turn 2: offered %q, %+v", w.offered("r1t2"), g)
	}
	w.called("r1t2", "look")
	var c session.ToolCall
	if err := codec.Unmarshal(w.open("r1t2c0").Payload, &c); err != nil || len(c.Context) == 0 {
		t.Errorf("turn 2: the call has the context %s, %v; want that of turn 1", c.Context, err)
	}
	w.settled("r1t2c0")
	ref := w.state.NextRegistry().Ref(1)
	w.prepared("r1t3s", map[string]any{"tool_refs": []any{ref.String()}})
	if got := w.offered("r1t3"); got != "fix" {
		t.Errorf("turn 3: offered %q, want fix by its descriptor", got)
	}
}

// When the hook fails, is late or its answer is unusable, the rules apply as
// without a hook; or the run fails, if the config says so.
func TestHookFallsBack(t *testing.T) {
	t.Parallel()
	const unusable = "the settlement can't be used: "
	for name, c := range map[string]struct {
		answer map[string]any // nil: none
		code   string
		detail string
	}{
		"it failed":              {map[string]any{"status": "failed", "error": map[string]any{"code": "down", "detail": "for repair"}}, "down", "for repair"},
		"an odd status":          {map[string]any{"status": "maybe"}, session.CodeBadSettlement, unusable + "invalid_data at status"},
		"no status":              {map[string]any{}, session.CodeBadSettlement, unusable + "invalid_data at status"},
		"a failure of nothing":   {map[string]any{"status": "failed"}, session.CodeBadSettlement, unusable + "invalid_data at error"},
		"an error that is ok":    {map[string]any{"status": "ok", "error": map[string]any{"code": "x"}}, session.CodeBadSettlement, unusable + "invalid_data at error"},
		"an unknown tool":        {map[string]any{"status": "ok", "active_tools": []any{"look", "nosuch"}}, session.CodeBadSettlement, unusable + "unknown_tool at active_tools[1]"},
		"an unknown choice":      {map[string]any{"status": "ok", "tool_choice": "nosuch"}, session.CodeBadSettlement, unusable + "unknown_tool at tool_choice"},
		"both kinds of tools":    {map[string]any{"status": "ok", "active_tools": []any{}, "tool_refs": []any{}}, session.CodeBadSettlement, unusable + "invalid_rule at tool_refs"},
		"a context that is none": {map[string]any{"status": "ok", "context": []any{}}, session.CodeBadSettlement, unusable + "invalid_rule at context"},
		"a context of 5 KiB":     {map[string]any{"status": "ok", "context": map[string]any{"a": long("", 5<<10)}}, session.CodeBadSettlement, unusable + "limit_exceeded at context"},
		"an unknown field":       {map[string]any{"status": "ok", "wings": 2}, session.CodeBadSettlement, unusable + "invalid_data at wings"},
		"no answer":              {nil, session.CodeDeadlineExceeded, "step/guide did not answer by the deadline"},
	} {
		for _, fallback := range []string{"", "rules", "fail"} {
			t.Run(name+" "+fallback, func(t *testing.T) {
				t.Parallel()
				w := hooked(t, map[string]any{"fallback": fallback, "deadline_ms": 2000}, map[string]any{"steps": []any{rule(`fact("mode") == "safe"`, map[string]any{"model": "of a rule"})}})
				answer := merged(map[string]any{"effect": "r1t1s"}, c.answer)
				withdrawn := 0
				if c.answer == nil {
					answer["status"], withdrawn = "ok", 1
					w.time += 2000
					w.must(w.tell(session.DoorWake, session.TypeWakeSettled, map[string]any{"effect": "w1"}))
				} else {
					w.must(w.tell(session.DoorStep, stepPrepared, answer))
				}
				if got := w.state.Withdrawals(); len(got) != withdrawn || withdrawn > 0 && got[0] != (session.Withdrawal{Name: "r1t1s", Class: session.ClassStep, Target: "guide"}) {
					t.Errorf("withdrew %v", got)
				}
				if fallback == "fail" {
					if end := w.state.Last; w.state.Run != nil || end.Code != c.code || !strings.HasPrefix(end.Detail.String(), c.detail) {
						t.Errorf("the run ended %+v, want %s: %s", end, c.code, c.detail)
					}
					if v := w.state.View(); v.Tools != nil || v.Turn.Toolset != "" || v.Turn.Step.Code != c.code {
						t.Errorf("the view shows tools of a turn that was never asked: %+v", v.Turn)
					}
					w.refused(session.RejectUnknownEffect, session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": "r1t1", "status": "ok"})
				} else if step := w.state.View().Turn.Step; w.generation("r1t1").Model != "of a rule" || step.Code != c.code || !strings.HasPrefix(step.Detail, c.detail) || *step.Rule != 0 {
					t.Errorf("the model is %s, the step %+v, want %s: %s", w.generation("r1t1").Model, step, c.code, c.detail)
				}
				other := map[string]any{"effect": "r1t1s", "status": "ok", "system": "too late"}
				w.refused(session.RejectEffectSettled, session.DoorStep, stepPrepared, other)
				if c.answer != nil {
					w.silent(session.DoorStep, stepPrepared, answer)
				} else {
					w.refused(session.RejectEffectSettled, session.DoorStep, stepPrepared, answer)
				}
				w.restored().refused(session.RejectEffectSettled, session.DoorStep, stepPrepared, other)
			})
		}
	}
}

// The hook falls back on the profile's rules, if there are any; they see the last
// step as they would have without the hook.
func TestHookFallsBackOnTheProfile(t *testing.T) {
	t.Parallel()
	install := stepInstall(t, []any{rule(`last == ["look"] && used("look") && step == 1`, map[string]any{"model": "of the profile"})}, nil)
	w := toldUnder(t, install)
	w.run(map[string]any{"step_hook": map[string]any{"hook": "guide"}})
	down := map[string]any{"effect": "r1t1s", "status": "failed", "error": map[string]any{"code": "down"}}
	w.must(w.tell(session.DoorStep, stepPrepared, down))
	if got := w.generation("r1t1").Model; got != "m" {
		t.Errorf("turn 1: the model is %s", got)
	}
	w.ran("r1t1", "look")
	*w = *w.restored()
	w.must(w.tell(session.DoorStep, stepPrepared, merged(down, map[string]any{"effect": "r1t2s"})))
	if got, step := w.generation("r1t2").Model, w.state.View().Turn.Step; got != "of the profile" || step.From != session.StepFromProfile || step.Profile != "all" {
		t.Errorf("turn 2: the model is %s, %+v", got, step)
	}
	w.refused(session.RejectStale, session.DoorStep, stepPrepared, down)
}

// Steps that were not opened are unknown, and a hook's config must be valid.
func TestUnopenedStepsAreUnknown(t *testing.T) {
	t.Parallel()
	w := hooked(t, nil, nil)
	ok := map[string]any{"status": "ok"}
	for effect, want := range map[string]session.Rejection{
		"r1t2s": session.RejectUnknownEffect, "r2t1s": session.RejectUnknownEffect, "r1t1": session.RejectUnknownEffect,
		"r1t1c0": session.RejectUnknownEffect, "r1t1c0s": session.RejectUnknownEffect, "s": session.RejectUnknownEffect, "w1": session.RejectUnknownEffect,
		"r1t1ss": session.RejectUnknownEffect, "r01t1s": session.RejectUnknownEffect,
	} {
		w.refused(want, session.DoorStep, stepPrepared, merged(ok, map[string]any{"effect": effect}))
	}
	w.refused(session.RejectInvalidData, session.DoorStep, stepPrepared, ok)
	for _, door := range allDoors() {
		if door != session.DoorStep {
			w.refused(session.RejectWrongDoor, door, stepPrepared, merged(ok, map[string]any{"effect": "r1t1s"}))
		}
	}
	// Its generation is not asked yet, nor are calls of it.
	w.refused(session.RejectUnknownEffect, session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": "r1t1", "status": "ok"})
	w.refused(session.RejectUnknownEffect, session.DoorLLM, session.TypeToolCallsObserved, map[string]any{"effect": "r1t1", "calls": made(1, "look", "")})
	w.refused(session.RejectUnknownEffect, session.DoorTool, callSettled, result("r1t1c0", "succeeded", ""))
	w.refused(session.RejectUnknownEffect, session.DoorTool, batchSettled, w.batch("r1t1"))
	if v := w.state.View(); v.Tools != nil || v.Turn.Toolset != "" || !v.Turn.Step.Open {
		t.Errorf("the view shows tools before the step is prepared: %+v", v.Turn)
	}
	w.prepared("r1t1s", nil)
	w.answered("r1t1")
	w.run(nil)
	w.refused(session.RejectUnknownEffect, session.DoorStep, stepPrepared, merged(ok, map[string]any{"effect": "r2t1s"}))
	for _, odd := range []map[string]any{
		{"hook": ""}, {"hook": "a.b"}, {"hook": "h", "deadline_ms": 99}, {"hook": "h", "deadline_ms": session.DeadlineMaxMS + 1}, {"hook": "h", "fallback": "guess"},
	} {
		w.refused(session.RejectInvalidData, session.DoorCtl, session.TypeRunRequested, map[string]any{
			"input": map[string]any{"text": "x"}, "config": map[string]any{"provider": "p", "model": "m", "step_hook": odd},
		})
	}
}

// A step's effect keeps its bytes whatever is set while it is open. Its answer
// applies to the registry of its turn, and to the current lists.
func TestStepKeepsItsBytes(t *testing.T) {
	t.Parallel()
	w := hooked(t, nil, map[string]any{"steps": always("of a rule")})
	w.prepared("r1t1s", map[string]any{"context": map[string]any{"n": 1}})
	w.ran("r1t1", "look")
	before := w.open("r1t2s")
	for _, e := range []struct {
		typ  string
		data any
	}{
		{session.TypeFactsSet, map[string]any{"facts": map[string]any{"mode": "wild", "more": "x"}}},
		{session.TypeHostSessionUpdated, map[string]any{"status": "ready"}},
		{session.TypeToolRegistrySet, map[string]any{
			"tools": []any{stepTool("analyze"), stepTool("look"), stepTool("new")}, "profiles": []any{map[string]any{"profile": "late", "tools": []any{"new"}}},
		}},
		{session.TypeToolProfileSelected, map[string]any{"profile": "late"}},
		{session.TypeToolOverridesSet, map[string]any{"scope": "run", "force": []any{"new", "analyze"}}},
		{session.TypeToolOverridesSet, map[string]any{"scope": "session", "disable": []any{"look"}}},
		{session.TypeSessionConfigured, map[string]any{"provider": "other", "model": "other", "steps": always("of session")}},
		{session.TypeRunRequested, map[string]any{"input": map[string]any{"text": "later"}}},
	} {
		w.must(w.tell(session.DoorCtl, e.typ, e.data))
		if after := w.open("r1t2s"); !bytes.Equal(before.Payload, after.Payload) || before.Deadline != after.Deadline || before.StartBy != after.StartBy {
			t.Fatalf("%s changed the step that is open", e.typ)
		}
	}
	w.refused(session.RejectInvalidRegistry, session.DoorCtl, session.TypeToolRegistrySet, map[string]any{"tools": []any{}}) // the lists name analyze
	w.prepared("r1t2s", map[string]any{"active_tools": []any{"fix", "look"}})
	if got := w.offered("r1t2"); got != "fix analyze" {
		t.Errorf("offered %q, want fix of the turn's registry, and analyze by force", got)
	}
	w.ran("r1t2", "analyze")
	w.must(w.tell(session.DoorStep, stepPrepared, map[string]any{"effect": "r1t3s", "status": "ok", "active_tools": []any{"fix"}}))
	if step := w.state.View().Turn.Step; step.Code != session.CodeBadSettlement || w.generation("r1t3").Model != "of a rule" || w.offered("r1t3") != "new analyze" {
		t.Errorf("fix is gone in turn 3: %+v, offered %q", step, w.offered("r1t3"))
	}
}

// The hook is shown the latest StepCallsMax calls, and all used tools.
func TestHookSeesTheLatestCalls(t *testing.T) {
	t.Parallel()
	w := hooked(t, nil, nil)
	for turn := 1; turn <= 6; turn++ {
		effect := fmt.Sprintf("r1t%d", turn)
		w.prepared(effect+"s", nil)
		if turn == 1 {
			w.ran(effect, "fix")
			continue
		}
		w.called(effect, slices.Repeat([]string{"nosuch"}, session.CallsMax)...)
	}
	step := w.step("r1t7s")
	if len(step.Calls) != session.StepCallsMax || step.Calls[0].Step != 2 || step.Calls[session.StepCallsMax-1].Step != 5 || !slices.Equal(step.Used, []string{"x.fix"}) {
		t.Errorf("%d calls from step %d to %d, used %v", len(step.Calls), step.Calls[0].Step, step.Calls[len(step.Calls)-1].Step, step.Used)
	}
}
