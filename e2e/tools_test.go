package e2e_test

// Offered tools, and calls of others: step rules, direct references, fifty
// turns of refused calls.

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
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

// refused are calls of tools that may not run, as refusalTools has them, with
// the code that their results tell of.
//
// A tool without an executor can't be in a registry (planner/unbound_test.go),
// so `tool_unbound` does not arise from outside: what is near it, a tool whose
// executor nobody serves, is offered, and waits for its deadline.
var refused = []struct{ name, arguments, code string }{
	{"hidden", "{}", "tool_disabled"},
	{"off", "{}", "tool_disabled"},
	{"off_for_all", "{}", "tool_disabled"},
	{"closed", "{}", "tool_unavailable"},
	{"needs_host", "{}", "tool_unavailable"},
	{"locked", "{}", "tool_denied"},
	{"unknown", "{}", "tool_unknown"},
	{"opne", `{"q":"a"}`, "tool_unknown"},
	{"OPEN", `{"q":"a"}`, "tool_unknown"},
	{"lab.open", `{"q":"a"}`, "tool_unknown"},
	{"open ", `{"q":"a"}`, "tool_unknown"},
	{"open", `{"q":1}`, "invalid_arguments"},
	{"open", `{"q":"a"`, "invalid_arguments"},
	{"open", `{}`, "invalid_arguments"},
}

// refusalRecord offers one tool, `open`; all others are kept back, each by
// something else.
func refusalRecord() object {
	return object{
		"v": 1, "rules": 1,
		"tools": list{
			tool("open", object{"args_schema": object{"type": "object", "properties": object{"q": object{"type": "string"}}, "required": list{"q"}}}),
			tool("hidden", nil), tool("off", nil), tool("off_for_all", nil), tool("locked", object{"requires": list{"pay"}}),
			tool("closed", object{"availability": list{object{"kind": "fact", "name": "door", "equals": "open"}}}),
			tool("needs_host", object{"availability": list{object{"kind": "host_session_ready"}}}),
		},
		"profiles":        list{object{"profile": "p", "tools": list{"open", "off", "off_for_all", "locked", "closed", "needs_host"}}},
		"default_profile": "p", "capabilities": list{"read"},
	}
}

// TestFiftyTurnsOfRefusedCalls: nothing runs, every call has its result, and
// the run ends with its turns.
func TestFiftyTurnsOfRefusedCalls(t *testing.T) {
	t.Parallel()
	const turns = 50
	s := startSystem(t, refusalRecord())
	ledger := filepath.Join(t.TempDir(), "ledger.jsonl")
	var calls, results strings.Builder
	for _, c := range refused {
		calls.WriteString("      - {tool: " + jsonText(t, c.name) + ", arguments: " + jsonText(t, c.arguments) + "}\n")
		results.WriteString("        - {tool: " + jsonText(t, c.name) + ", error: true, text: " + c.code + "}\n")
	}
	script := writeFile(t, "script.yaml", "rules:\n  - shown: {last: user, tools: {include: [open]}}\n    calls:\n"+calls.String()+
		"  - shown:\n      tools: {include: [open], exclude: [hidden, \"off\", off_for_all, locked, closed, needs_host]}\n      results:\n"+results.String()+"    calls:\n"+calls.String())
	startDaemon(t, "bridge", "--nats", s.url, "--model", "scripted:"+script, "--tools", "lab=recorded:"+killRecording, "--ledger", ledger)
	s.say(session.DoorCtl, "s1", session.TypeToolOverridesSet, object{"scope": "session", "disable": list{"off_for_all"}})
	s.run(session.DoorIn, "s1", "go", object{"provider": "scripted", "model": "m", "disable": list{"lab.off"}, "turns_max": turns})
	s.wantEnd("s1", 1, session.Failed, "turns_max")
	s.wantCalls("s1")
	if l := lines(t, ledger); len(l) > 0 {
		t.Errorf("the tools' bridge carried out %d calls, the first: %s", len(l), l[0])
	}
	all := s.generations("s1")
	if len(all) != turns {
		t.Fatalf("%d turns were asked, want %d", len(all), turns)
	}
	for i, g := range all {
		if got := s.offered(g); got != "open" {
			t.Errorf("turn %d was offered %q", i+1, got)
		}
		// One input, and for every turn before one answer and its results.
		if want := 1 + i*(1+len(refused)); len(g.Items.Seqs) != want {
			t.Errorf("turn %d is shown %d items, want %d", i+1, len(g.Items.Seqs), want)
		}
	}
	for i, it := range shownItems(t, all[turns-1])[2 : 2+len(refused)] {
		if it.Role != session.RoleTool || it.Call != i || it.Code != refused[i].code {
			t.Errorf("result %d is %+v, want %s", i, it, refused[i].code)
		}
	}
	verifyAll(t, s.url)
}

