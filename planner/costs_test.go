package planner

// The worst-case costs of a session's inputs: registries, schemas, patterns,
// conditions and arguments made to be expensive. Allocations are counted for
// the whole process, so these tests do not run in parallel.

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Bounds of what these tests may see, in bytes.
const (
	refusedAllocMax  = 48 << 20  // allocated for a schema that is refused
	schemaAllocMax   = 64 << 20  // allocated for a schema that is taken
	registryAllocMax = 512 << 20 // allocated for the most expensive registry that is taken
	registryHeldMax  = 96 << 20  // of that, kept
	stepAllocMax     = 256       // allocated for one step of a check
	whenAllocMax     = 16 << 20  // allocated for the most expensive condition, compiled or refused
)

// spent returns what a function allocates, and how much of it its result keeps.
func spent(do func() any) (allocated, held int) {
	var before, after, kept runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	result := do()
	runtime.ReadMemStats(&after)
	runtime.GC()
	runtime.ReadMemStats(&kept)
	runtime.KeepAlive(result)
	return int(after.TotalAlloc - before.TotalAlloc), int(kept.HeapAlloc) - int(before.HeapAlloc)
}

// numbered returns n items with their numbers, joined by commas.
func numbered(n int, format string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(items, ",")
}

// withSchemas returns a tool for each schema.
func withSchemas(t *testing.T, schemas ...string) []ToolSpec {
	t.Helper()
	specs := make([]ToolSpec, len(schemas))
	for i, text := range schemas {
		specs[i] = ToolSpec{ToolID: fmt.Sprint("x.t", i), ToolName: fmt.Sprint("t", i), ArgsSchema: object(t, text), Executor: Executor{Kind: ExecutorEffect, Target: "x"}}
	}
	return specs
}

// spelled returns a name of n letters in one of 2^n spellings of a pointer.
func spelled(i, n int, plain, other string) string {
	var b strings.Builder
	for bit := range n {
		if i>>bit&1 == 1 {
			b.WriteString(other)
		} else {
			b.WriteString(plain)
		}
	}
	return b.String()
}

// aliases refers to one large schema by many spellings of its place.
func aliases(name, plain, other string) string {
	refs := make([]string, 500)
	for i := range refs {
		refs[i] = `{"$ref":"#/$defs/` + spelled(i, 12, plain, other) + `"}`
	}
	return `{"$defs":{"` + strings.Repeat(name, 12) + `":{"anyOf":[` + numbered(1400, `{"maxLength":%d}`) + `]}},"allOf":[` + strings.Join(refs, ",") + `]}`
}

// nested is a value that refers to the parts of itself from the innermost on,
// each of them a schema because of that alone.
func nested(depth, width int) string {
	text, refs := `{"anyOf":[`+numbered(width, `{"maxLength":%d}`)+`]}`, make([]string, depth)
	for i := range refs {
		text = `{"not":` + text + `}`
		refs[i] = `{"$ref":"#/const` + strings.Repeat("/not", depth-i) + `"}`
	}
	return `{"allOf":[` + strings.Join(refs, ",") + `],"const":` + text + `}`
}

// TestAttackSchemas: an expensive schema is refused before it costs much, with
// its path and the numbers.
func TestAttackSchemas(t *testing.T) { //nolint:paralleltest // allocations are counted for the whole process
	for name, c := range map[string]struct{ schema, want string }{
		"patterns with ranges of characters": {`{"properties":{` + numbered(1000, `"p%d":{"pattern":"^\\pL{400}$"}`) + `}}`, `pattern "^\\pL{400}$": with it the patterns of the schema take`},
		"many patterns":                      {`{"properties":{` + numbered(1000, `"p%d":{"pattern":"^[a-z]{500}$"}`) + `}}`, "bytes compiled, at most 4194304"},
		"patterns of names":                  {`{"patternProperties":{` + numbered(1000, `"^[a-z]{500}%d$":true`) + `}}`, "bytes compiled, at most 4194304"},
		"a pattern of many classes":          {`{"allOf":[{"pattern":"` + strings.Repeat(`\\pL`, 340) + `"},{"pattern":"(?i)` + strings.Repeat(`\\pL`, 330) + `"}]}`, "bytes compiled, at most 4194304"},
		"a long name above many schemas":     {`{"properties":{"` + strings.Repeat("n", 20_000) + `":{"anyOf":[` + numbered(1900, `{"maxLength":%d}`) + `]}}}`, "more than 1048576 bytes as JSON pointers"},
		"a place under many names":           {aliases("~", "~", "~0"), "refers to"},
		"places inside each other":           {nested(30, 600), "more than 4096 values together"},
	} {
		var err error
		allocated, _ := spent(func() any {
			_, err = NewRegistry(withSchemas(t, c.schema), nil, "", nil)
			return nil
		})
		if bad, ok := err.(*RegistryError); !ok || bad.Path != "tools[0].args_schema" || !strings.Contains(bad.Detail, c.want) {
			t.Errorf("%s: got %.300v, want an error at tools[0].args_schema that says %q", name, err, c.want)
		}
		if allocated > refusedAllocMax {
			t.Errorf("%s: allocated %d bytes before it was refused, want at most %d", name, allocated, refusedAllocMax)
		}
	}
}

