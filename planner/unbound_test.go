package planner

import (
	"testing"

	"github.com/refold/refold/codec"
)

// TestUnboundIsReportedBeforeDenied: a registry refuses a tool without
// executor, so the test removes the executor afterwards. Calls of such a tool
// have a code of their own, checked after availability and before permission.
func TestUnboundIsReportedBeforeDenied(t *testing.T) {
	t.Parallel()
	schema, err := codec.FromJSON([]byte(`{"required":["a"]}`))
	if err != nil {
		t.Fatal(err)
	}
	spec := ToolSpec{
		ToolID: "x.tool", ToolName: "tool", ArgsSchema: schema, Requires: []string{"pay"},
		Executor:     Executor{Kind: ExecutorEffect, Target: "x"},
		Availability: []Rule{{Kind: RuleHostSessionReady}},
	}
	for _, c := range []struct {
		name  string
		facts Facts
		want  Code
	}{
		{"unavailable", Facts{}, ToolUnavailable},
		{"unbound and denied", Facts{HostSession: "ready"}, ToolUnbound},
		{"unbound with bad arguments", Facts{HostSession: "ready", Capabilities: []string{"pay"}}, ToolUnbound},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			reg, err := NewRegistry([]ToolSpec{spec}, nil, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			reg.tools[0].spec.Executor = Executor{}
			ts := Select(reg, Request{}, c.facts)
			call, why := Check(reg, &ts, ObservedCall{ToolName: "tool"})
			if why.Code != c.want || why.Status() != StatusIgnored || !call.Rejected {
				t.Errorf("Check: got %q %q, want %q ignored", why.Code, why.Status(), c.want)
			}
			for range 1_000 {
				if _, again := Check(reg, &ts, ObservedCall{ToolName: "tool"}); again != why {
					t.Fatalf("checked again: got %v, want %v", again, why)
				}
			}
			if got := Recheck(reg, reg, 0, Request{}, c.facts).Code; got != c.want {
				t.Errorf("Recheck: got %q, want %q", got, c.want)
			}
		})
	}
}
