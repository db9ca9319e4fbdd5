package planner_test

// Laws of scheduling on random input, and two oracles: the longest chain of
// conflicts, and all possible plans.

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// drawCalls draws up to eight calls over few keys, so that they meet.
func drawCalls(t *rapid.T) []planner.PlanCall {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) planner.PlanCall {
		call := planner.PlanCall{
			Access:       rapid.SampledFrom([]planner.Access{planner.AccessRead, planner.AccessWrite}).Draw(t, "access"),
			ParallelSafe: rapid.IntRange(0, 4).Draw(t, "parallel") > 0,
			Rejected:     rapid.IntRange(0, 5).Draw(t, "rejected") == 0,
			Key:          planner.Key{Bare: rapid.SampledFrom([]string{"", "f", "g"}).Draw(t, "bare")},
		}
		if call.Key.Bare != "" {
			call.Key.Part = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "part")
		}
		return call
	}), 0, 8).Draw(t, "calls")
}

// conflict is the rule on the texts of two keys.
func conflict(a, b planner.PlanCall) bool {
	if a.Rejected || b.Rejected {
		return false
	}
	if !a.ParallelSafe || !b.ParallelSafe {
		return true
	}
	k, l := a.Key.String(), b.Key.String()
	overlap := k != "" && l != "" && (k == l || strings.HasPrefix(k, l+":") || strings.HasPrefix(l, k+":"))
	return overlap && (a.Access != planner.AccessRead || b.Access != planner.AccessRead)
}

// longestChain returns, by trying all of them, the length of the longest chain
// of calls that ends before call i and in which each conflicts with the next.
func longestChain(calls []planner.PlanCall, i int) int {
	longest := 0
	for j := range i {
		if conflict(calls[j], calls[i]) {
			longest = max(longest, 1+longestChain(calls, j))
		}
	}
	return longest
}

// TestScheduleLaws: Schedule agrees with longestChain, and its groups keep each
// of the rules.
func TestScheduleLaws(t *testing.T) {
	t.Parallel()
	checkLaw(t, 1, func(t *rapid.T) {
		calls := drawCalls(t)
		plan := planner.Schedule(calls)
		group := groupOf(t, calls, plan)
		for i := range calls {
			if calls[i].Rejected {
				continue
			}
			if got, want := group[i], longestChain(calls, i); got != want {
				t.Fatalf("call %d: got group %d, want %d", i, got, want)
			}
			minimal := group[i] == 0
			for j := range i {
				if !conflict(calls[j], calls[i]) {
					continue
				}
				if group[j] >= group[i] {
					t.Fatalf("calls %d and %d conflict and stand in groups %d and %d", j, i, group[j], group[i])
				}
				minimal = minimal || group[j] == group[i]-1
			}
			if !minimal {
				t.Fatalf("call %d could stand before group %d", i, group[i])
			}
		}
		if got, want := codec.Digest(plan.Bytes()), plan.Hash(); got != want {
			t.Fatalf("hash: got %s, want %s", got, want)
		}
		var again planner.Plan
		if err := codec.Unmarshal(plan.Bytes(), &again); err != nil || again.Hash() != plan.Hash() {
			t.Fatalf("a decoded plan has hash %s, want %s (%v)", again.Hash(), plan.Hash(), err)
		}
	})
}

// groupOf returns the group of each call, -1 for none, after checking that
// every call that may run is in exactly one, in call order.
func groupOf(t *rapid.T, calls []planner.PlanCall, plan planner.Plan) []int {
	group := make([]int, len(calls))
	for i := range group {
		group[i] = -1
	}
	for g, members := range plan.Groups {
		if len(members) == 0 || !slices.IsSorted(members) {
			t.Fatalf("group %d is %v", g, members)
		}
		for _, i := range members {
			if group[i] >= 0 || calls[i].Rejected {
				t.Fatalf("call %d is in group %d and should not be", i, g)
			}
			group[i] = g
		}
	}
	for i := range calls {
		if !calls[i].Rejected && group[i] < 0 {
			t.Fatalf("call %d is in no group", i)
		}
	}
	return group
}

// TestRejectedCallsDoNotCount: the other calls are grouped as they are without
// the rejected ones.
func TestRejectedCallsDoNotCount(t *testing.T) {
	t.Parallel()
	checkLaw(t, 1, func(t *rapid.T) {
		calls := drawCalls(t)
		var kept []planner.PlanCall
		var at []int
		for i, call := range calls {
			if !call.Rejected {
				kept, at = append(kept, call), append(at, i)
			}
		}
		without := planner.Schedule(kept)
		for _, members := range without.Groups {
			for i := range members {
				members[i] = at[members[i]]
			}
		}
		if got, want := fmt.Sprint(planner.Schedule(calls).Groups), fmt.Sprint(without.Groups); got != want {
			t.Fatalf("groups with rejected calls: got %s, want %s", got, want)
		}
	})
}

// TestScheduleHasFewestGroups tries, for up to seven calls, every assignment to
// groups in which no call is later than in the plan. Only the plan itself keeps
// conflicting calls apart and in order.
func TestScheduleHasFewestGroups(t *testing.T) {
	t.Parallel()
	checkLaw(t, 1, func(t *rapid.T) {
		calls := drawCalls(t)
		calls = calls[:min(len(calls), 7)]
		group := groupOf(t, calls, planner.Schedule(calls))
		valid := 0
		tried := make([]int, len(calls))
		var try func(i int)
		try = func(i int) {
			if i == len(calls) {
				valid++
				if !slices.Equal(tried, group) {
					t.Fatalf("groups %v would do, got %v", tried, group)
				}
				return
			}
			for g := min(group[i], 0); g <= group[i]; g++ {
				tried[i] = g
				if fits(calls, tried, i) {
					try(i + 1)
				}
			}
		}
		try(0)
		if valid != 1 {
			t.Fatalf("the plan %v breaks the rules", group)
		}
	})
}

// fits reports whether call i stands after all earlier calls that it conflicts
// with.
func fits(calls []planner.PlanCall, group []int, i int) bool {
	for j := range i {
		if conflict(calls[j], calls[i]) && group[j] >= group[i] {
			return false
		}
	}
	return true
}

// TestRejectedCallLeavesGroupsUnchanged: another rejected call, wherever it
// stands, changes no group.
func TestRejectedCallLeavesGroupsUnchanged(t *testing.T) {
	t.Parallel()
	checkLaw(t, 1, func(t *rapid.T) {
		calls := drawCalls(t)
		at := rapid.IntRange(0, len(calls)).Draw(t, "at")
		another := planner.PlanCall{Rejected: true, ToolName: "stranger", Key: planner.Key{Bare: "f"}, ParallelSafe: rapid.Bool().Draw(t, "parallel")}
		with := planner.Schedule(slices.Insert(slices.Clone(calls), at, another))
		for _, members := range with.Groups {
			for i, m := range members {
				if m == at {
					t.Fatalf("the rejected call %d is in a group: %v", at, with.Groups)
				}
				if m > at {
					members[i] = m - 1
				}
			}
		}
		if got, want := fmt.Sprint(with.Groups), fmt.Sprint(planner.Schedule(calls).Groups); got != want {
			t.Fatalf("groups with another rejected call at %d: got %s, want %s", at, got, want)
		}
	})
}
