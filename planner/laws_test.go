package planner_test

// Laws on random input, and oracles: Select and Schedule written again, the
// slow way, straight from the rules.

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

var schemas = []string{`{}`, `{"type":"object"}`, `{"required":["a"]}`}

// drawRegistry draws a valid registry of up to eight tools, as its parts.
func drawRegistry(t *rapid.T) planner.Defaults {
	n := rapid.IntRange(0, 8).Draw(t, "tools")
	var def planner.Defaults
	for i := range n {
		spec := planner.ToolSpec{
			ToolID: fmt.Sprintf("%c.tool", 'a'+i), ToolName: fmt.Sprintf("tool%d", n-i),
			Executor:     planner.Executor{Kind: rapid.SampledFrom([]string{planner.ExecutorEffect, planner.ExecutorHostLoop}).Draw(t, "executor"), Target: "x"},
			Access:       rapid.SampledFrom([]planner.Access{"", planner.AccessRead, planner.AccessWrite}).Draw(t, "access"),
			Approval:     rapid.SampledFrom([]string{"", planner.ApprovalNever, planner.ApprovalAlways}).Draw(t, "approval"),
			ParallelSafe: rapid.Bool().Draw(t, "parallel"),
			ResourceKey:  rapid.SampledFrom([]string{"", "k", "k:{a}", "l:{a}"}).Draw(t, "key"),
			Requires:     rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"c1", "c2", "c3"}), 0, 2, rapid.ID[string]).Draw(t, "requires"),
			Availability: rapid.SliceOfN(rapid.Custom(drawRule), 0, 2).Draw(t, "availability"),
		}
		raw, err := codec.FromJSON([]byte(rapid.SampledFrom(schemas).Draw(t, "schema")))
		if err != nil {
			t.Fatal(err)
		}
		spec.ArgsSchema = raw
		def.Tools = append(def.Tools, spec)
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "profiles") {
		def.Profiles = append(def.Profiles, planner.Profile{Profile: fmt.Sprintf("p%d", i), Tools: distinctTools(t, def.Tools)})
	}
	return def
}

func drawRule(t *rapid.T) planner.Rule {
	kind := rapid.SampledFrom([]string{planner.RuleAlways, planner.RuleHostSessionReady, planner.RuleHostSessionNotReady, planner.RuleFact}).Draw(t, "rule")
	if kind == planner.RuleFact {
		return planner.Rule{Kind: kind, Name: rapid.SampledFrom([]string{"f", "g"}).Draw(t, "fact"), Equals: rapid.SampledFrom([]string{"", "1"}).Draw(t, "equals")}
	}
	return planner.Rule{Kind: kind}
}

// distinctTools draws some of the tools, each by one of its names.
func distinctTools(t *rapid.T, tools []planner.ToolSpec) []string {
	names := []string{}
	for _, spec := range rapid.Permutation(tools).Draw(t, "order") {
		switch rapid.IntRange(0, 2).Draw(t, "name") {
		case 0:
			names = append(names, spec.ToolID)
		case 1:
			names = append(names, spec.ToolName)
		}
	}
	return names
}

// drawNames draws a list of names, with repeats and strangers.
func drawNames(t *rapid.T, tools []planner.ToolSpec, label string) []string {
	pool := []string{"stranger"}
	for _, spec := range tools {
		pool = append(pool, spec.ToolID, spec.ToolName)
	}
	return rapid.SliceOfN(rapid.SampledFrom(pool), 0, 4).Draw(t, label)
}

func drawRequest(t *rapid.T, def planner.Defaults) planner.Request {
	overrides := func(scope string) planner.Overrides {
		return planner.Overrides{
			Enable:  drawNames(t, def.Tools, scope+" enable"),
			Disable: drawNames(t, def.Tools, scope+" disable"),
			Force:   drawNames(t, def.Tools, scope+" force"),
		}
	}
	return planner.Request{
		Base:    drawNames(t, def.Tools, "base"),
		From:    rapid.SampledFrom([]planner.Source{planner.FromProfile, planner.FromStep, planner.FromRun, planner.FromCatalog}).Draw(t, "from"),
		Profile: rapid.SampledFrom([]string{"", "p0", "p1", "p2"}).Draw(t, "profile"),
		Session: overrides("session"), Run: overrides("run"),
	}
}

