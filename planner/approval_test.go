package planner_test

// Approval policies: which rule decides about a call, what a condition sees of
// it, and what happens if a condition can't be evaluated.

import (
	"strings"
	"testing"

	"github.com/refold/refold/planner"
)

// approvalRegistry has tools that never ask, always ask, and ask by a
// condition of their own.
func approvalRegistry(t testing.TB) *planner.Registry {
	t.Helper()
	var def planner.Defaults
	decode(t, `{"tools": [
		{"tool_id": "shop.look", "tool_name": "look", "args_schema": {}, "executor": {"kind": "effect", "target": "x"}},
		{"tool_id": "shop.pay", "tool_name": "pay", "args_schema": {}, "executor": {"kind": "effect", "target": "x"}, "approval": "always",
		 "alternates": [{"tool_name": "wire", "args_schema": {}}]},
		{"tool_id": "shop.buy", "tool_name": "buy", "args_schema": {}, "executor": {"kind": "effect", "target": "x"}, "approval": "args.sum > 10"}
	]}`, &def)
	reg, err := def.Registry()
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

// policy compiles rules given as JSON.
func policy(t testing.TB, reg *planner.Registry, rules string) (*planner.Approvals, *planner.RuleError) {
	t.Helper()
	var given struct {
		Rules []planner.ApprovalRule `msgpack:"rules"`
	}
	decode(t, `{"rules":`+rules+`}`, &given)
	return planner.CompileApprovals(reg, given.Rules)
}

// boss is what the conditions of these tests see of a run.
func boss(t testing.TB) planner.StepFacts {
	t.Helper()
	return planner.StepFacts{
		Step: 2, Used: []string{"shop.look"}, Roles: []string{"boss"}, Facts: []planner.Fact{{Name: "region", Value: "eu"}},
		Context: raw(t, `{"phase":"buy"}`), Usage: planner.StepUsage{InputTokens: 900, OutputTokens: 200},
	}
}

// decided is a call, and what a policy says of it.
type decided struct {
	name, rules, tool, arguments string
	want                         planner.Decision
}

// checkDecided decides over the call of each case.
func checkDecided(t *testing.T, cases []decided) {
	t.Helper()
	reg := approvalRegistry(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, bad := policy(t, reg, c.rules)
			if bad != nil {
				t.Fatal(bad)
			}
			tool, ok := reg.Lookup(c.tool)
			if !ok {
				t.Fatalf("no tool %s", c.tool)
			}
			facts := planner.ApprovalFacts{StepFacts: boss(t), Arguments: c.arguments}
			got := a.Decide(reg, tool, facts)
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if a.AllowsAll(reg, tool) && got != planner.Allow {
				t.Errorf("AllowsAll says that every call may run, Decide says %s", got)
			}
			if again := a.Decide(reg, tool, facts); again != got {
				t.Errorf("asked again it says %s, and said %s", again, got)
			}
		})
	}
}

// TestPolicyDecides: the first matching rule decides, or else the tool.
func TestPolicyDecides(t *testing.T) {
	t.Parallel()
	const ladder = `[{"decision":"deny","tools":["pay"],"when":"args.to == 'bob'"},{"decision":"allow","tools":["shop.pay"],"when":"args.sum < 10"},
		{"decision":"ask","when":"args.sum >= 1000"},{"decision":"allow","tools":["buy"],"when":"role('clerk')"}]`
	checkDecided(t, []decided{
		{"no rules, the tool never asks", `[]`, "look", `{}`, planner.Allow},
		{"no rules, the tool always asks", `[]`, "pay", `{}`, planner.Ask},
		{"no rules, the tool's condition holds", `[]`, "buy", `{"sum":11}`, planner.Ask},
		{"no rules, the tool's condition doesn't hold", `[]`, "buy", `{"sum":10}`, planner.Allow},
		{"no rules, the tool's condition can't be evaluated", `[]`, "buy", `{}`, planner.Ask},
		{"no rules, the tool's condition is about another type", `[]`, "buy", `{"sum":"11"}`, planner.Ask},

		{"the first of two that match", ladder, "pay", `{"to":"bob","sum":5}`, planner.Deny},
		{"the second, by the other name", ladder, "pay", `{"to":"ann","sum":5}`, planner.Allow},
		{"a rule about every tool", ladder, "look", `{"sum":1000}`, planner.Ask},
		{"a rule about every tool, before the tool's own", ladder, "buy", `{"sum":5000}`, planner.Ask},
		{"none, so the tool's own asks", ladder, "pay", `{"to":"ann","sum":50}`, planner.Ask},
		{"none, so the tool's own allows", ladder, "buy", `{"sum":3}`, planner.Allow},
		{"a role that the run doesn't have", ladder, "buy", `{"sum":30}`, planner.Ask},

		{"deny without a condition", `[{"decision":"deny","tools":["look"]}]`, "look", `{}`, planner.Deny},
		{"a later allow doesn't undo a deny", `[{"decision":"deny"},{"decision":"allow"}]`, "look", `{}`, planner.Deny},
		{"a later deny doesn't undo an allow", `[{"decision":"allow"},{"decision":"deny"}]`, "pay", `{}`, planner.Allow},
		{"allow overrules the tool", `[{"decision":"allow","tools":["pay"]}]`, "pay", `{}`, planner.Allow},
		{"ask overrules the tool", `[{"decision":"ask","tools":["look"]}]`, "look", `{}`, planner.Ask},
		{"another tool's rule", `[{"decision":"deny","tools":["look","stranger"]}]`, "buy", `{"sum":1}`, planner.Allow},
		{"one of several names", `[{"decision":"deny","tools":["stranger","shop.buy"]}]`, "buy", `{"sum":1}`, planner.Deny},
		{"the name of an alternate", `[{"decision":"deny","tools":["wire"]}]`, "pay", `{}`, planner.Deny},
		{"a name's beginning is no name", `[{"decision":"deny","tools":["shop"]}]`, "look", `{}`, planner.Allow},
		{"an empty list of tools is all", `[{"decision":"deny","tools":[]}]`, "look", `{}`, planner.Deny},
	})
}

