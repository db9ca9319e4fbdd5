package planner

// Which rule decides over a call, and which calls stand in each other's way.

import (
	"cmp"
	"slices"
	"testing"
)

func TestRuleThatDecides(t *testing.T) {
	t.Parallel()
	reg := approvalRegistry(t)
	rules := []ApprovalRule{
		{Decision: Allow, Tools: []string{"shop.look"}},
		{Decision: Ask, Tools: []string{"shop.pay"}, When: "args.sum > 100"},
	}
	a, bad := CompileApprovals(reg, rules)
	if bad != nil {
		t.Fatal(bad)
	}
	for _, c := range []struct {
		tool, arguments string
		decision        Decision
		rule            int
	}{
		{"shop.look", `{"sum": 1}`, Allow, 0},
		{"shop.pay", `{"sum": 101}`, Ask, 1},
		{"shop.pay", `{"sum": 99}`, Allow, -1},
		{"shop.buy", `{"sum": 1}`, Ask, -1},
	} {
		tool, ok := reg.LookupID(c.tool)
		if !ok {
			t.Fatalf("there is no %s", c.tool)
		}
		decision, rule := a.Decided(reg, tool, ApprovalFacts{Arguments: c.arguments})
		if decision != c.decision || rule != c.rule {
			t.Errorf("%s of %s: got %s by rule %d, want %s by %d", c.tool, c.arguments, decision, rule, c.decision, c.rule)
		}
	}
}

func approvalRegistry(t *testing.T) *Registry {
	t.Helper()
	var specs []ToolSpec
	for id, approval := range map[string]string{"shop.look": ApprovalAlways, "shop.pay": ApprovalNever, "shop.buy": ApprovalAlways} {
		specs = append(specs, ToolSpec{
			ToolID: id, ToolName: id[5:], Approval: approval, Access: AccessWrite, ArgsSchema: object(t, `{"type": "object", "properties": {"sum": {"type": "integer"}}}`),
			Executor: Executor{Kind: ExecutorEffect, Target: "shop"},
		})
	}
	slices.SortFunc(specs, func(a, b ToolSpec) int { return cmp.Compare(a.ToolID, b.ToolID) })
	reg, err := Defaults{Tools: specs}.Registry()
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

func TestConflictsOfAPlan(t *testing.T) {
	t.Parallel()
	read := func(part string) PlanCall {
		return PlanCall{Access: AccessRead, ParallelSafe: true, Key: Key{Bare: "fs", Part: part}}
	}
	write := read("a")
	write.Access = AccessWrite
	plan := Schedule([]PlanCall{read("a"), read("b"), write, {Access: AccessWrite}, {Access: AccessWrite, Rejected: true}})
	for i, want := range [][]int{nil, nil, {0}, {0, 1, 2}, nil} {
		if got := plan.Conflicts(i); !slices.Equal(got, want) {
			t.Errorf("call %d conflicts with %v, want %v", i, got, want)
		}
	}
}
