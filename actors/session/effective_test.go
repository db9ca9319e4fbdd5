package session_test

// Which tools a turn is offered, and why not: every combination of lists for
// one tool, and what holds of every turn of every scenario.

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/scenario"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// lists says by which lists tool x is named, and whether it is available.
type lists struct {
	base                              planner.Source
	inBase                            bool
	enableS, enableR, forceS, forceR  bool
	disableS, disableR, fact, granted bool
}

// outcome is what the rules of a session say about x: why it is or isn't
// offered, and the code of a call of it.
func (l lists) outcome() (why string, code planner.Code) {
	listed := l.inBase || l.base == planner.FromProfile && (l.enableS || l.enableR) || l.forceS || l.forceR
	switch {
	case !listed && l.base == planner.FromProfile:
		return `step 1: profile "p" leaves it out, and nothing enables it`, planner.ToolDisabled
	case !listed && l.base == planner.FromStep:
		return "step 1: the step's list leaves it out (rule 0 of the run)", planner.ToolDisabled
	case !listed:
		return "step 1: the run's list leaves it out", planner.ToolDisabled
	case l.disableS:
		return "step 3: disabled by the session", planner.ToolDisabled
	case l.disableR:
		return "step 3: disabled by the run", planner.ToolDisabled
	case !l.fact:
		return `step 4: fact "on" is "yes" does not hold`, planner.ToolUnavailable
	case !l.granted:
		return `step 4: capability "cap" is not granted`, planner.ToolDenied
	}
	return "offered", ""
}

// effectiveInstall is a record with tool x and three others; profile p has x if
// inBase says so.
func effectiveInstall(t *testing.T, inBase, granted bool) *session.Install {
	t.Helper()
	tools := []any{}
	for _, name := range []string{"a", "b", "x", "z"} {
		tool := map[string]any{
			"tool_id": "t." + name, "tool_name": name, "args_schema": map[string]any{"type": "object"},
			"executor": map[string]any{"kind": "effect", "target": "t"},
		}
		if name == "x" {
			tool["availability"] = []any{map[string]any{"kind": "fact", "name": "on", "equals": "yes"}}
			tool["requires"] = []any{"cap"}
		}
		tools = append(tools, tool)
	}
	profile := []string{"z", "b"}
	if inBase {
		profile = []string{"z", "x", "b"}
	}
	record := map[string]any{
		"v": 1, "rules": 1, "tools": tools, "default_profile": "p", "profiles": []any{map[string]any{"profile": "p", "tools": profile}},
	}
	if granted {
		record["capabilities"] = []string{"cap"}
	}
	install, err := session.ParseInstall(asJSON(t, record))
	if err != nil {
		t.Fatal(err)
	}
	return install
}

// offer folds a session to its first turn under l. Names alternate between
// tool_id and tool_name.
func (l lists) offer(t *testing.T, install *session.Install, n int) *told {
	t.Helper()
	names := []string{"x", "t.x"}
	list := func(is bool, i int) []string {
		if is {
			return []string{names[(n+i)%2]}
		}
		return []string{}
	}
	w := toldUnder(t, install)
	if l.fact {
		w.must(w.tell(session.DoorCtl, session.TypeFactsSet, map[string]any{"facts": map[string]any{"on": "yes"}}))
	}
	w.must(w.tell(session.DoorCtl, session.TypeToolOverridesSet, map[string]any{
		"scope": "session", "enable": list(l.enableS, 0), "force": append(list(l.forceS, 1), "a"), "disable": list(l.disableS, 2),
	}))
	config := map[string]any{"enable": list(l.enableR, 1), "force": list(l.forceR, 0), "disable": list(l.disableR, 1)}
	base := []string{"z", "b"}
	if l.inBase {
		base = []string{"z", names[n%2], "b"}
	}
	switch l.base {
	case planner.FromRun:
		config["active_tools"] = base
	case planner.FromStep:
		config["active_tools"] = []string{}
		config["steps"] = []any{map[string]any{"active_tools": base}}
	}
	w.run(config)
	return w
}

// TestEffectiveTools tries every combination of the base's origin, the lists of
// session and run, and availability, for one tool.
func TestEffectiveTools(t *testing.T) {
	t.Parallel()
	for _, granted := range []bool{true, false} {
		for _, inBase := range []bool{true, false} {
			install := effectiveInstall(t, inBase, granted)
			for n := range 1 << 7 {
				bit := func(i int) bool { return n>>i&1 == 1 }
				for _, base := range []planner.Source{planner.FromProfile, planner.FromRun, planner.FromStep} {
					l := lists{
						base: base, inBase: inBase, granted: granted, enableS: bit(0), enableR: bit(1), forceS: bit(2), forceR: bit(3),
						disableS: bit(4), disableR: bit(5), fact: bit(6),
					}
					l.check(t, l.offer(t, install, n))
				}
			}
		}
	}
}

