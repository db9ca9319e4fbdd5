package planner_test

import (
	"strings"
	"testing"

	"github.com/refold/refold/planner"
)

// whenWorst goes through the longest list that a context can hold, once for
// each of its values.
const whenWorst = `context.l.all(a, context.l.all(b, a == b && "x" in context.l))`

// manyRules returns as many rules as there may be, none of which holds.
func manyRules(when string) []planner.StepRule {
	rules := make([]planner.StepRule, planner.StepRulesMax)
	for i := range rules {
		rules[i].When = when
	}
	return rules
}

// BenchmarkMatch matches one simple rule, rules for phases and roles, and lists of
// rules that do not hold: the last shows that no list can block a session for long.
func BenchmarkMatch(b *testing.B) {
	facts := moment(b, `{"step": 3, "used": ["host.fs.read_file"], "last": ["grep", "stat"], "roles": ["editor"],
		"facts": [{"name": "plan", "value": "free"}], "context": {"phase": "write", "l": [`+strings.Repeat("0,", 4_000)+`0]}}`)
	small := facts
	small.Context = raw(b, `{"phase": "write"}`)
	for _, c := range []struct {
		name  string
		rules []planner.StepRule
		facts planner.StepFacts
	}{
		{"empty", []planner.StepRule{{}}, small},
		{"step", []planner.StepRule{{When: `step == 3`}}, small},
		{"used", []planner.StepRule{{When: `used("read_file")`}}, small},
		{"context", []planner.StepRule{{When: `context.phase == "write"`}}, small},
		{"mixed", []planner.StepRule{{When: `role("editor") && step > 2 && "stat" in last && fact("plan") == "free"`}}, small},
		{"none of 32", manyRules(`step == 4`), small},
		{"large context", []planner.StepRule{{When: `context.phase == "write"`}}, facts},
		{"worst", []planner.StepRule{{When: whenWorst}}, facts},
		{"worst of 32", manyRules(whenWorst), facts},
	} {
		steps, bad := planner.CompileSteps(builtin(b), c.rules)
		if bad != nil {
			b.Fatalf("%s: %v", c.name, bad)
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				steps.Match(c.facts)
			}
		})
	}
}

// BenchmarkCompileSteps compiles one rule, and the maximal number of rules.
func BenchmarkCompileSteps(b *testing.B) {
	reg := builtin(b)
	when := `role("editor") && step > 2 && "stat" in last && context.phase == "write" && !used("read_file")`
	for name, rules := range map[string][]planner.StepRule{
		"simple": {{When: `step == 3`}}, "mixed": {{When: when}}, "mixed 32": manyRules(when),
		"longest 32": manyRules(strings.Repeat(`step == 1||`, 90) + `step == 2`),
		"garbage":    {{When: strings.Repeat(`(]`, 500)}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, bad := planner.CompileSteps(reg, rules); (bad != nil) != (name == "garbage") {
					b.Fatal(bad)
				}
			}
		})
	}
}
