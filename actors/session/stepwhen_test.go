package session_test

// What step rules see: roles, which tools were used, the last step, facts and
// usage; and what becomes of choices that force, and of conditions that fail.

import (
	"fmt"
	"slices"
	"testing"

	"github.com/refold/refold/actors/session"
)

// Clients can't choose their roles, unless the install policy lets them.
func TestRolesComeFromOperators(t *testing.T) {
	t.Parallel()
	rules := []any{rule(`role("admin")`, map[string]any{"model": "for admins"})}
	request := map[string]any{"input": map[string]any{"text": "x"}, "roles": []any{"user", "admin"}}
	config := map[string]any{"config": map[string]any{"provider": "p", "model": "m"}}
	closed := toldUnder(t, stepInstall(t, rules, config))
	closed.refused(session.RejectNotPermitted, session.DoorIn, session.TypeRunRequested, request)
	closed.must(closed.tell(session.DoorCtl, session.TypeRunRequested, request))
	open := toldUnder(t, stepInstall(t, rules, merged(config, map[string]any{"policy": map[string]any{"ingress": []any{"roles"}}})))
	open.must(open.tell(session.DoorIn, session.TypeRunRequested, request))
	for _, w := range []*told{closed, open} {
		if got := w.generation("r1t1").Model; got != "for admins" || !slices.Equal(w.state.View().Run.Roles, []string{"user", "admin"}) {
			t.Errorf("the model is %q, the roles %v", got, w.state.View().Run.Roles)
		}
		w.answered("r1t1")
		w.run(nil)
		if got := w.generation("r2t1").Model; got != "m" {
			t.Errorf("without roles the model is %q", got)
		}
	}
	many := make([]any, session.RolesMax+1)
	for i := range many {
		many[i] = "r"
	}
	closed.refused(session.RejectLimitExceeded, session.DoorCtl, session.TypeRunRequested, merged(request, map[string]any{"roles": many}))
	closed.refused(session.RejectInvalidData, session.DoorCtl, session.TypeRunRequested, merged(request, map[string]any{"roles": []any{""}}))
	closed.refused(session.RejectLimitExceeded, session.DoorCtl, session.TypeRunRequested, merged(request, map[string]any{"roles": []any{long("r", session.RoleBytesMax+1)}}))
	for _, field := range []string{"steps", "step_hook", "tool_refs"} {
		value := map[string]any{"steps": []any{}, "step_hook": map[string]any{"hook": "h"}, "tool_refs": []any{}}[field]
		data := map[string]any{"input": map[string]any{"text": "x"}, "config": map[string]any{"provider": "p", "model": "m", field: value}}
		closed.refused(session.RejectNotPermitted, session.DoorIn, session.TypeRunRequested, data)
	}
}

// Until analyze has run, no other tool is offered. Refused, hidden or cancelled
// calls unlock nothing; failed ones do, because they ran. Each run begins anew.
func TestProgressiveRevelation(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"analyze", "x.analyze"} {
		w := stepped(t, []any{rule(fmt.Sprintf("!used(%q)", name), map[string]any{"active_tools": []any{"analyze"}})}, nil)
		const locked, all = "analyze", "analyze fix look"
		turn := 0
		offers := func(want string) string {
			t.Helper()
			turn++
			effect := fmt.Sprintf("r%dt%d", w.state.Run.Number, turn)
			if got := w.offered(effect); got != want {
				t.Errorf("%s: offered is %q, want %q", effect, got, want)
			}
			return effect
		}
		w.called(offers(locked), "fix", "nosuch")
		w.calls(offers(locked), []any{map[string]any{"tool_name": "analyze", "arguments": `{"a":"text"}`}})
		effect := offers(locked)
		w.called(effect, "analyze")
		w.must(w.tell(session.DoorTool, session.TypeToolCallSettled, map[string]any{"effect": effect + "c0", "status": "cancelled"}))
		effect = offers(locked)
		w.called(effect, "analyze", "fix")
		w.must(w.tell(session.DoorTool, session.TypeToolCallSettled, map[string]any{"effect": effect + "c0", "status": "failed"}))
		w.ran(offers(all), "look", "fix")
		*w = *w.restored()
		w.ran(offers(all), "look")
		w.answered(offers(all))
		w.run(nil)
		turn = 0
		offers(locked)
	}
}