// check checks what the first turn offers, in which order, and what becomes of
// a call of x.
func (l lists) check(t *testing.T, w *told) {
	t.Helper()
	wantWhy, wantCode := l.outcome()
	want := []string{"z", "b", "a"}
	switch {
	case wantCode == "" && l.inBase:
		want = []string{"z", "x", "b", "a"}
	case wantCode == "":
		want = []string{"z", "b", "a", "x"}
	}
	got := make([]string, len(w.state.Turn.Toolset.Offers))
	for _, tool := range w.state.View().Tools {
		if tool.Place > 0 {
			got[tool.Place-1] = tool.ToolName
		}
		if tool.ToolName == "x" && tool.Why != wantWhy {
			t.Errorf("%+v: why is %q, want %q", l, tool.Why, wantWhy)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v: offered are %v, want %v", l, got, want)
	}
	w.calls("r1t1", made(1, "x", "{}"))
	code := ""
	if wantCode != "" {
		code = w.state.Items[len(w.state.Items)-1].Code
	} else {
		w.open("r1t1c0")
	}
	if code != string(wantCode) {
		t.Errorf("%+v: a call has the code %q, want %q", l, code, wantCode)
	}
}

// For every turn of every scenario, and every tool of its registry, the view says
// either that the tool was offered and where, or which step removed it and why. The
// tools that it says were offered are those that the model is shown.
func TestWhy(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenario files: %v", err)
	}
	turns := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := scenario.Parse(string(text))
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, time: 1_000_000}
		for _, step := range file.Steps {
			if _, err := w.do(step.Input); err != nil {
				t.Fatalf("%s:%d: %v", path, step.Line, err)
			}
			if w.state == nil || w.state.Turn == nil {
				continue
			}
			turns++
			if err := whyFault(w.state); err != nil {
				t.Errorf("%s:%d: %v", path, step.Line, err)
			}
		}
	}
	if turns < 100 {
		t.Errorf("%d turns were looked at", turns)
	}
}

// whyFault says what of a view's tools is not as it should be.
func whyFault(s *session.State) error {
	v, offers := s.View(), s.Turn.Toolset.Offers
	if v.Turn.Step != nil && v.Turn.Step.Open {
		if len(v.Tools) > 0 {
			return fmt.Errorf("%d tools are shown before the hook has answered", len(v.Tools))
		}
		return nil
	}
	before, masked := "", 0
	var offered []int
	for _, tool := range v.Tools {
		isOffered := tool.Why == "offered"
		step, isMasked := strings.CutPrefix(tool.Why, "masked: ")
		if isMasked {
			masked++
		}
		isStep := strings.HasPrefix(step, "step 1: ") || strings.HasPrefix(step, "step 2: ") || strings.HasPrefix(step, "step 3: ") || strings.HasPrefix(step, "step 4: ")
		switch {
		case tool.ToolID <= before:
			return fmt.Errorf("%s comes after %s", tool.ToolID, before)
		case isOffered == isStep || tool.Offered != isOffered || tool.Place > 0 != isOffered:
			return fmt.Errorf("%s: offered is %v in place %d: %q", tool.ToolID, tool.Offered, tool.Place, tool.Why)
		}
		before = tool.ToolID
		if isOffered {
			offered = append(offered, tool.Place)
		}
	}
	slices.Sort(offered)
	for i, place := range offered {
		if place != i+1 {
			return fmt.Errorf("the places of those offered are %v", offered)
		}
	}
	if len(offered) != len(offers) {
		return fmt.Errorf("%d tools are said to be offered, the toolset has %d", len(offered), len(offers))
	}
	for _, e := range s.Open() {
		if e.Class != session.ClassLLM {
			continue
		}
		var g session.Generation
		if err := codec.Unmarshal(e.Payload, &g); err != nil {
			return err
		}
		if shown := max(len(g.Defined), len(g.Tools)); shown != len(offered)+masked {
			return fmt.Errorf("%s defines %d tools, the view says that %d are offered and %d masked", e.Name, shown, len(offered), masked)
		}
		if len(g.Tools) != len(offered) || g.Toolset.String() != v.Turn.Toolset {
			return fmt.Errorf("%s shows %d tools of toolset %s, the view %d of %s", e.Name, len(g.Tools), g.Toolset, len(offered), v.Turn.Toolset)
		}
	}
	return nil
}
