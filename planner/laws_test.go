package planner_test

// Laws of registries and of Select on random input, and an oracle: a slow
// Select, written directly from the rules.

import (
	"bytes"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

var schemas = []string{`{}`, `{"type":"object"}`, `{"required":["a"]}`}

// drawRegistry draws a valid registry of up to eight tools, as its parts.
func drawRegistry(t *rapid.T) planner.Defaults { return drawTools(t, 8) }

// drawTools draws a valid registry of up to max tools, as its parts.
func drawTools(t *rapid.T, max int) planner.Defaults {
	n := rapid.IntRange(0, max).Draw(t, "tools")
	var def planner.Defaults
	for i := range n {
		spec := planner.ToolSpec{
			ToolID: fmt.Sprintf("%c.tool", 'a'+i), ToolName: fmt.Sprintf("tool%d", n-i),
			Executor:     planner.Executor{Kind: rapid.SampledFrom([]string{planner.ExecutorEffect, planner.ExecutorHostLoop}).Draw(t, "executor"), Target: "x"},
			Access:       rapid.SampledFrom([]planner.Access{"", planner.AccessRead, planner.AccessWrite}).Draw(t, "access"),
			Approval:     rapid.SampledFrom([]string{"", planner.ApprovalNever, planner.ApprovalAlways}).Draw(t, "approval"),
			ParallelSafe: rapid.Bool().Draw(t, "parallel"),
			ResourceKey:  rapid.SampledFrom([]string{"", "k", "k:{a}", "l:{a}", "l:x/{a}"}).Draw(t, "key"),
			Requires:     rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"c1", "c2", "c3"}), 0, 2, rapid.ID[string]).Draw(t, "requires"),
			Availability: rapid.SliceOfN(rapid.Custom(drawRule), 0, 2).Draw(t, "availability"),
		}
		if strings.HasPrefix(spec.ResourceKey, "l:") { // one kind for all of a resource
			spec.ResourceKind = planner.ResourcePath
		}
		raw, err := codec.FromJSON([]byte(rapid.SampledFrom(schemas).Draw(t, "schema")))
		if err != nil {
			t.Fatal(err)
		}
		spec.ArgsSchema = raw
		def.Tools = append(def.Tools, spec)
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "profiles") {
		p := planner.Profile{Profile: fmt.Sprintf("p%d", i), Tools: distinctTools(t, def.Tools)}
		if rapid.IntRange(0, 3).Draw(t, "steps") == 0 {
			names := distinctTools(t, def.Tools)
			p.Steps = []planner.StepRule{{When: "step == 0", ActiveTools: &names}}
		}
		def.Profiles = append(def.Profiles, p)
		if rapid.Bool().Draw(t, "of a provider") {
			name := rapid.SampledFrom([]string{"x%d", "X%d"}).Draw(t, "provider")
			def.ProfileByProvider = append(def.ProfileByProvider, codec.Pair{Key: fmt.Sprintf(name, i), Value: codec.AppendString(nil, p.Profile)})
		}
	}
	return def
}

// lawCases is how many cases the laws of choosing and of scheduling are held
// against.
const lawCases = 10_000

// ofRegistry is how many cases are drawn for one registry: to make one takes
// longer than all else.
const ofRegistry = 5

// checkLaw holds prop, which draws that many cases at once, against lawCases
// cases; or once against as many draws as -rapid.checks says.
func checkLaw(t *testing.T, cases int, prop func(*rapid.T)) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	rounds := 1
	if n, err := strconv.Atoi(checks.Value.String()); err == nil && n > 0 && checks.Value.String() == checks.DefValue {
		rounds = (lawCases + n*cases - 1) / (n * cases)
	}
	for range rounds {
		rapid.Check(t, prop)
	}
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
// give the same bytes, and the bytes give the same registry.
func TestRegistryOrderDoesNotCount(t *testing.T) {
	t.Parallel()
	checkLaw(t, ofRegistry, func(t *rapid.T) {
		def := drawTools(t, 5) // each case makes all of them anew
		reg := mustRegistry(t, def)
		for range ofRegistry {
			checkMoved(t, def, reg)
		}
		again, err := planner.ParseRegistry(reg.Bytes())
		if err != nil {
			t.Fatalf("parse what Bytes wrote: %v", err)
		}
		if got, want := again.Hash(), reg.Hash(); got != want || got != codec.Sum(reg.Bytes()) {
			t.Fatalf("hash of the parsed registry: got %s, want %s", got, want)
		}
		// Filling in the defaults changes nothing more the second time.
		filled, err := planner.NewRegistry(reg.Tools(), reg.Profiles(), reg.DefaultProfile(), reg.ProfileByProvider())
		if err != nil || !bytes.Equal(filled.Bytes(), reg.Bytes()) {
			t.Fatalf("the registry's own tools make another registry (%v)", err)
		}
	})
}

// checkMoved makes the registry again from its parts in another order.
func checkMoved(t *rapid.T, def planner.Defaults, reg *planner.Registry) {
	other := planner.Defaults{DefaultProfile: def.DefaultProfile, Tools: rapid.Permutation(def.Tools).Draw(t, "tools again")}
	if len(def.Profiles) > 0 {
		other.Profiles = rapid.Permutation(def.Profiles).Draw(t, "profiles again")
	}
	if len(def.ProfileByProvider) > 0 {
		other.ProfileByProvider = rapid.Permutation(def.ProfileByProvider).Draw(t, "providers again")
	}
	moved := mustRegistry(t, other)
	if got, want := moved.Bytes(), reg.Bytes(); !bytes.Equal(got, want) {
		t.Fatalf("another order gives other bytes:\n%x\n%x", got, want)
	}
	req, facts := drawRequest(t, def), drawFacts(t)
	if got, want := encode(t, planner.Select(moved, req, facts)), encode(t, planner.Select(reg, req, facts)); !bytes.Equal(got, want) {
		t.Fatalf("another order gives another toolset:\n%x\n%x", got, want)
	}
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
	checkLaw(t, ofRegistry, func(t *rapid.T) {
		def := drawRegistry(t)
		reg := mustRegistry(t, def)
		for range ofRegistry {
			req, facts := drawRequest(t, def), drawFacts(t)
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

// TestSelectLaws: only tools of the registry are offered, each once; deny wins,
// force overrides no rule, the toolset survives its encoding, and the same
// input gives the same bytes.
func TestSelectLaws(t *testing.T) {
	t.Parallel()
	checkLaw(t, ofRegistry, func(t *rapid.T) {
		def := drawRegistry(t)
		reg := mustRegistry(t, def)
		for range ofRegistry {
			checkSelect(t, def, reg)
		}
	})
}

func checkSelect(t *rapid.T, def planner.Defaults, reg *planner.Registry) {
	req, facts := drawRequest(t, def), drawFacts(t)
	ts := planner.Select(reg, req, facts)
	offered := map[planner.ToolIndex]bool{}
	for _, o := range ts.Offers {
		if o.Tool() < 0 || int(o.Tool()) >= reg.Len() || offered[o.Tool()] {
			t.Fatalf("%d is offered, of %d tools, and was so before: %t", o.Tool(), reg.Len(), offered[o.Tool()])
		}
		offered[o.Tool()] = true
	}
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
		if why := planner.Recheck(reg, reg, tool, req, facts); !why.OK() {
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
}

func encode(t *rapid.T, v any) []byte {
	data, err := codec.Marshal(v)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	return data
}
