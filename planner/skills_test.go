package planner_test

// How the lists of active skills narrow a turn's tools.

import (
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/planner"
)

// skilled is a registry of four tools with the session's own one on top.
func skilled(t *testing.T) *planner.Registry {
	t.Helper()
	spec := func(id string) planner.ToolSpec {
		return planner.ToolSpec{ToolID: "a." + id, ToolName: id, ArgsSchema: []byte{0x80}, Executor: planner.Executor{Kind: planner.ExecutorEffect, Target: "a"}}
	}
	base, err := planner.NewRegistry([]planner.ToolSpec{spec("one"), spec("two"), spec("three"), spec("four")}, nil, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	own := spec("own")
	own.ToolID, own.Availability = "refold.own", []planner.Rule{{Kind: planner.RuleSkills}}
	tools, bad := planner.SessionTools([]planner.ToolSpec{own})
	if bad != nil {
		t.Fatal(bad)
	}
	reg, bad := planner.Compose(base, []planner.Layer{{Name: "refold", Tools: tools}})
	if bad != nil {
		t.Fatal(bad)
	}
	return reg
}

// TestActiveSkillsNarrow: the union of the lists, forced tools and the
// session's own tools are offered; an earlier reason wins over a later one.
func TestActiveSkillsNarrow(t *testing.T) {
	t.Parallel()
	reg := skilled(t)
	facts := planner.Facts{Skills: true}
	narrow := func(lists ...[]string) [][]string { return lists }
	for _, c := range []struct {
		name string
		req  planner.Request
		want string
		why  string // of a.four
	}{
		{"no skill", planner.Request{}, "four one three two own", "offered"},
		{"one list", planner.Request{Narrow: narrow([]string{"a.one", "two", "nosuch"})}, "one two own", "step 2: no active skill allows it"},
		{"the union of two", planner.Request{Narrow: narrow([]string{"one"}, []string{"two"})}, "one two own", "step 2: no active skill allows it"},
		{"an empty list", planner.Request{Narrow: narrow(nil)}, "own", "step 2: no active skill allows it"},
		{"forced", planner.Request{Narrow: narrow([]string{"one"}), Run: planner.Overrides{Force: []string{"four"}}}, "four one own", "offered"},
		{"forced and disabled", planner.Request{Narrow: narrow([]string{"one"}), Run: planner.Overrides{Force: []string{"four"}, Disable: []string{"four"}}}, "one own", "step 3: disabled by the run"},
		{"left out and disabled", planner.Request{Narrow: narrow([]string{"one"}), Run: planner.Overrides{Disable: []string{"four"}}}, "one own", "step 2: no active skill allows it"},
		{"not listed", planner.Request{From: planner.FromStep, Base: []string{"two"}, Narrow: narrow([]string{"one", "two"})}, "two", "step 1: the step's list leaves it out"},
	} {
		set := planner.Select(reg, c.req, facts)
		var got []string
		for _, o := range set.Offers {
			got = append(got, reg.Tool(o.Tool()).ToolName)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %q, want %q", c.name, strings.Join(got, " "), c.want)
		}
		four, _ := reg.Lookup("a.four")
		if why := planner.Why(reg, nil, &set, four); why != c.why {
			t.Errorf("%s: four: got %q, want %q", c.name, why, c.why)
		}
		_, rejection := planner.Check(reg, &set, planner.ObservedCall{ToolName: "four"})
		if (rejection.Code == "") != (c.why == "offered") || !rejection.OK() && rejection.Code != planner.ToolDisabled {
			t.Errorf("%s: a call of four: %v", c.name, rejection)
		}
		var offerable []string
		for _, tool := range planner.Offerable(reg, c.req, facts) {
			offerable = append(offerable, reg.Tool(tool).ToolName)
		}
		if c.req.Narrow != nil && slices.Contains(offerable, "three") {
			t.Errorf("%s: a step may offer %v", c.name, offerable)
		}
	}
	if set := planner.Select(reg, planner.Request{}, planner.Facts{}); len(set.Offers) != 4 {
		t.Errorf("without skills: %d tools are offered, want 4", len(set.Offers))
	}
}

// TestConditionsOnSkillsAndSpaces: names are literals, and unknown ones are false.
func TestConditionsOnSkillsAndSpaces(t *testing.T) {
	t.Parallel()
	reg := skilled(t)
	facts := planner.StepFacts{Skills: []string{"refunds"}, Spaces: []string{"crm"}}
	for when, want := range map[string]bool{
		`skill("refunds")`: true, `skill("refund")`: false, `space("crm")`: true, `space("refunds")`: false, `skill("crm") || space("crm")`: true,
	} {
		steps, bad := planner.CompileSteps(reg, []planner.StepRule{{When: when}})
		if bad != nil {
			t.Fatal(bad)
		}
		if match := steps.Match(facts); (match.Rule == 0) != want || match.Failed != nil {
			t.Errorf("%s: got %+v, want %v", when, match, want)
		}
	}
	for _, when := range []string{`skill(fact("x"))`, `space(last[0])`, `skill("a", "b")`, `skill()`, `skill`, `space(1)`} {
		if _, bad := planner.CompileSteps(reg, []planner.StepRule{{When: when}}); bad == nil {
			t.Errorf("%s compiles", when)
		}
	}
}
