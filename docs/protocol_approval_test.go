package docs_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// approvalTools is a registry with the tools that docs/semantics.md speaks of.
func approvalTools(t *testing.T) *planner.Registry {
	t.Helper()
	tools := planner.Builtin().Tools
	for _, name := range []string{"pay", "refund"} {
		tools = append(tools, planner.ToolSpec{
			ArgsSchema: raw(t, `{"type":"object"}`), Executor: planner.Executor{Kind: planner.ExecutorEffect, Target: "shop"}, ToolID: "shop." + name, ToolName: name,
		})
	}
	registry, err := planner.NewRegistry(tools, nil, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return registry
}

// decide says what a policy makes of a call of a tool.
func decide(t *testing.T, registry *planner.Registry, rules []planner.ApprovalRule, tool string, facts planner.ApprovalFacts) planner.Decision {
	t.Helper()
	policy, bad := planner.CompileApprovals(registry, rules)
	if bad != nil {
		t.Errorf("%+v: %v", rules, bad)
		return ""
	}
	index, ok := registry.Lookup(tool)
	if !ok {
		t.Fatalf("there is no tool %s", tool)
	}
	return policy.Decide(registry, index, facts)
}

// TestConditionTable: every example of what a condition can say holds for the
// call that docs/semantics.md tells of.
func TestConditionTable(t *testing.T) {
	t.Parallel()
	section := sections(t, "docs/semantics.md")["What a condition can say"]
	call := regexp.MustCompile("calls `pay` with `([^`]*)`").FindStringSubmatch(section)
	if call == nil {
		t.Fatal("docs/semantics.md does not say which call")
	}
	moment := planner.ApprovalFacts{Arguments: call[1], StepFacts: planner.StepFacts{
		Step: 2, Used: []string{"host.fs.grep", "host.fs.read_file"}, Facts: []planner.Fact{{Name: "region", Value: "eu"}}, Roles: []string{"editor"},
		Context: raw(t, `{"phase":"buy"}`), Usage: planner.StepUsage{InputTokens: 900, OutputTokens: 200},
	}}
	registry := approvalTools(t)
	var conditions []string
	for _, row := range regexp.MustCompile("(?m)^\\| [^`|]* \\|( `.*) \\|$").FindAllStringSubmatch(section, -1) {
		for _, code := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			conditions = append(conditions, strings.ReplaceAll(code[1], `\|`, "|"))
		}
	}
	if len(conditions) < 15 {
		t.Fatalf("%d examples: is the table there?", len(conditions))
	}
	for _, when := range conditions {
		// It holds, and its negation doesn't. What can't be evaluated would ask both times.
		for decision, not := range map[planner.Decision]string{planner.Allow: "!(" + when + ")", planner.Deny: when} {
			rules := []planner.ApprovalRule{{Decision: planner.Ask, When: not}, {Decision: decision}}
			want := decision
			if not == when {
				want = planner.Ask
			}
			if got := decide(t, registry, rules, "pay", moment); got != want {
				t.Errorf("%s: got %s, want %s: it holds", not, got, want)
			}
		}
	}
	for decision, want := range map[planner.Decision]planner.Decision{planner.Allow: planner.Ask, planner.Ask: planner.Ask, planner.Deny: planner.Deny} {
		for _, when := range []string{`args.note == ""`, `args.to > 5`, `args.files[3] == ""`} {
			rules := []planner.ApprovalRule{{Decision: decision, When: when}, {Decision: planner.Allow}}
			if got := decide(t, registry, rules, "pay", moment); got != want {
				t.Errorf("%s, which can't be evaluated, in a rule that says %s: got %s, want %s", when, decision, got, want)
			}
		}
	}
	if _, bad := planner.CompileApprovals(registry, []planner.ApprovalRule{{Decision: planner.Ask, When: "size(last) > 0"}}); bad == nil {
		t.Error("last was taken, and docs/semantics.md says that a call has none")
	}
}

// TestPolicyExample: the policy that docs/semantics.md shows does what it says.
func TestPolicyExample(t *testing.T) {
	t.Parallel()
	var rules []planner.ApprovalRule
	for _, b := range fenced(t, "docs/semantics.md", "json") {
		if b.tag != "approval" {
			continue
		}
		packed, err := codec.FromJSON([]byte(b.text))
		if err != nil {
			t.Fatal(err)
		}
		if err := codec.Unmarshal(packed, &rules); err != nil {
			t.Fatal(err)
		}
		var each []json.RawMessage
		if err := json.Unmarshal([]byte(b.text), &each); err != nil {
			t.Fatal(err)
		}
		s := readSchemas(t)
		for _, rule := range each {
			if err := s.check(partsDir+"/ApprovalRule", rule); err != nil {
				t.Error(err)
			}
		}
	}
	if len(rules) == 0 {
		t.Fatal("docs/semantics.md shows no policy")
	}
	registry := approvalTools(t)
	for _, c := range []struct {
		tool, arguments string
		roles           []string
		want            planner.Decision
	}{
		{"pay", `{"sum":20}`, []string{"editor"}, planner.Allow},
		{"pay", `{"sum":20}`, nil, planner.Ask},
		{"pay", `{"sum":150}`, []string{"editor"}, planner.Ask},
		{"shell", `{"command":"rm -rf /"}`, []string{"editor"}, planner.Deny},
		{"shell", `{"command":"ls"}`, []string{"editor"}, planner.Ask},
		{"write_file", `{"path":"main.go"}`, nil, planner.Allow},
		{"write_file", `{"path":".git/config"}`, nil, planner.Ask},
		{"grep", `{"pattern":"x"}`, nil, planner.Allow},
		{"open_session", `{}`, nil, planner.Allow},
	} {
		facts := planner.ApprovalFacts{Arguments: c.arguments, StepFacts: planner.StepFacts{Roles: c.roles}}
		if got := decide(t, registry, rules, c.tool, facts); got != c.want {
			t.Errorf("%s %s for %v: got %s, want %s", c.tool, c.arguments, c.roles, got, c.want)
		}
	}
}
