package planner

import (
	"fmt"

	"github.com/refold/refold/codec"
)

// PlanCall is one call of a batch, as far as its order matters: names and key,
// no arguments. Check makes them.
type PlanCall struct {
	Access       Access `msgpack:"access,omitempty"` // empty: the call is of no tool
	Key          Key    `msgpack:"key"`
	ParallelSafe bool   `msgpack:"parallel_safe,omitempty"`
	Rejected     bool   `msgpack:"rejected,omitempty"` // in no group
	ToolID       string `msgpack:"tool_id,omitempty"`
	ToolName     string `msgpack:"tool_name,omitempty"`
}

// Plan is the order in which the calls of a batch may run. Calls of one group
// may run at once; group n+1 begins when every call of the groups up to n has
// a result.
type Plan struct {
	Calls  []PlanCall `msgpack:"calls"`
	Groups [][]int    `msgpack:"groups"` // positions in Calls, in call order
}

// Schedule plans a batch: a call joins the first group after all earlier calls
// that it conflicts with. Rejected calls are in no group and conflict with
// nothing. The plan keeps calls; the caller must not change them.
func Schedule(calls []PlanCall) Plan {
	plan := Plan{Calls: calls, Groups: [][]int{}}
	group := make([]int, len(calls))
	for i := range calls {
		if calls[i].Rejected {
			continue
		}
		for j := range i {
			if group[j] >= group[i] && calls[i].conflicts(&calls[j]) {
				group[i] = group[j] + 1
			}
		}
		if group[i] == len(plan.Groups) {
			plan.Groups = append(plan.Groups, nil)
		}
		plan.Groups[group[i]] = append(plan.Groups[group[i]], i)
	}
	return plan
}

// conflicts reports whether two calls must not run at once.
func (c *PlanCall) conflicts(other *PlanCall) bool {
	switch {
	case c.Rejected || other.Rejected:
		return false
	case !c.ParallelSafe || !other.ParallelSafe:
		return true
	case c.Access == AccessRead && other.Access == AccessRead:
		return false
	}
	return c.Key.overlaps(other.Key)
}

// Bytes returns the plan's canonical bytes: names, keys and groups.
func (p Plan) Bytes() []byte {
	data, err := codec.Marshal(p)
	if err != nil {
		// A plan holds nothing but text, numbers and truth values.
		panic(fmt.Sprintf("planner: encode a plan: %v", err))
	}
	return data
}

// Hash returns the SHA-256 of Bytes: the plan_hash.
func (p Plan) Hash() codec.Hash { return codec.Sum(p.Bytes()) }