// TestDirectReferences: a run that names descriptors is offered exactly those,
// with an alternate of a tool, without profile or workspace.
func TestDirectReferences(t *testing.T) {
	t.Parallel()
	alternate := object{"tool_name": "find", "description": "Finds.", "args_schema": object{"type": "object", "required": list{"what"}}}
	s := startSystem(t, object{
		"v": 1, "rules": 1,
		"tools":    list{tool("search", object{"alternates": list{alternate}}), tool("note", nil), tool("other", nil)},
		"profiles": list{object{"profile": "p", "tools": list{"other"}}}, "default_profile": "p",
		"policy": object{"ingress": list{"provider", "model", "tool_refs"}, "ingress_tools": "replace"},
	})
	s.models(`
turns:
  - shown: {tools: {include: [find, note], exclude: [search, other]}}
    calls: [{tool: find, arguments: {what: it}}, {tool: note}, {tool: find}, {tool: other}]
  - shown:
      results: [{error: false, text: found}, {error: false, text: done}, {error: true, text: invalid_arguments}, {error: true, text: tool_disabled}]
    say: Done.
`, "scripted")
	l := &lab{outputs: map[string]string{"find": "found"}}
	s.tools(l)
	// A reference is the hash of the descriptor's JSON, its keys sorted.
	ref := func(text string) string { return codec.RefOf([]byte(text)).String() }
	refs := list{
		ref(`{"args_schema":{"required":["what"],"type":"object"},"description":"Finds.","tool_name":"find"}`),
		ref(`{"args_schema":{"type":"object"},"description":"The tool note.","tool_name":"note"}`),
	}
	config := object{"provider": "scripted", "model": "m", "tool_refs": refs}
	heard := listen(t, s.nc, "refold.out.s1")
	for _, c := range []struct {
		sid  string
		door session.Door
	}{{"s1", session.DoorCtl}, {"s2", session.DoorIn}} {
		s.run(c.door, c.sid, "go", config)
		s.wantEnd(c.sid, 1, session.Completed, "")
		s.wantOffered(c.sid, "find note", "find note")
		s.wantCalls(c.sid, "find", "note")
	}
	if got := l.ran(); strings.Count(got, "find") != 2 || strings.Count(got, "note") != 2 || strings.Contains(got, "other") {
		t.Errorf("ran: %s", got)
	}
	for _, c := range l.did() {
		if c.ToolName == "find" && c.ToolID != "lab.search" {
			t.Errorf("find is carried out as %s", c.ToolID)
		}
	}
	// What no descriptor of the registry is, is refused, and changes nothing.
	s.run(session.DoorCtl, "s1", "go", object{"provider": "scripted", "model": "m", "tool_refs": list{ref("{}")}})
	s.run(session.DoorCtl, "s1", "go", object{"provider": "scripted", "model": "m", "tool_refs": refs, "active_tools": list{"other"}})
	s.run(session.DoorIn, "s1", "go", object{"provider": "scripted", "model": "m", "disable": list{"note"}})
	s.wantRejections(heard, "RunRequested unknown_tool", "RunRequested invalid_data", "RunRequested not_permitted")
	s.wantOffered("s1", "find note", "find note")
	verifyAll(t, s.url)
}