// TestPolicyFailsClosed: if the condition of a rule can't be evaluated, the
// call needs an approval; if the rule denies, it is denied.
func TestPolicyFailsClosed(t *testing.T) {
	t.Parallel()
	checkDecided(t, []decided{
		{"a missing member, to allow", `[{"decision":"allow","when":"args.sum < 10"}]`, "look", `{}`, planner.Ask},
		{"a missing member, to ask", `[{"decision":"ask","when":"args.sum < 10"}]`, "look", `{}`, planner.Ask},
		{"a missing member, to deny", `[{"decision":"deny","when":"args.sum < 10"}]`, "look", `{}`, planner.Deny},
		{"what fails ends the search", `[{"decision":"allow","when":"args.sum < 10"},{"decision":"deny"}]`, "look", `{}`, planner.Ask},
		{"what fails about another tool doesn't", `[{"decision":"deny","tools":["pay"],"when":"args.sum < 10"}]`, "look", `{}`, planner.Allow},
		{"neither true nor false", `[{"decision":"deny","when":"args.is"}]`, "look", `{"is":1}`, planner.Deny},
		{"too costly, to allow", `[{"decision":"allow","when":"args.l.all(a, args.l.all(b, args.l.all(c, a + b + c > 0)))"}]`, "look",
			`{"l":[1` + strings.Repeat(",1", 99) + `]}`, planner.Ask},
		{"too costly, to deny", `[{"decision":"deny","when":"args.l.exists(a, args.l.exists(b, args.l.exists(c, a + b + c > 9)))"}]`, "look",
			`{"l":[1` + strings.Repeat(",1", 99) + `]}`, planner.Deny},
		{"arguments that are no JSON are none", `[{"decision":"deny","when":"has(args.a)"}]`, "look", `{"a":`, planner.Allow},
	})
}

// TestNilPolicyHasNoRules: only tools that never ask are allowed in general.
func TestNilPolicyHasNoRules(t *testing.T) {
	t.Parallel()
	reg := approvalRegistry(t)
	some, bad := policy(t, reg, `[{"decision":"allow"}]`)
	if bad != nil {
		t.Fatal(bad)
	}
	for name, want := range map[string]bool{"look": true, "pay": false, "buy": false} {
		tool, _ := reg.Lookup(name)
		if got := (*planner.Approvals)(nil).AllowsAll(reg, tool); got != want {
			t.Errorf("%s: every call may run: got %v, want %v", name, got, want)
		}
		if some.AllowsAll(reg, tool) {
			t.Errorf("%s: every call may run, and there are rules to look at", name)
		}
	}
	pay, _ := reg.Lookup("pay")
	if got := (*planner.Approvals)(nil).Decide(reg, pay, planner.ApprovalFacts{Arguments: "{}"}); got != planner.Ask {
		t.Errorf("got %s, want the tool's own ask", got)
	}
}

