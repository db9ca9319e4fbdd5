package planner_test

import (
	"strings"
	"testing"

	"github.com/refold/refold/planner"
)

// rejectionTools are tools whose calls are refused, each for another reason.
func rejectionTools(t *testing.T) (*planner.Registry, planner.Toolset) {
	t.Helper()
	spec := func(name, schema string) planner.ToolSpec {
		s := minimal(t)
		s.ToolID, s.ToolName, s.ArgsSchema = "x."+name, name, raw(t, schema)
		return s
	}
	off, away, paid := spec("off", `{}`), spec("away", `{}`), spec("paid", `{}`)
	away.Availability = []planner.Rule{{Kind: planner.RuleAlways}, {Kind: planner.RuleFact, Name: "f", Equals: "1"}}
	paid.Requires = []string{"pay", "more"}
	tool := spec("tool", `{"properties":{"a":{"type":"string"},"b":{"minimum":3},"c":{"items":{"type":"null"}}},
		"required":["d"],"additionalProperties":false,"patternProperties":{"^[d-z]":{"anyOf":[{"const":1},{"const":2}]}}}`)
	reg, err := planner.NewRegistry([]planner.ToolSpec{spec("free", `{}`), tool, off, away, paid}, nil, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return reg, planner.Select(reg, planner.Request{Run: planner.Overrides{Disable: []string{"off"}}}, planner.Facts{})
}

// TestRejectionsAreTheSameEachTime: a thousand repeats of each rejection give the
// same bytes. (tool_unbound has a test of its own: no registry has such a tool.)
func TestRejectionsAreTheSameEachTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		call planner.ObservedCall
		want planner.Code
	}{
		"unknown":            {planner.ObservedCall{ToolName: "nö\n" + strings.Repeat("x", 300)}, planner.ToolUnknown},
		"disabled":           {planner.ObservedCall{ToolName: "off"}, planner.ToolDisabled},
		"unavailable":        {planner.ObservedCall{ToolName: "away"}, planner.ToolUnavailable},
		"denied":             {planner.ObservedCall{ToolName: "paid"}, planner.ToolDenied},
		"empty":              {planner.ObservedCall{ToolName: "tool"}, planner.InvalidArguments},
		"not JSON":           {planner.ObservedCall{ToolName: "free", Arguments: `{"a":}`}, planner.InvalidArguments},
		"not an object":      {planner.ObservedCall{ToolName: "free", Arguments: `[1]`}, planner.InvalidArguments},
		"two values":         {planner.ObservedCall{ToolName: "free", Arguments: `{}{}`}, planner.InvalidArguments},
		"keys twice":         {planner.ObservedCall{ToolName: "free", Arguments: `{"a":1,"b":{"c":1,"\u0063":2}}`}, planner.InvalidArguments},
		"not UTF-8":          {planner.ObservedCall{ToolName: "free", Arguments: "{\"a\":\"\xff\"}"}, planner.InvalidArguments},
		"10,000 lists deep":  {planner.ObservedCall{ToolName: "free", Arguments: `{"a":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`}, planner.InvalidArguments},
		"10,000 maps deep":   {planner.ObservedCall{ToolName: "free", Arguments: strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000)}, planner.InvalidArguments},
		"a blob of 1 MiB":    {planner.ObservedCall{ToolName: "free", BlobSize: 1 << 20}, planner.InvalidArguments},
		"a blob of 1 byte":   {planner.ObservedCall{ToolName: "free", BlobSize: 1}, planner.InvalidArguments},
		"over the limit":     {planner.ObservedCall{ToolName: "free", Arguments: sizedArguments(planner.ArgumentsBytesMax + 1)}, planner.InvalidArguments},
		"many faults":        {planner.ObservedCall{ToolName: "tool", Arguments: `{"a":1,"b":1,"c":[1,2,3],"q":1,"A":3,"B":2}`}, planner.InvalidArguments},
		"one fault, chosen":  {planner.ObservedCall{ToolName: "tool", Arguments: `{"d":3,"e":3,"f":3,"g":3}`}, planner.InvalidArguments},
		"a fault far inside": {planner.ObservedCall{ToolName: "tool", Arguments: `{"d":1,"c":[null,null,7,8]}`}, planner.InvalidArguments},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg, ts := rejectionTools(t)
			plan, want := planner.Check(reg, &ts, c.call)
			if want.Code != c.want || want.Detail == "" || len(want.Detail) > planner.DetailBytesMax || !plan.Rejected {
				t.Fatalf("got %s %q, rejected %t; want %s", want.Code, want.Detail, plan.Rejected, c.want)
			}
			for i := range 1_000 {
				if i%250 == 0 { // a registry of its own now and then
					reg, ts = rejectionTools(t)
				}
				if again, got := planner.Check(reg, &ts, c.call); got != want || again != plan {
					t.Fatalf("check %d: got %s %q, want %s %q", i, got.Code, got.Detail, want.Code, want.Detail)
				}
			}
		})
	}
}

// sizedArguments returns arguments of n bytes.
func sizedArguments(n int) string {
	return `{"a":"` + strings.Repeat("a", n-len(`{"a":""}`)) + `"}`
}

// TestLargeAndEmptyArgumentsAreAccepted: empty text counts as {}, and 200 KiB
// are not too much, nor is the limit itself.
func TestLargeAndEmptyArgumentsAreAccepted(t *testing.T) {
	t.Parallel()
	reg, ts := rejectionTools(t)
	for name, text := range map[string]string{
		"empty": "", "an empty object": "{}", "200 KiB": sizedArguments(200 << 10), "the limit": sizedArguments(planner.ArgumentsBytesMax),
	} {
		plan, why := planner.Check(reg, &ts, planner.ObservedCall{ToolName: "free", Arguments: text})
		if !why.OK() || plan.Rejected {
			t.Errorf("%s: got %s %q, want it taken", name, why.Code, why.Detail)
		}
	}
}
