package session_test

// Step rules: each sentence of what is said about them. What an outside hook
// decides is in stephook_test.go.

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// stepTool is a tool of the registry that step rules are tested with.
func stepTool(name string) map[string]any {
	return map[string]any{
		"tool_id": "x." + name, "tool_name": name, "retry_safe": true,
		"args_schema": map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "integer"}}},
		"executor":    map[string]any{"kind": "effect", "target": "box"},
	}
}

// stepInstall is an install record with the tools analyze, fix and look, and a
// profile of all three with these rules. More replaces fields of it.
func stepInstall(t testing.TB, rules []any, more map[string]any) *session.Install {
	t.Helper()
	record := map[string]any{
		"v": 1, "rules": 1, "tools": []any{stepTool("analyze"), stepTool("fix"), stepTool("look")}, "default_profile": "all",
		"profiles": []any{map[string]any{"profile": "all", "tools": []any{"analyze", "fix", "look"}, "steps": append([]any{}, rules...)}},
	}
	install, err := session.ParseInstall(asJSON(t, merged(record, more)))
	if err != nil {
		t.Fatal(err)
	}
	return install
}

// stepped is a session under stepInstall whose run has this config.
func stepped(t testing.TB, profileRules []any, config map[string]any) *told {
	t.Helper()
	w := toldUnder(t, stepInstall(t, profileRules, nil))
	w.run(config)
	return w
}

// generation returns the open generation of that name.
func (w *told) generation(name string) session.Generation {
	w.t.Helper()
	var g session.Generation
	if err := codec.Unmarshal(w.open(name).Payload, &g); err != nil {
		w.t.Fatal(err)
	}
	return g
}

// offered returns the names of the tools of an open generation, in order.
func (w *told) offered(name string) string {
	w.t.Helper()
	g := w.generation(name)
	v := w.state.View()
	names := make([]string, len(g.Tools))
	for _, tool := range v.Tools {
		if tool.Offered {
			names[tool.Place-1] = tool.ToolName
		}
	}
	return strings.Join(names, " ")
}

// ran answers a generation with one call of each tool, which all succeed.
func (w *told) ran(effect string, tools ...string) {
	w.t.Helper()
	w.called(effect, tools...)
	for i := range tools {
		w.settled(fmt.Sprintf("%sc%d", effect, i))
	}
}

// rule is a step rule that holds under a condition.
func rule(when string, more map[string]any) map[string]any {
	return merged(map[string]any{"when": when}, more)
}

func always(model string) []any { return []any{rule("", map[string]any{"model": model})} }

// Rules come from the run, else the session, else the profile, as a whole.
func TestStepRulesPrecedence(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	for name, c := range map[string]struct {
		session, run object
		model        string
		from         session.StepSource
	}{
		"the profile's":                         {nil, object{}, "of profile", session.StepFromProfile},
		"the session's":                         {object{"steps": always("of session")}, object{}, "of session", session.StepFromRun},
		"the run's":                             {object{"steps": always("of session")}, object{"steps": always("of run")}, "of run", session.StepFromRun},
		"the run's, without the session's":      {nil, object{"steps": always("of run")}, "of run", session.StepFromRun},
		"a session's without rules":             {object{}, object{}, "of profile", session.StepFromProfile},
		"no rules, given by the run":            {object{"steps": always("of session")}, object{"steps": []any{}}, "m", ""},
		"no rules, given by the session":        {object{"steps": []any{}}, object{}, "m", ""},
		"the session's, and none of it holds":   {object{"steps": []any{rule("false", nil)}}, object{}, "m", ""},
		"a run without config":                  {object{"steps": always("of session")}, nil, "of session", session.StepFromRun},
		"another profile of the run":            {nil, object{"profile": "bare"}, "m", ""},
		"the run's, beside a profile with some": {nil, object{"profile": "all", "steps": always("of run")}, "of run", session.StepFromRun},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := toldUnder(t, stepInstall(t, nil, object{"profiles": []any{
				object{"profile": "all", "tools": []any{"look"}, "steps": always("of profile")}, object{"profile": "bare", "tools": []any{"look"}},
			}}))
			base := object{"provider": "openai", "model": "m"}
			if c.session != nil {
				w.must(w.tell(session.DoorCtl, session.TypeSessionConfigured, merged(base, c.session)))
			}
			request := object{"input": object{"text": "go"}}
			if c.run != nil {
				request["config"] = merged(base, c.run)
			}
			w.must(w.tell(session.DoorCtl, session.TypeRunRequested, request))
			restored := w.restored()
			for _, w := range []*told{w, restored} {
				if got := w.generation("r1t1").Model; got != c.model {
					t.Errorf("the model is %q, want %q", got, c.model)
				}
				var from session.StepSource
				if step := w.state.View().Turn.Step; step != nil {
					from = step.From
				}
				if from != c.from {
					t.Errorf("the rule is from %q, want %q", from, c.from)
				}
				w.ran("r1t1", "look")
				if got := w.generation("r1t2").Model; got != c.model {
					t.Errorf("in turn 2 the model is %q, want %q", got, c.model)
				}
			}
		})
	}
}