// TestAcceptedSchemasAreCheap: they cost no more than allowed.
func TestAcceptedSchemasAreCheap(t *testing.T) { //nolint:paralleltest // allocations are counted for the whole process
	for name, schema := range map[string]string{
		"one place, other spellings of a URL": aliases("a", "a", "%61"),
		"schemas":                             `{"anyOf":[` + numbered(2000, `{"maxLength":%d}`) + `]}`,
		"properties":                          `{"properties":{` + numbered(1900, `"p%d":{"not":{}}`) + `}}`,
		"names that are required":             `{"required":[` + numbered(4000, `"p%d"`) + `]}`,
		"values to choose from":               `{"enum":[` + numbered(1800, `{"a":%d}`) + `]}`,
		"patterns":                            `{"properties":{` + numbered(3, `"p%d":{"pattern":"^\\pL{80}$"}`) + `}}`,
		"references to one place":             `{"$defs":{"a":{}},"allOf":[` + numbered(1300, `{"$ref":"#/$defs/a","maxLength":%d}`) + `]}`,
		"places inside each other":            nested(30, 60),
		"deep":                                strings.Repeat(`{"not":`, 60) + `{}` + strings.Repeat(`}`, 60),
	} {
		specs := withSchemas(t, schema)
		var err error
		allocated, _ := spent(func() any {
			var reg *Registry
			reg, err = NewRegistry(specs, nil, "", nil)
			return reg
		})
		if err != nil {
			t.Errorf("%s: got %.300v, want no error", name, err)
		}
		if allocated > schemaAllocMax {
			t.Errorf("%s: allocated %d bytes, want at most %d", name, allocated, schemaAllocMax)
		}
	}
}

// expensive is a registry at its limits: values, patterns and conditions.
func expensive(t *testing.T) []ToolSpec {
	t.Helper()
	wide := `{"anyOf":[` + numbered(1980, `{"maxLength":%d}`) + `]}`
	schemas := make([]string, 0, 256)
	for range 16 {
		schemas = append(schemas, wide)
	}
	for range 9 {
		schemas = append(schemas, `{"pattern":"^\\pL{120}$"}`)
	}
	for range 100 {
		schemas = append(schemas, `{}`)
	}
	specs := withSchemas(t, schemas...)
	for i := len(specs) - 100; i < len(specs); i++ {
		specs[i].Approval = "true" + strings.Repeat("&&step==1", 112)
	}
	return specs
}

// TestCostOfRegistry: the most expensive registry that is accepted costs what
// its limits say, and its weight is what it retains; a larger one is refused.
func TestCostOfRegistry(t *testing.T) { //nolint:paralleltest // allocations are counted for the whole process
	specs := expensive(t)
	var reg *Registry
	allocated, held := spent(func() any {
		var err error
		if reg, err = NewRegistry(specs, nil, "", nil); err != nil {
			t.Fatal(err)
		}
		return reg
	})
	if allocated > registryAllocMax || held > registryHeldMax {
		t.Errorf("allocated %d bytes, kept %d; want at most %d and %d", allocated, held, registryAllocMax, registryHeldMax)
	}
	if w := reg.Weight(); w < held || w > 3*held {
		t.Errorf("weighs %d bytes and keeps %d, want as much, at most three times", w, held)
	}
}

