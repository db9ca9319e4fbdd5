package planner_test

import (
	"fmt"

	"github.com/refold/refold/planner"
)

// The path of one turn: which tools are offered, which of the model's calls may
// run, and in which order.
func Example() {
	reg, err := planner.Builtin().Registry()
	if err != nil {
		fmt.Println(err)
		return
	}
	profile, _ := planner.ResolveProfile(reg, "", "", "openai")
	toolset := planner.Select(reg, planner.Request{
		Profile: profile,
		Run:     planner.Overrides{Disable: []string{"shell"}},
	}, planner.Facts{HostSession: "ready"})
	fmt.Println(len(toolset.Offers), "tools")

	var calls []planner.PlanCall
	for _, observed := range []planner.ObservedCall{
		{ToolName: "read_file", Arguments: `{"path":"main.go"}`},
		{ToolName: "write_file", Arguments: `{"path":"./main.go","content":""}`},
		{ToolName: "shell", Arguments: `{"command":"go test"}`},
		{ToolName: "stat", Arguments: `{"path":"go.mod"}`},
	} {
		call, why := planner.Check(reg, &toolset, observed)
		if !why.OK() {
			fmt.Println(observed.ToolName, why.Status(), why.Code)
		}
		calls = append(calls, call)
	}
	fmt.Println(planner.Schedule(calls).Groups)
	// Output:
	// 9 tools
	// shell ignored tool_disabled
	// [[0 3] [1]]
}