// TestApprovalConditions: what a condition sees of the call and the run. Each
// condition holds, and its negation does not.
func TestApprovalConditions(t *testing.T) {
	t.Parallel()
	reg := approvalRegistry(t)
	pay, _ := reg.Lookup("pay")
	facts := planner.ApprovalFacts{StepFacts: boss(t), Arguments: `{"to":"ann","sum":150,"rate":2.5,"large":12345678901234567890,
		"of":{"sku":"chair","n":2},"files":["/tmp/a","/etc/hosts"],"on":true,"none":null,"ümlaut":"é","a b":1}`}
	for _, when := range []string{
		`args.sum > 100`, `args.sum == 150`, `args.sum == 150.0`, `args.rate > 2`, `args.rate == 2.5`, `args.large > 1000`, `args.of.sku == "chair"`,
		`args.of.n * 2 == 4`, `args["of"]["sku"] == "chair"`, `args["a b"] == 1`, `args["ümlaut"] == "é"`, `has(args.to)`, `!has(args.note)`,
		`"to" in args`, `!("note" in args)`, `has(args.of.sku)`, `args.on`, `args.none == null`, `has(args.none)`, `args.to.startsWith("a")`,
		`args.files.exists(f, f.startsWith("/etc/"))`, `size(args.files) == 2`, `args.files[1] == "/etc/hosts"`, `"/tmp/a" in args.files`,
		`args.of == args.of`, `args.of != args.files`,
		`tool == "shop.pay"`, `tool in ["shop.pay", "shop.refund"]`, `tool.startsWith("shop.")`,
		`step == 2`, `used("look")`, `used("shop.look")`, `!used("wire")`, `role("boss")`, `fact("region") == "eu"`, `fact("nothing") == ""`,
		`context.phase == "buy"`, `usage.output_tokens < 1000`, `usage.input_tokens == 900`,
		`args.sum > 1000 || fact("region") == "eu" && role("boss")`, `true || args.note == 1`,
	} {
		for _, c := range []struct {
			when string
			want planner.Decision
		}{{when, planner.Deny}, {"!(" + when + ")", planner.Ask}} { // ask is the tool's own
			a, bad := planner.CompileApprovals(reg, []planner.ApprovalRule{{Decision: planner.Deny, When: c.when}})
			if bad != nil {
				t.Errorf("%s: %v", c.when, bad)
				continue
			}
			if got := a.Decide(reg, pay, facts); got != c.want {
				t.Errorf("%s: got %s, want %s", c.when, got, c.want)
			}
		}
	}
}

// TestConditionSeesToolID: a condition sees the tool_id, whatever name the model used.
func TestConditionSeesToolID(t *testing.T) {
	t.Parallel()
	reg := approvalRegistry(t)
	a, bad := policy(t, reg, `[{"decision":"deny","when":"tool == 'pay' || tool == 'wire'"},{"decision":"allow","when":"tool == 'shop.pay'"}]`)
	if bad != nil {
		t.Fatal(bad)
	}
	tool, _ := reg.Lookup("wire")
	if got := a.Decide(reg, tool, planner.ApprovalFacts{Arguments: "{}"}); got != planner.Allow {
		t.Errorf("got %s, want allow", got)
	}
}

// TestPolicyReportsItsFirstFault: with its path.
func TestPolicyReportsItsFirstFault(t *testing.T) {
	t.Parallel()
	reg := approvalRegistry(t)
	many := func(n int, rule planner.ApprovalRule) []planner.ApprovalRule {
		rules := make([]planner.ApprovalRule, n)
		for i := range rules {
			rules[i] = rule
		}
		return rules
	}
	names := func(n int) []string { return strings.Fields(strings.Repeat("look ", n)) }
	allow := planner.ApprovalRule{Decision: planner.Allow}
	when := func(text string) []planner.ApprovalRule {
		return []planner.ApprovalRule{allow, {Decision: planner.Ask, When: text}}
	}
	for name, c := range map[string]struct {
		rules             []planner.ApprovalRule
		path              string // "-": there is no fault
		unknown, tooLarge bool
	}{
		"none":                            {nil, "-", false, false},
		"as many rules as there may be":   {many(planner.ApprovalRulesMax, allow), "-", false, false},
		"one rule more":                   {many(planner.ApprovalRulesMax+1, allow), "", false, true},
		"no decision":                     {[]planner.ApprovalRule{allow, {}}, "[1].decision", false, false},
		"another decision":                {[]planner.ApprovalRule{{Decision: "maybe"}}, "[0].decision", false, false},
		"as many tools as there may be":   {[]planner.ApprovalRule{{Decision: planner.Ask, Tools: names(planner.StepToolsMax)}}, "-", false, false},
		"one tool more":                   {[]planner.ApprovalRule{{Decision: planner.Ask, Tools: names(planner.StepToolsMax + 1)}}, "[0].tools", false, true},
		"a tool that nobody has":          {[]planner.ApprovalRule{{Decision: planner.Deny, Tools: []string{"stranger"}}}, "-", false, false},
		"what is no name":                 {[]planner.ApprovalRule{{Decision: planner.Deny, Tools: []string{"look", "a b"}}}, "[0].tools[1]", false, false},
		"an empty name":                   {[]planner.ApprovalRule{{Decision: planner.Deny, Tools: []string{""}}}, "[0].tools[0]", false, false},
		"the longest when":                {when("true" + strings.Repeat(" ", planner.WhenBytesMax-4)), "-", false, false},
		"a longer when":                   {when("true" + strings.Repeat(" ", planner.WhenBytesMax-3)), "[1].when", false, true},
		"a when that doesn't compile":     {when("args."), "[1].when", false, false},
		"a when that is a number":         {when("step + 1"), "[1].when", false, false},
		"a name that there is not":        {when("arguments.to == 1"), "[1].when", false, false},
		"a tool that used doesn't know":   {when(`used("stranger")`), "[1].when", true, false},
		"a when that depends on the time": {when(`timestamp("2024-01-01T00:00:00Z") < timestamp("2024-01-01T00:00:00Z")`), "[1].when", false, false},
		"nested too deep":                 {when(strings.Repeat("(", planner.WhenDepthMax+1) + "true" + strings.Repeat(")", planner.WhenDepthMax+1)), "[1].when", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, bad := planner.CompileApprovals(reg, c.rules)
			switch {
			case c.path == "-":
				if bad != nil {
					t.Errorf("got %v, want no fault", bad)
				}
			case bad == nil:
				t.Errorf("got no fault, want one at %q", c.path)
			case bad.Path != c.path || bad.Unknown != c.unknown || bad.TooLarge != c.tooLarge || bad.Detail == "":
				t.Errorf("got %+v, want a fault at %q, unknown %v, too large %v", bad, c.path, c.unknown, c.tooLarge)
			case len(bad.Detail) > planner.DetailBytesMax:
				t.Errorf("the detail has %d bytes", len(bad.Detail))
			}
		})
	}
}