// `last` is the names of the calls that ran in the step before, as the model called
// them, in order.
func TestLastStep(t *testing.T) {
	t.Parallel()
	w := stepped(t, nil, map[string]any{"steps": []any{
		rule(`size(last) == 0`, map[string]any{"model": "none"}),
		rule(`last == ["look", "analyze", "look"]`, map[string]any{"model": "three"}),
		rule(`"fix" in last`, map[string]any{"model": "fixed"}),
	}})
	if got := w.generation("r1t1").Model; got != "none" {
		t.Errorf("at first: %s", got)
	}
	w.called("r1t1", "look", "nosuch", "analyze", "look")
	for _, i := range []int{0, 2, 3} { // not side by side
		w.settled(fmt.Sprintf("r1t1c%d", i))
	}
	if got := w.generation("r1t2").Model; got != "three" {
		t.Errorf("after three calls: %s", got)
	}
	w.ran("r1t2", "fix")
	if got := w.generation("r1t3").Model; got != "fixed" {
		t.Errorf("after fix: %s", got)
	}
	w.called("r1t3", "nosuch")
	if got := w.generation("r1t4").Model; got != "none" {
		t.Errorf("after a refused call: %s", got)
	}
	w.answered("r1t4")
	w.run(map[string]any{"steps": []any{rule(`size(last) == 0`, map[string]any{"model": "none"})}})
	if got := w.generation("r2t1").Model; got != "none" {
		t.Errorf("in the next run: %s", got)
	}
}

// A run that is forced to call in every turn would never end.
func TestForcedChoiceLastsOneStep(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		choice string
		rules  []any
		want   [3]string
	}{
		"required":                    {"required", nil, [3]string{"required", "", ""}},
		"a tool":                      {"x.fix", nil, [3]string{"fix", "", ""}},
		"auto":                        {"auto", nil, [3]string{"auto", "", ""}},
		"none":                        {"none", nil, [3]string{"none", "none", "none"}},
		"of the second step":          {"", []any{rule("step == 1", map[string]any{"tool_choice": "x.fix"})}, [3]string{"", "fix", ""}},
		"of a rule before the own":    {"required", []any{rule("step == 0", map[string]any{"tool_choice": "look"})}, [3]string{"look", "", ""}},
		"of a rule, and none":         {"none", []any{rule("step == 1", map[string]any{"tool_choice": "required"})}, [3]string{"none", "required", "none"}},
		"none of a rule":              {"required", []any{rule("step == 0", map[string]any{"tool_choice": "none"})}, [3]string{"none", "", ""}},
		"of a rule that always holds": {"", []any{rule("", map[string]any{"tool_choice": "required"})}, [3]string{"required", "required", "required"}},
		"of what is not offered":      {"fix", []any{rule("", map[string]any{"active_tools": []any{"look"}})}, [3]string{"", "", ""}},
		"where nothing is offered":    {"required", []any{rule("step == 0", map[string]any{"active_tools": []any{}})}, [3]string{"", "", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := map[string]any{"tool_choice": c.choice}
			if c.rules != nil {
				config["steps"] = c.rules
			}
			w := stepped(t, nil, config)
			for i, want := range c.want {
				effect := fmt.Sprintf("r1t%d", i+1)
				if got := w.generation(effect).ToolChoice; got != want {
					t.Errorf("%s: got %q, want %q", effect, got, want)
				}
				w.called(effect, "nosuch")
			}
		})
	}
}

// A condition that can't be evaluated, or costs too much, doesn't hold, and that is
// recorded; then the next rule is tried.
func TestConditionsThatFail(t *testing.T) {
	t.Parallel()
	costly := "last.all(a, last.all(b, last.all(c, last.all(d, a == b && c == d))))"
	w := stepped(t, nil, map[string]any{"steps": []any{
		rule("step == 1 && "+costly, nil), rule("context.nosuch == 1", nil), rule("step < 1", map[string]any{"model": "first"}),
		rule(`1 / (step - 1) == 0`, nil), rule("", map[string]any{"model": "last"}),
	}})
	check := func(name, model string, want ...session.ViewRuleFailed) {
		t.Helper()
		if got := w.generation(name).Model; got != model {
			t.Errorf("%s: the model is %q, want %q", name, got, model)
		}
		for _, w := range []*told{w, w.restored()} {
			if got := w.state.View().Turn.Step.Failed; !slices.Equal(got, want) {
				t.Errorf("%s: failed are %+v, want %+v", name, got, want)
			}
		}
	}
	check("r1t1", "first", session.ViewRuleFailed{Rule: 1, Code: "when_failed"})
	w.called("r1t1", slices.Repeat([]string{"look"}, session.CallsMax)...)
	for i := range session.CallsMax {
		w.settled(fmt.Sprintf("r1t1c%d", i))
	}
	check("r1t2", "last",
		session.ViewRuleFailed{Rule: 0, Code: "when_too_costly"}, session.ViewRuleFailed{Rule: 1, Code: "when_failed"},
		session.ViewRuleFailed{Rule: 3, Code: "when_failed"})
}