func drawFacts(t *rapid.T) planner.Facts {
	facts := planner.Facts{
		HostSession:  rapid.SampledFrom([]string{"", "ready", "closed", "expired", "error", "none"}).Draw(t, "host"),
		Capabilities: rapid.SliceOfN(rapid.SampledFrom([]string{"c1", "c2", "c3"}), 0, 3).Draw(t, "capabilities"),
	}
	for _, name := range []string{"f", "g"} {
		if rapid.Bool().Draw(t, "has "+name) {
			facts.Facts = append(facts.Facts, planner.Fact{Name: name, Value: rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, name)})
		}
	}
	return facts
}

func mustRegistry(t *rapid.T, def planner.Defaults) *planner.Registry {
	reg, err := def.Registry()
	if err != nil {
		t.Fatalf("a valid registry: %v", err)
	}
	return reg
}

// TestRegistryOrderDoesNotCount: the same tools and profiles in another order
// are the same bytes, and the bytes make the same registry.
func TestRegistryOrderDoesNotCount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		def := drawRegistry(t)
		reg := mustRegistry(t, def)
		other := planner.Defaults{DefaultProfile: def.DefaultProfile, Tools: rapid.Permutation(def.Tools).Draw(t, "tools again")}
		if len(def.Profiles) > 0 {
			other.Profiles = rapid.Permutation(def.Profiles).Draw(t, "profiles again")
		}
		if got, want := mustRegistry(t, other).Bytes(), reg.Bytes(); !bytes.Equal(got, want) {
			t.Fatalf("another order gives other bytes:\n%x\n%x", got, want)
		}
		again, err := planner.ParseRegistry(reg.Bytes())
		if err != nil {
			t.Fatalf("parse what Bytes wrote: %v", err)
		}
		if got, want := again.Hash(), reg.Hash(); got != want || got != codec.Sum(reg.Bytes()) {
			t.Fatalf("hash of the parsed registry: got %s, want %s", got, want)
		}
		// Filling in the defaults changes nothing more the second time.
		filled, err := planner.NewRegistry(reg.Tools(), reg.Profiles(), reg.DefaultProfile())
		if err != nil || !bytes.Equal(filled.Bytes(), reg.Bytes()) {
			t.Fatalf("the registry's own tools make another registry (%v)", err)
		}
	})
}

// selectSlowly is Select as the rules say it, on lists of tool_ids.
func selectSlowly(def planner.Defaults, req planner.Request, facts planner.Facts) (offered []string, reasons map[string]planner.Reason) {
	ids := map[string]string{}
	specs := map[string]planner.ToolSpec{}
	var all []string
	for _, spec := range def.Tools {
		ids[spec.ToolID], ids[spec.ToolName] = spec.ToolID, spec.ToolID
		specs[spec.ToolID] = spec
		all = append(all, spec.ToolID)
	}
	slices.Sort(all)
	resolve := func(lists ...[]string) (out []string) {
		for _, name := range slices.Concat(lists...) {
			if id, ok := ids[name]; ok && !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
		return out
	}

	// 1. Base.
	base := resolve(req.Base)
	if req.From == planner.FromProfile {
		base = all
		for _, p := range def.Profiles {
			if p.Profile == req.Profile {
				base = resolve(p.Tools)
			}
		}
	}
	// 2. Enable, force.
	added := resolve(req.Session.Force, req.Run.Force)
	if req.From == planner.FromProfile {
		added = resolve(added, req.Session.Enable, req.Run.Enable)
	}
	slices.Sort(added)
	// 5. Order.
	listed := resolve(base, added)
	// 3. Disable.
	bySession, byRun := resolve(req.Session.Disable), resolve(req.Run.Disable)

	reasons = map[string]planner.Reason{}
	for _, id := range all {
		reasons[id] = planner.NotListed
	}
	for _, id := range listed {
		switch {
		case slices.Contains(bySession, id):
			reasons[id] = planner.DisabledBySession
		case slices.Contains(byRun, id):
			reasons[id] = planner.DisabledByRun
		// 4. Availability and capabilities.
		case !allHold(specs[id].Availability, facts):
			reasons[id] = planner.RuleFails
		case !covered(specs[id].Requires, facts.Capabilities):
			reasons[id] = planner.CapabilityMissing
		default:
			reasons[id] = planner.Offered
			offered = append(offered, id)
		}
	}
	return offered, reasons
}

func allHold(rules []planner.Rule, facts planner.Facts) bool {
	for _, rule := range rules {
		holds := rule.Kind == planner.RuleAlways ||
			rule.Kind == planner.RuleHostSessionReady && facts.HostSession == "ready" ||
			rule.Kind == planner.RuleHostSessionNotReady && facts.HostSession != "ready" ||
			rule.Kind == planner.RuleFact && slices.Contains(facts.Facts, planner.Fact{Name: rule.Name, Value: rule.Equals})
		if !holds {
			return false
		}
	}
	return true
}

func covered(requires, granted []string) bool {
	for _, name := range requires {
		if !slices.Contains(granted, name) {
			return false
		}
	}
	return true
}

// TestSelectAgreesWithTheRules compares Select with selectSlowly.
func TestSelectAgreesWithTheRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		def := drawRegistry(t)
		reg, req, facts := mustRegistry(t, def), drawRequest(t, def), drawFacts(t)
		ts := planner.Select(reg, req, facts)
		want, reasons := selectSlowly(def, req, facts)
		if got := offeredIDs(reg, &ts); !slices.Equal(got, want) {
			t.Fatalf("offered: got %v, want %v", got, want)
		}
		for i, spec := range reg.Tools() {
			if got, want := ts.Verdict(planner.ToolIndex(i)).Reason, reasons[spec.ToolID]; got != want {
				t.Fatalf("reason of %s: got %d, want %d", spec.ToolID, got, want)
			}
		}
	})
}

