package planner

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/refold/refold/codec"
)

// TestPlanBytesEqualMarshal: the specialised encoder writes what Marshal
// writes, for any plan.
func TestPlanBytesEqualMarshal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[a-zäß.:/_]{1,40}`))
		calls := make([]PlanCall, rapid.IntRange(0, 70).Draw(rt, "calls"))
		for i := range calls {
			calls[i] = PlanCall{
				Access: Access(text.Draw(rt, "access")), Key: Key{Bare: text.Draw(rt, "bare"), Part: text.Draw(rt, "part")},
				ParallelSafe: rapid.Bool().Draw(rt, "parallel_safe"), Rejected: rapid.Bool().Draw(rt, "rejected"),
				ToolID: text.Draw(rt, "tool_id"), ToolName: text.Draw(rt, "tool_name"),
			}
		}
		plan := Schedule(calls)
		want, err := codec.Marshal(plan)
		if err != nil {
			rt.Fatal(err)
		}
		if got := plan.Bytes(); !bytes.Equal(got, want) {
			rt.Fatalf("got % x\nwant % x", got, want)
		}
	})
}
