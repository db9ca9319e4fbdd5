package e2e_test

// Tools that step rules offer.

import (
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
)

// stepRules reveal a tool a step: what was carried out opens the next one.
func stepRules() list {
	return list{
		object{"when": `used("summarise")`, "active_tools": list{}},
		object{"when": `used("lab.analyse")`, "active_tools": list{"summarise"}, "tool_choice": "required"},
		object{"when": `used("search")`, "active_tools": list{"lab.analyse"}, "context": object{"phase": "analyse"}, "system": "Analyse."},
		object{"active_tools": list{"search"}},
	}
}

// TestStepRulesRevealTools: search, then analyse, then summarise. In its first
// turn the model calls a later tool, and search in a way that is refused, which
// unlocks nothing.
func TestStepRulesRevealTools(t *testing.T) {
	t.Parallel()
	s := startSystem(t, object{
		"v": 1, "rules": 1, "tools": list{tool("summarise", nil), tool("search", object{"args_schema": object{"type": "object", "required": list{"q"}}}), tool("analyse", nil), tool("other", nil)},
		"config": object{"provider": "scripted", "model": "m", "steps": stepRules()},
	})
	s.models(`
turns:
  - shown: {tools: {include: [search], exclude: [analyse, summarise, other]}}
    calls: [{tool: search}, {tool: analyse}, {tool: summarise}]
  - shown:
      tools: {include: [search], exclude: [analyse, summarise, other]}
      results: [{error: true, text: invalid_arguments}, {error: true, text: not offered}, {error: true, text: not offered}]
    calls: [{tool: search, arguments: {q: it}}]
  - shown:
      system: Analyse.
      tools: {include: [analyse], exclude: [search, summarise, other]}
      results: [{error: false, text: done}]
    calls: [{tool: analyse}]
  - shown: {tools: {include: [summarise], exclude: [search, analyse, other]}}
    calls: [{tool: summarise}]
  - shown: {tools: {exclude: [search, analyse, summarise, other]}}
    say: All is said.
`, "scripted")
	l := &lab{}
	s.tools(l)
	s.run(session.DoorIn, "s1", "go", nil)
	s.wantEnd("s1", 1, session.Completed, "")
	s.wantOffered("s1", "search", "search", "analyse", "summarise", "")
	s.wantCalls("s1", "search", "analyse", "summarise")
	if got := l.ran(); got != "search analyse summarise" {
		t.Fatalf("ran: %s", got)
	}
	var choices []string
	for _, g := range s.generations("s1") {
		choices = append(choices, g.ToolChoice)
	}
	if got := strings.Join(choices, ","); got != ",,,required," {
		t.Errorf("tool_choice of the turns: %q", got)
	}
	// What a rule carries on is shown to the tools from that step on.
	for i, want := range []string{"", `{"phase":"analyse"}`, `{"phase":"analyse"}`} {
		if got := string(l.did()[i].Context); got != want {
			t.Errorf("call %d was shown the context %q, want %q", i, got, want)
		}
	}
	verifyAll(t, s.url)
}