// TestAttackRegistries: each schema and condition is within its limits, and all
// together are not.
func TestAttackRegistries(t *testing.T) { //nolint:paralleltest // allocations are counted for the whole process
	times := func(n int, schema string) []ToolSpec { return withSchemas(t, slices.Repeat([]string{schema}, n)...) }
	conditions := times(131, `{}`)
	for i := range conditions {
		conditions[i].Approval = "step==1" + strings.Repeat(" ", WhenBytesMax-7)
	}
	for want, specs := range map[string][]ToolSpec{
		"tools[16].args_schema: with it the schemas of the registry hold 67354 values, at most 65536": times(20, `{"anyOf":[`+numbered(1980, `{"maxLength":%d}`)+`]}`),
		"bytes compiled, at most 16777216": times(200, `{"pattern":"^\\pL{120}$"}`),
		"tools[128].approval: with it the conditions of the registry take 132096 bytes, at most 131072": conditions,
	} {
		var err error
		allocated, _ := spent(func() any {
			_, err = NewRegistry(specs, nil, "", nil)
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %.300v, want an error that says %q", err, want)
		}
		if allocated > registryAllocMax {
			t.Errorf("%s: allocated %d bytes before it was refused, want at most %d", want, allocated, registryAllocMax)
		}
	}
}

// TestAlternatesStayWithinTheirCost: with the maximal number of descriptors.
func TestAlternatesStayWithinTheirCost(t *testing.T) { //nolint:paralleltest // allocations are counted for the whole process
	specs := withSchemas(t, slices.Repeat([]string{`{}`}, ToolsMax)...)
	for i := range specs {
		for v := range AlternatesMax {
			specs[i].Alternates = append(specs[i].Alternates, Descriptor{ToolName: fmt.Sprint("a", i, "_", v), ArgsSchema: specs[i].ArgsSchema})
		}
	}
	var reg *Registry
	allocated, held := spent(func() any {
		var err error
		if reg, err = NewRegistry(specs, nil, "", nil); err != nil {
			t.Fatal(err)
		}
		return reg
	})
	if allocated > registryAllocMax || held > registryHeldMax || reg.Weight() < held {
		t.Errorf("allocated %d bytes, kept %d, and weighs %d; want at most %d and %d, and no less than it keeps", allocated, held, reg.Weight(), registryAllocMax, registryHeldMax)
	}
}

// TestWeightOfRegistries: the weight is no less than the memory that a registry
// takes, and not many times that.
func TestWeightOfRegistries(t *testing.T) { //nolint:paralleltest // allocations are counted for the whole process
	for name, schemas := range map[string][]string{
		"small tools":       strings.Split(strings.TrimSuffix(strings.Repeat(`{"properties":{"a":{"type":"string"}}};`, 200), ";"), ";"),
		"schemas":           {`{"anyOf":[` + numbered(1980, `{"maxLength":%d}`) + `]}`},
		"long descriptions": {`{"description":"` + strings.Repeat("a", 60_000) + `"}`},
		"literal patterns":  {`{"properties":{` + numbered(100, `"p%d":{"pattern":"^[a-z]{100}$"}`) + `}}`},
		"wide patterns":     {`{"pattern":"^\\pL{256}$"}`},
		"classes":           {`{"pattern":"` + strings.Repeat(`\\pL`, 200) + `"}`},
	} {
		var reg *Registry
		_, held := spent(func() any {
			var err error
			if reg, err = NewRegistry(withSchemas(t, schemas...), nil, "", nil); err != nil {
				t.Fatal(err)
			}
			return reg
		})
		if w := reg.Weight(); w < held || w > 4*held {
			t.Errorf("%s: weighs %d bytes and keeps %d, want as much, at most four times", name, w, held)
		}
	}
}

// fan is a schema that applies leaf some 200,000 times to one value.
func fan(leaf string) string {
	to := func(name string) string {
		return strings.TrimSuffix(strings.Repeat(`{"$ref":"#/$defs/`+name+`"},`, 60), ",")
	}
	return `{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"allOf":[` + to("b") + `]},"b":{"allOf":[` + to("c") + `]},"c":{"allOf":[` + to("d") + `]},"d":` + leaf + `}}`
}

// TestAttackChecks: a check ends after its steps, whatever repeats in the
// schema, and a step is cheap.
func TestAttackChecks(t *testing.T) { //nolint:paralleltest // allocations are counted for the whole process
	wide, texts := "{"+numbered(20_000, `"k%d":1`)+"}", `"`+strings.Repeat("a", 200_000)+`"`
	items := "[" + numbered(20_000, "%d") + "]"
	for name, c := range map[string]struct{ leaf, value string }{
		"members that nobody asks for": {`{}`, wide},
		"members":                      {`{"properties":{` + numbered(500, `"k%d":true`) + `}}`, wide},
		"dependencies":                 {`{"dependentRequired":{` + numbered(1000, `"x%d":[]`) + `}}`, wide},
		"dependent schemas":            {`{"dependentSchemas":{` + numbered(1000, `"x%d":true`) + `}}`, `{}`},
		"failures":                     {`{"required":["zz"]}`, wide},
		"unevaluated members":          {`{"unevaluatedProperties":true}`, wide},
		"unevaluated items":            {`{"unevaluatedItems":true}`, items},
		"equal items":                  {`{"uniqueItems":true}`, items},
		"values to choose from":        {`{"not":{"enum":[1]}}`, texts},
		"lengths":                      {`{"maxLength":1000000}`, texts},
		"multiples":                    {`{"multipleOf":3e-300}`, "1e300"},
		"patterns":                     {`{"pattern":"(?:a{0,30}){0,30}b"}`, `"` + strings.Repeat("a", 2000) + `"`},
	} {
		reg, err := NewRegistry(withSchemas(t, fan(c.leaf)), nil, "", nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		ts := Select(reg, Request{}, Facts{})
		var k Checker
		allocated, _ := spent(func() any {
			_, why := k.Check(reg, &ts, ObservedCall{ToolName: "t0", Arguments: `{"a":` + c.value + `}`})
			if !strings.HasPrefix(why.Detail, "too much work to check against the schema") {
				t.Errorf("%s: got %+v, want too much work", name, why)
			}
			return nil
		})
		if k.steps != CheckStepsMax {
			t.Errorf("%s: counted %d steps, want %d", name, k.steps, CheckStepsMax)
		}
		if allocated > stepAllocMax*CheckStepsMax {
			t.Errorf("%s: allocated %d bytes in %d steps, want at most %d a step", name, allocated, k.steps, stepAllocMax)
		}
	}
}

// TestAttackDepthOfChecks: schemas that refer to each other cause no deep stack.
func TestAttackDepthOfChecks(t *testing.T) {
	t.Parallel()
	links := make([]string, 1800)
	for i := range links {
		links[i] = fmt.Sprintf(`"x%d":{"$ref":"#/$defs/x%d"}`, i, i+1)
	}
	reg, err := NewRegistry(withSchemas(t, `{"$ref":"#/$defs/x0","$defs":{`+strings.Join(links, ",")+`,"x1800":{"items":{"$ref":"#/$defs/x0"},"additionalProperties":{"$ref":"#/$defs/x0"}}}}`), nil, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	check := func(depth int) Rejection {
		return CheckArguments(reg, &Toolset{}, 0, `{"a":`+strings.Repeat("[", depth)+strings.Repeat("]", depth)+`}`)
	}
	if why := check(3); !why.OK() {
		t.Errorf("three deep: got %+v, want no rejection", why)
	}
	if why := check(60); !strings.HasPrefix(why.Detail, "too much work") {
		t.Errorf("sixty deep: got %+v, want too much work", why)
	}
}

// TestAttackBatch: the calls of one answer share their steps.
func TestAttackBatch(t *testing.T) {
	t.Parallel()
	reg, err := NewRegistry(withSchemas(t, fan(`{}`), `{"type":"object"}`), nil, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	ts := Select(reg, Request{}, Facts{})
	var k Checker
	for i := range 64 {
		_, why := k.Check(reg, &ts, ObservedCall{ToolName: "t0", Arguments: `{"a":{` + numbered(5000, `"k%d":1`) + `}}`})
		want := "too much work to check against the schema"
		if i >= 3 {
			want = "too much work to check beside the other calls"
		}
		if !strings.HasPrefix(why.Detail, want) {
			t.Fatalf("call %d: got %+v, want %s", i, why, want)
		}
	}
	if k.steps != BatchStepsMax {
		t.Errorf("counted %d steps, want %d", k.steps, BatchStepsMax)
	}
}

// TestAttackConditions: compiling a condition has a bounded cost, however it is
// nested and whatever macros it uses.
func TestAttackConditions(t *testing.T) { //nolint:paralleltest // allocations are counted for the whole process
	fill := func(part, glue string) string {
		return strings.TrimSuffix(strings.Repeat(part+glue, WhenBytesMax/(len(part)+len(glue))), glue)
	}
	reg, err := NewRegistry(withSchemas(t, `{}`), nil, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		fill("step==1", "&&"), fill("step+1>2", "||"), fill("has(context.a)", "||"), fill("last.exists(x,x=='')", "||"), fill("!", "") + "true",
		fill("true?true:false", "?true:"), fill("-", "") + "1==1", fill("(", ""), fill("[", ""), fill("{", ""), fill("a.", ""), fill("1", "+"),
		fill("last.all(a,", ""), fill("calls.exists_one(c,", "") + "true", "[" + fill("1", ",")[:900] + "].exists(x,x==2)", fill(`"\u0041"`, "+") + "==''",
		"context" + fill(".a", "")[:900] + "==1", "context" + strings.Repeat("[context", 60), fill("used('t0')", "&&"), fill("size([1,2,3])>0", "&&"),
		"last.all(a,last.all(b,last.all(c,last.all(d,last.all(e,last.all(f,a==b&&c==d&&e==f))))))", fill("\x00", ""), fill("'", ""), fill("1.0e99", "+"), fill("a?", ""),
	} {
		text = text[:min(len(text), WhenBytesMax)]
		allocated, _ := spent(func() any {
			compiled, _ := compileApproval(reg, text)
			return compiled
		})
		if allocated > whenAllocMax {
			t.Errorf("%.40s: allocated %d bytes, want at most %d", text, allocated, whenAllocMax)
		}
	}
	rules := make([]StepRule, StepRulesMax)
	for i := range rules {
		rules[i].When = fill("step==1", "&&")[:300] + "==1"
	}
	if _, bad := CompileSteps(reg, rules); bad == nil || !bad.TooLarge || bad.Path != "" {
		t.Errorf("step rules with %d bytes of conditions: got %v, want a limit", whensBytes(rules), bad)
	}
}

// TestAttackDecisions: all conditions on one call have a bounded cost together;
// beyond it the call needs an approval.
func TestAttackDecisions(t *testing.T) {
	t.Parallel()
	reg, err := NewRegistry(withSchemas(t, `{}`), nil, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	rules := make([]ApprovalRule, ApprovalRulesMax)
	for i := range rules {
		rules[i] = ApprovalRule{Decision: Deny, When: `args.a.all(x, args.a.all(y, x != 2 || y != 2)) && false`}
	}
	rules[len(rules)-1] = ApprovalRule{Decision: Allow, When: `true`}
	a, bad := CompileApprovals(reg, rules)
	if bad != nil {
		t.Fatal(bad)
	}
	// Each of the rules takes some 10,000 steps and does not hold.
	for n, want := range map[int]Decision{1: Allow, 45: Deny} {
		if got := a.Decide(reg, 0, ApprovalFacts{Arguments: `{"a":[` + strings.TrimSuffix(strings.Repeat("1,", n), ",") + `]}`}); got != want {
			t.Errorf("%d items: got %s, want %s", n, got, want)
		}
	}
	seen := scope{facts: &StepFacts{}, arguments: `{"a":[` + strings.TrimSuffix(strings.Repeat("1,", 45), ",") + `]}`, costMax: DecideCostMax}
	for i := range rules {
		a.whens[i].holds(&seen)
	}
	if seen.cost > DecideCostMax+WhenCostMax || seen.cost < DecideCostMax {
		t.Errorf("the conditions cost %d steps together, want about %d", seen.cost, DecideCostMax)
	}
}