// A rule sees the facts and the usage at the beginning of the step.
func TestFactsAndUsageInRules(t *testing.T) {
	t.Parallel()
	w := toldUnder(t, stepInstall(t, nil, nil))
	fact := func(value any) {
		w.must(w.tell(session.DoorCtl, session.TypeFactsSet, map[string]any{"facts": map[string]any{"mode": value}}))
	}
	fact("safe")
	w.run(map[string]any{"steps": []any{
		rule(`usage.input_tokens >= 10`, map[string]any{"model": "cheap"}), rule(`fact("mode") == "safe"`, map[string]any{"model": "safe"}),
		rule(`fact("mode") == ""`, map[string]any{"model": "no mode"}),
	}})
	fact("wild") // for the next step
	for i, want := range []string{"safe", "m", "no mode", "cheap"} {
		name := fmt.Sprintf("r1t%d", i+1)
		if got := w.generation(name).Model; got != want {
			t.Errorf("%s: the model is %q, want %q", name, got, want)
		}
		usage := 0
		switch i {
		case 1:
			fact(nil)
		case 2:
			usage = 10
		}
		w.must(w.tell(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{
			"effect": name, "calls": made(1, "nosuch", ""), "usage": map[string]any{"input_tokens": usage},
		}))
	}
}

// A run may go through any number of registries. Used tools that the turn's
// registry doesn't have are forgotten, since no rule can ask for them.
func TestUsedIsBounded(t *testing.T) {
	t.Parallel()
	w := newTold(t)
	w.run(nil)
	w.called("r1t1", "nosuch")
	for turn := 2; turn < 25; turn++ {
		tools, names := []any{stepTool("kept")}, []string{"kept"}
		for i := range session.CallsMax - 1 {
			name := fmt.Sprintf("g%dt%d", turn, i)
			tool := stepTool(name)
			tool["executor"] = map[string]any{"kind": "host_loop", "target": "ide"}
			tools, names = append(tools, tool), append(names, name)
		}
		w.must(w.tell(session.DoorCtl, session.TypeToolRegistrySet, map[string]any{"tools": tools}))
		w.called(fmt.Sprintf("r1t%d", turn), "nosuch") // the registry holds from the next turn on
		turn++
		effect := fmt.Sprintf("r1t%d", turn)
		w.called(effect, names...)
		w.settled(effect + "c0")
		var results []any
		for i := 1; i < session.CallsMax; i++ {
			results = append(results, result(fmt.Sprintf("%sc%d", effect, i), "succeeded", ""))
		}
		w.must(w.tell(session.DoorTool, batchSettled, w.batch(effect, results...)))
		if got := len(w.state.Run.Used); got != session.CallsMax {
			t.Fatalf("%s: %d tools are remembered, want the %d of the registry", effect, got, session.CallsMax)
		}
		if !slices.Contains(w.state.Run.Used, "x.kept") {
			t.Errorf("%s: what is in both registries is forgotten", effect)
		}
	}
}

// A name in used is the tool of that name in the turn's registry, also in a run
// that began under another one.
func TestRulesFollowTheRegistry(t *testing.T) {
	t.Parallel()
	w := stepped(t, nil, map[string]any{"steps": []any{rule(`used("look")`, map[string]any{"model": "looked"})}})
	for i, want := range []string{"m", "m", "looked"} { // the first look is of the tool that is gone
		effect := fmt.Sprintf("r1t%d", i+1)
		if got := w.generation(effect).Model; got != want {
			t.Errorf("%s: the model is %q, want %q", effect, got, want)
		}
		w.called(effect, "look")
		if i == 0 {
			w.must(w.tell(session.DoorCtl, session.TypeToolRegistrySet, map[string]any{"tools": []any{merged(stepTool("look"), map[string]any{"tool_id": "y.look"})}}))
		}
		w.settled(effect + "c0")
	}
}