// restored is the same session, from a snapshot.
func (w *told) restored() *told {
	w.t.Helper()
	state, err := session.Restore(w.state.Snapshot(), given(w.state.InstallRecord()))
	if err != nil {
		w.t.Fatal(err)
	}
	if state.Hash() != w.state.Hash() {
		w.t.Fatal("restored to other bytes")
	}
	return &told{t: w.t, state: state, seq: w.seq, time: w.time}
}

// The first rule that holds applies, to its step only; context stays for later
// steps. If none holds, the config applies.
func TestStepRulesHoldForOneStep(t *testing.T) {
	t.Parallel()
	w := stepped(t, nil, map[string]any{
		"system": "own", "params": map[string]any{"own": true}, "active_tools": []any{"look", "fix"},
		"steps": []any{
			rule("step == 7", map[string]any{"model": "never"}),
			rule("step == 0", map[string]any{
				"model": "first", "system": "first", "params": map[string]any{"first": 1}, "active_tools": []any{"x.analyze"},
				"tool_choice": "required", "context": map[string]any{"phase": "one", "gone": true},
			}),
			rule("step == 0", map[string]any{"model": "later"}),
			rule(`step == 2 && context.phase == "one"`, map[string]any{"context": map[string]any{"phase": "two"}}),
			rule(`step == 3 && !has(context.gone)`, map[string]any{"active_tools": []any{}}),
			rule(`step == 4`, map[string]any{"context": map[string]any{}}),
		},
	})
	contextOf := func(name string) string {
		t.Helper()
		var c session.ToolCall
		if err := codec.Unmarshal(w.open(name).Payload, &c); err != nil {
			t.Fatal(err)
		}
		if len(c.Context) == 0 {
			return ""
		}
		text, err := codec.ToJSON(c.Context)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for i, want := range []struct{ model, system, params, choice, tools, context, rule string }{
		{"first", "first", `{"first":1}`, "required", "analyze", `{"gone":true,"phase":"one"}`, "1"},
		{"m", "own", `{"own":true}`, "", "look fix", `{"gone":true,"phase":"one"}`, ""},
		{"m", "own", `{"own":true}`, "", "look fix", `{"phase":"two"}`, "3"},
		{"m", "own", `{"own":true}`, "", "", "", "4"},
	} {
		name := fmt.Sprintf("r1t%d", i+1)
		g := w.generation(name)
		params, err := codec.ToJSON(g.Params)
		if err != nil {
			t.Fatal(err)
		}
		if g.Model != want.model || g.System != want.system || string(params) != want.params || g.ToolChoice != want.choice || w.offered(name) != want.tools {
			t.Errorf("%s: model %s, system %s, params %s, choice %s, tools %s; want %+v", name, g.Model, g.System, params, g.ToolChoice, w.offered(name), want)
		}
		step, got := w.state.View().Turn.Step, ""
		if step.Rule != nil {
			got = fmt.Sprint(*step.Rule)
		}
		if got != want.rule || step.Step != i || (step.From == "") != (want.rule == "") {
			t.Errorf("%s: rule %q of %+v, want %q", name, got, step, want.rule)
		}
		if want.tools == "" {
			w.called(name, "nosuch") // goes on at once
			continue
		}
		tool, _, _ := strings.Cut(want.tools, " ")
		w.called(name, tool)
		if got := contextOf(name + "c0"); got != want.context {
			t.Errorf("%sc0: the context is %s, want %s", name, got, want.context)
		}
		w.settled(name + "c0")
	}
	w.called("r1t5", "look")
	if got := contextOf("r1t5c0"); got != "{}" {
		t.Errorf("an empty context replaces the one before: got %s", got)
	}
	w.settled("r1t5c0")
	w.answered("r1t6")
	w.run(nil)
	w.called("r2t1", "look")
	if got := contextOf("r2t1c0"); got != "" {
		t.Errorf("the next run begins with the context %s", got)
	}
}

// An invalid rule rejects the whole event, with the rule's path.
func TestStepRulesAreCheckedWhenTheyCome(t *testing.T) {
	t.Parallel()
	w := stepped(t, nil, nil)
	before := w.state.Config
	good := rule("step == 0", nil)
	refs := []any{codec.Ref{Hash: codec.Sum([]byte("nothing"))}.String()}
	for name, c := range map[string]struct {
		rules []any
		want  session.Rejection
		path  string
	}{
		"no condition":          {[]any{good, rule("step +", nil)}, session.RejectInvalidRule, "[1].when: "},
		"a number":              {[]any{rule("step + 1", nil)}, session.RejectInvalidRule, "[0].when: "},
		"an unknown name":       {[]any{rule("steps == 1", nil)}, session.RejectInvalidRule, "[0].when: "},
		"the time":              {[]any{rule(`timestamp("2026-01-01T00:00:00Z") == timestamp("2026-01-01T00:00:00Z")`, nil)}, session.RejectInvalidRule, "[0].when: "},
		"used of no tool":       {[]any{good, good, rule(`used("nosuch")`, nil)}, session.RejectUnknownTool, "[2].when: "},
		"an unknown tool":       {[]any{good, rule("", map[string]any{"active_tools": []any{"look", "nosuch"}})}, session.RejectUnknownTool, "[1].active_tools[1]: "},
		"an unknown choice":     {[]any{rule("", map[string]any{"tool_choice": "nosuch"})}, session.RejectUnknownTool, "[0].tool_choice: "},
		"an unknown descriptor": {[]any{rule("", map[string]any{"tool_refs": refs})}, session.RejectUnknownTool, "[0].tool_refs[0]: "},
		"both kinds of tools":   {[]any{rule("", map[string]any{"tool_refs": []any{}, "active_tools": []any{}})}, session.RejectInvalidRule, "[0].tool_refs: "},
		"a list as params":      {[]any{rule("", map[string]any{"params": []any{}})}, session.RejectInvalidRule, "[0].params: "},
		"a context of 5 KiB":    {[]any{rule("", map[string]any{"context": map[string]any{"a": long("", 5<<10)}})}, session.RejectLimitExceeded, "[0].context: "},
		"too many rules":        {slices.Repeat([]any{good}, 33), session.RejectLimitExceeded, ": at most 32"},
	} {
		config := map[string]any{"provider": "openai", "model": "m", "steps": c.rules}
		for typ, data := range map[string]any{
			session.TypeRunRequested:      map[string]any{"input": map[string]any{"text": "x"}, "config": config, "submission": "s"},
			session.TypeSessionConfigured: config,
		} {
			if detail := w.refused(c.want, session.DoorCtl, typ, data); !strings.HasPrefix(strings.TrimPrefix(detail, "config."), "steps"+c.path) {
				t.Errorf("%s: %s: got %q, want the path steps%s", name, typ, detail, c.path)
			}
		}
		registry := map[string]any{"tools": []any{stepTool("look"), stepTool("fix")}, "profiles": []any{map[string]any{"profile": "p", "tools": []any{}, "steps": c.rules}}}
		w.refused(session.RejectInvalidRegistry, session.DoorCtl, session.TypeToolRegistrySet, registry)
	}
	if w.state.Config != before || len(w.state.Queue) > 0 || len(w.state.Submissions) > 0 {
		t.Error("a refused event left something")
	}
}