func offeredIDs(reg *planner.Registry, ts *planner.Toolset) []string {
	var ids []string
	for _, o := range ts.Offers {
		ids = append(ids, reg.Tool(o.Tool()).ToolID)
	}
	return ids
}

// TestSelectLaws: deny wins, force passes nothing, the toolset survives its
// encoding, and the same input gives the same bytes.
func TestSelectLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		def := drawRegistry(t)
		reg, req, facts := mustRegistry(t, def), drawRequest(t, def), drawFacts(t)
		ts := planner.Select(reg, req, facts)
		for _, id := range offeredIDs(reg, &ts) {
			tool, _ := reg.Lookup(id)
			spec := reg.Tool(tool)
			for _, list := range [][]string{req.Session.Disable, req.Run.Disable} {
				if slices.Contains(list, id) || slices.Contains(list, spec.ToolName) {
					t.Fatalf("%s is disabled and offered", id)
				}
			}
			if !allHold(spec.Availability, facts) || !covered(spec.Requires, facts.Capabilities) {
				t.Fatalf("%s is unavailable and offered", id)
			}
			if why := planner.Recheck(reg, tool, req, facts); !why.OK() {
				t.Fatalf("%s is offered, and refused at the same moment: %v", id, why)
			}
		}
		data := encode(t, ts)
		var again planner.Toolset
		if err := codec.Unmarshal(data, &again); err != nil {
			t.Fatalf("decode a toolset: %v", err)
		}
		if got := encode(t, again); !bytes.Equal(got, data) {
			t.Fatalf("a decoded toolset has other bytes:\n%x\n%x", got, data)
		}
		if got := encode(t, planner.Select(reg, req, facts)); !bytes.Equal(got, data) {
			t.Fatalf("a second selection has other bytes:\n%x\n%x", got, data)
		}
		calls := append(drawNames(t, def.Tools, "calls"), "stranger")
		for _, name := range calls {
			call := planner.ObservedCall{ToolName: name}
			plan, why := planner.Check(reg, &ts, call)
			planAgain, whyAgain := planner.Check(reg, &again, call)
			if plan != planAgain || why != whyAgain {
				t.Fatalf("a decoded toolset checks %s otherwise: %v, %v", name, why, whyAgain)
			}
			if plan.Rejected == why.OK() || len(why.Detail) > planner.DetailBytesMax {
				t.Fatalf("call of %s: rejected %t, %q", name, plan.Rejected, why.Detail)
			}
		}
	})
}

func encode(t *rapid.T, v any) []byte {
	data, err := codec.Marshal(v)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	return data
}

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

// TestScheduleLaws: Schedule agrees with longestChain, and its groups keep the
// rules one by one.
func TestScheduleLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
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
		if got, want := codec.Sum(plan.Bytes()), plan.Hash(); got != want {
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

// TestRejectedCallsDoNotCount: without the rejected calls the rest is grouped
// as with them.
func TestRejectedCallsDoNotCount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
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