// TestToolConditionIsCheckedWithTheRegistry: a tool's own condition is checked with the registry.
func TestToolConditionIsCheckedWithTheRegistry(t *testing.T) {
	t.Parallel()
	for approval, want := range map[string]string{
		"": "", "never": "", "always": "", "args.sum > 1": "", `used("tool.b")`: "",
		"maybe":            "tools[1].approval",
		"args.":            "tools[1].approval",
		"step":             "tools[1].approval",
		`used("stranger")`: "tools[1].approval",
		strings.Repeat(" ", planner.WhenBytesMax-3) + "true": "tools[1].approval",
	} {
		first, second := minimal(t), minimal(t)
		second.ToolID, second.ToolName, second.Approval = "tool.b", "tool_b", approval
		_, err := planner.NewRegistry([]planner.ToolSpec{first, second}, nil, "", nil)
		got := ""
		if err != nil {
			got, _, _ = strings.Cut(err.Error(), ": ")
		}
		if got != want {
			t.Errorf("approval %.40q: got %v, want a fault at %q", approval, err, want)
		}
	}
}

// TestEditsKeepThePlan: a call that may wait for a person is planned with its
// bare key, whatever its arguments are; edited arguments are checked against
// the schema that the model saw.
func TestEditsKeepThePlan(t *testing.T) {
	t.Parallel()
	spec := minimal(t)
	spec.Approval, spec.ParallelSafe, spec.ResourceKey = "args.n > 3", true, "shop:{item}"
	spec.ArgsSchema = raw(t, `{"type":"object","properties":{"n":{"maximum":5}},"required":["n"]}`)
	reg, err := planner.NewRegistry([]planner.ToolSpec{spec}, nil, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	ts := planner.Select(reg, planner.Request{Base: []string{spec.ToolID}, From: planner.FromRun}, planner.Facts{})
	var keys []planner.Key
	for _, arguments := range []string{`{"n":1,"item":"a"}`, `{"n":4,"item":"b"}`} {
		planned, rejection := planner.Check(reg, &ts, planner.ObservedCall{ToolName: spec.ToolName, Arguments: arguments})
		if !rejection.OK() {
			t.Fatal(rejection)
		}
		keys = append(keys, planned.Key)
	}
	if want := (planner.Key{Bare: "shop"}); keys[0] != want || keys[1] != want {
		t.Errorf("the keys are %+v, want %+v for both", keys, want)
	}
	for arguments, want := range map[string]planner.Code{
		`{"n":5}`: "", `{"n":6}`: planner.InvalidArguments, `{}`: planner.InvalidArguments, ``: planner.InvalidArguments, `[]`: planner.InvalidArguments,
		`{"n":1,"p":"` + strings.Repeat("x", planner.ArgumentsBytesMax) + `"}`: planner.InvalidArguments,
	} {
		if got := planner.CheckArguments(reg, &ts, 0, arguments); got.Code != want {
			t.Errorf("edited to %.20s: got %q, want %q", arguments, got.Code, want)
		}
	}
}
