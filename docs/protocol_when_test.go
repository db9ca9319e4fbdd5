package docs_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/refold/refold/planner"
)

// TestWhenTable: every example of what a when can say holds at the moment that
// docs/semantics.md tells of, and what it says there is not does not compile.
func TestWhenTable(t *testing.T) {
	t.Parallel()
	registry, err := planner.Builtin().Registry()
	if err != nil {
		t.Fatal(err)
	}
	moment := planner.StepFacts{
		Step: 2, Used: []string{"host.fs.grep", "host.fs.read_file"}, Last: []string{"read_file", "read_file"},
		Facts: []planner.Fact{{Name: "region", Value: "eu"}, {Name: "seats", Value: "12"}}, Roles: []string{"editor"},
		Context: raw(t, `{"phase":"edit","tries":2,"files":["a.go","b.txt"]}`), Usage: planner.StepUsage{InputTokens: 900, OutputTokens: 200},
	}
	section := sections(t, "docs/semantics.md")["What a when can say"]
	var whens []string
	for _, row := range regexp.MustCompile("(?m)^\\| [^`|]* \\|( `.*) \\|$").FindAllStringSubmatch(section, -1) {
		for _, code := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			whens = append(whens, code[1])
		}
	}
	if len(whens) < 20 {
		t.Fatalf("%d examples: is the table there?", len(whens))
	}
	for _, when := range append(whens, `has(context.phase) && context.phase == "edit"`) {
		if !strings.Contains(section, "`"+when+"`") {
			t.Errorf("docs/semantics.md does not have %s", when)
		}
		steps, bad := planner.CompileSteps(registry, []planner.StepRule{{When: when}})
		if bad != nil {
			t.Errorf("%s: %v", when, bad)
			continue
		}
		if match := steps.Match(moment); match.Rule != 0 {
			t.Errorf("%s: got %+v, want that it holds", when, match)
		}
	}
	for _, when := range []string{
		`timestamp("2026-01-01T00:00:00Z") == timestamp("2026-01-01T00:00:00Z")`, `{} == {}`, `"a".matches("a")`, `type(1) == int`,
		`string(1) == "1"`, `last.map(x, x) == last`, `last + last == last`, `used(fact("tool"))`,
	} {
		if _, bad := planner.CompileSteps(registry, []planner.StepRule{{When: when}}); bad == nil {
			t.Errorf("%s: compiles, and docs/semantics.md says that it is not in the language", when)
		}
	}
	for _, limit := range []int{planner.WhenNodesMax, planner.WhenDepthMax, planner.StepRulesMax, planner.StepsBytesMax >> 10} {
		if !strings.Contains(section, strconv.Itoa(limit)) {
			t.Errorf("docs/semantics.md does not tell the limit %d", limit)
		}
	}
	if cost := strconv.Itoa(planner.WhenCostMax/1000) + ",000"; !strings.Contains(section, cost) {
		t.Errorf("docs/semantics.md does not tell the limit %s", cost)
	}
}
