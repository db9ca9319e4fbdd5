package planner

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/codec"
)

// TestLimitsFit: the relations between limits, and between limits and the
// encodings of what they bound.
func TestLimitsFit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what string
		ok   bool
	}{
		{"a tool's index fits an Offer", ToolsMax <= 1<<offerVariantShift},
		{"a variant fits an Offer", AlternatesMax < 1<<(32-offerVariantShift)},
		{"a rule's index fits a verdict", RulesMax-1 <= math.MaxUint8},
		{"a capability's index fits a verdict", RequiresMax-1 <= math.MaxUint8},
		{"a registry fits the codec", RegistryBytesMax <= codec.BytesMax},
		{"arguments fit the codec", ArgumentsBytesMax <= codec.BytesMax},
		{"the hash of a key is shorter than a key", len(codec.Ref{}.String()) < KeyBytesMax},
		{"a verdict's rule fits a detail", 4*(2*NameBytesMax) < 4*DetailBytesMax},
		{"a schema of values alone fits its bytes", SchemaNodesMax <= SchemaBytesMax},
		{"a step rule may list every tool", StepToolsMax >= ToolsMax},
		{"a step rule's texts and objects fit the rules", StepSystemBytesMax+StepParamsBytesMax+StepContextBytesMax+WhenBytesMax < StepsBytesMax},
		{"a step rule's longest list fits the rules", StepToolsMax*(ToolIDBytesMax+2) < StepsBytesMax},
		{"a when for every step rule fits the rules", StepRulesMax*(WhenBytesMax+16) < StepsBytesMax},
		{"a profile's step rules fit a registry", StepsBytesMax < RegistryBytesMax},
		{"a when of operators alone can have its nodes", WhenNodesMax < WhenBytesMax},
		{"a schema's values fit a registry", SchemaNodesMax <= RegistryNodesMax},
		{"a schema's patterns fit a registry", SchemaPatternsBytesMax <= RegistryPatternsBytesMax},
		{"a pattern with as many states as it may fits a schema", patternSize{states: PatternStatesMax}.bytes() <= SchemaPatternsBytesMax},
		{"a schema of values alone fits its pointers", SchemaNodesMax*64 <= SchemaPointersBytesMax},
		{"a when fits a list of rules", WhenBytesMax <= StepWhensBytesMax},
		{"a list of rules fits a registry", StepWhensBytesMax <= RegistryWhensBytesMax},
		{"every tool of a registry may have an approval", ToolsMax*128 <= RegistryWhensBytesMax},
		{"one check fits a batch", CheckStepsMax <= BatchStepsMax},
		{"one condition fits a decision", WhenCostMax <= DecideCostMax},
		{"each byte of a context can be looked at", 5*StepContextBytesMax < WhenCostMax},
	} {
		if !c.ok {
			t.Errorf("not so: %s", c.what)
		}
	}
}

// object returns JSON text as canonical bytes.
func object(t *testing.T, text string) codec.Raw {
	t.Helper()
	raw, err := codec.FromJSON([]byte(text))
	if err != nil {
		t.Fatalf("%.80s: %v", text, err)
	}
	return raw
}

// TestLimitsHold: each limit is accepted, and one more is refused, with its path.
func TestLimitsHold(t *testing.T) {
	t.Parallel()
	many := func(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	schemaOf := func(n int) string { // 5 values besides the n enum's
		return `{"properties":{"a":{"enum":[` + many(n, "1") + `]}}}`
	}
	for _, c := range []struct {
		what string
		path string
		fill func(spec *ToolSpec, n int)
		max  int
	}{
		{"tool_id", "tool_id", func(s *ToolSpec, n int) { s.ToolID = strings.Repeat("a", n) }, ToolIDBytesMax},
		{"tool_name", "tool_name", func(s *ToolSpec, n int) { s.ToolName = strings.Repeat("a", n) }, NameBytesMax},
		{"description", "description", func(s *ToolSpec, n int) { s.Description = strings.Repeat("a", n) }, DescriptionBytesMax},
		{"target", "executor.target", func(s *ToolSpec, n int) { s.Executor.Target = strings.Repeat("a", n) }, NameBytesMax},
		{"deadline", "deadline_ms", func(s *ToolSpec, n int) { s.DeadlineMS = int64(n) }, DeadlineMSMax},
		{"rules", "availability", func(s *ToolSpec, n int) {
			s.Availability = make([]Rule, n)
			for i := range s.Availability {
				s.Availability[i].Kind = RuleAlways
			}
		}, RulesMax},
		{"fact name", "availability[0].name", func(s *ToolSpec, n int) {
			s.Availability = []Rule{{Kind: RuleFact, Name: strings.Repeat("a", n)}}
		}, FactNameBytesMax},
		{"fact value", "availability[0].equals", func(s *ToolSpec, n int) {
			s.Availability = []Rule{{Kind: RuleFact, Name: "f", Equals: strings.Repeat("a", n)}}
		}, FactValueBytesMax},
		{"capabilities", "requires", func(s *ToolSpec, n int) {
			for i := range n {
				s.Requires = append(s.Requires, fmt.Sprint("c", i))
			}
		}, RequiresMax},
		{"capability", "requires[0]", func(s *ToolSpec, n int) { s.Requires = []string{strings.Repeat("a", n)} }, CapabilityBytesMax},
		{"template", "resource_key", func(s *ToolSpec, n int) { s.ResourceKey = strings.Repeat("a", n) }, TemplateBytesMax},
		{"alternates", "alternates", func(s *ToolSpec, n int) {
			for i := range n {
				s.Alternates = append(s.Alternates, Descriptor{ToolName: fmt.Sprint("n", i), ArgsSchema: s.ArgsSchema})
			}
		}, AlternatesMax},
		{"schema bytes", "args_schema", func(s *ToolSpec, n int) {
			s.ArgsSchema = object(t, `{"title":"`+strings.Repeat("a", n-len(`{"title":""}`))+`"}`)
		}, SchemaBytesMax},
		{"schema values", "args_schema", func(s *ToolSpec, n int) { s.ArgsSchema = object(t, schemaOf(n-4)) }, SchemaNodesMax},
		{"pattern", "args_schema", func(s *ToolSpec, n int) {
			s.ArgsSchema = object(t, `{"pattern":"`+strings.Repeat("a", n)+`"}`)
		}, PatternBytesMax},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			build := func(n int) error {
				spec := ToolSpec{ToolID: "x.tool", ToolName: "tool", ArgsSchema: object(t, `{}`), Executor: Executor{Kind: ExecutorEffect, Target: "x"}}
				c.fill(&spec, n)
				_, err := NewRegistry([]ToolSpec{spec}, nil, "", nil)
				return err
			}
			if err := build(c.max); err != nil {
				t.Errorf("%d: got %v, want no error", c.max, err)
			}
			bad, ok := build(c.max + 1).(*RegistryError)
			if !ok || bad.Path != "tools[0]."+c.path {
				t.Errorf("%d: got %v, want an error at tools[0].%s", c.max+1, bad, c.path)
			}
		})
	}
}

// TestRegistryLimitsHold does the same for a registry as a whole.
func TestRegistryLimitsHold(t *testing.T) {
	t.Parallel()
	tools := make([]ToolSpec, ToolsMax+1)
	for i := range tools {
		tools[i] = ToolSpec{ToolID: fmt.Sprint("x.t", i), ToolName: fmt.Sprint("t", i), ArgsSchema: object(t, `{}`), Executor: Executor{Kind: ExecutorEffect, Target: "x"}}
	}
	profiles := make([]Profile, ProfilesMax+1)
	for i := range profiles {
		profiles[i].Profile = fmt.Sprint("p", i)
	}
	providers := make(codec.Pairs, ProvidersMax+1)
	for i := range providers {
		providers[i] = codec.Pair{Key: fmt.Sprint("p", i), Value: codec.AppendString(nil, "p1")}
	}
	if _, err := NewRegistry(tools[1:], profiles[1:], "", providers[1:]); err != nil {
		t.Errorf("at the limits: %v", err)
	}
	for path, build := range map[string]func() (*Registry, error){
		"tools":               func() (*Registry, error) { return NewRegistry(tools, nil, "", nil) },
		"profile_by_provider": func() (*Registry, error) { return NewRegistry(nil, profiles[1:], "", providers) },
		"profiles":            func() (*Registry, error) { return NewRegistry(nil, profiles, "", nil) },
	} {
		_, err := build()
		if bad, ok := err.(*RegistryError); !ok || bad.Path != path {
			t.Errorf("one more: got %v, want an error at %s", err, path)
		}
	}
	for i := range 70 {
		tools[i].Description = strings.Repeat("a", DescriptionBytesMax)
	}
	_, err := NewRegistry(tools[:ToolsMax], nil, "", nil)
	if bad, ok := err.(*RegistryError); !ok || bad.Path != "tools" {
		t.Errorf("too many bytes: got %v, want an error at tools", err)
	}
}

// TestStepLimitsHold does the same for step rules.
func TestStepLimitsHold(t *testing.T) {
	t.Parallel()
	many := func(n int) string { return strings.Repeat("a", n) }
	sized := func(n int) codec.Raw { // a map of one key, n bytes
		raw := object(t, `{"k":"`+many(n)+`"}`)
		return object(t, `{"k":"`+many(2*n-len(raw))+`"}`)
	}
	reg, err := NewRegistry([]ToolSpec{{ToolID: "x.tool", ToolName: "tool", ArgsSchema: object(t, `{}`), Executor: Executor{Kind: ExecutorEffect, Target: "x"}}}, nil, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	one := func(rule StepRule) []StepRule { return []StepRule{rule} }
	for path, c := range map[string]struct {
		make func(n int) []StepRule
		max  int
	}{
		"":                 {func(n int) []StepRule { return make([]StepRule, n) }, StepRulesMax},
		"[0].active_tools": {func(n int) []StepRule { l := slices.Repeat([]string{"tool"}, n); return one(StepRule{ActiveTools: &l}) }, StepToolsMax},
		"[0].tool_refs": {func(n int) []StepRule {
			l := slices.Repeat([]codec.Ref{reg.Ref(0)}, n)
			return one(StepRule{ToolRefs: &l})
		}, StepToolsMax},
		"[0].context": {func(n int) []StepRule { return one(StepRule{Context: sized(n)}) }, StepContextBytesMax},
		"[0].params":  {func(n int) []StepRule { return one(StepRule{Params: sized(n)}) }, StepParamsBytesMax},
		"[0].system":  {func(n int) []StepRule { return one(StepRule{System: many(n)}) }, StepSystemBytesMax},
		"[0].model":   {func(n int) []StepRule { return one(StepRule{Model: many(n)}) }, StepModelBytesMax},
		"[0].when":    {func(n int) []StepRule { return one(StepRule{When: "true //" + many(n-7)}) }, WhenBytesMax},
	} {
		if _, bad := CompileSteps(reg, c.make(c.max)); bad != nil {
			t.Errorf("%s: %d: got %v, want no error", path, c.max, bad)
		}
		if _, bad := CompileSteps(reg, c.make(c.max+1)); bad == nil || bad.Path != path || !bad.TooLarge || bad.Unknown {
			t.Errorf("%s: %d: got %+v, want a limit at that path", path, c.max+1, bad)
		}
	}
	rules := []StepRule{{System: many(StepSystemBytesMax - 100)}, {System: many(StepSystemBytesMax - 100)}, {System: many(100)}}
	packed, err := codec.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	rules[2].System = many(100 + StepsBytesMax - len(packed))
	if packed, err = codec.Marshal(rules); err != nil || len(packed) > StepsBytesMax+2 {
		t.Fatalf("%d bytes, %v", len(packed), err)
	}
	rules[2].System = rules[2].System[:len(rules[2].System)-(len(packed)-StepsBytesMax)]
	if _, bad := CompileSteps(reg, rules); bad != nil {
		t.Errorf("all rules: got %v, want no error", bad)
	}
	rules[2].System += "a"
	if _, bad := CompileSteps(reg, rules); bad == nil || bad.Path != "" || !bad.TooLarge {
		t.Errorf("all rules and a byte: got %+v, want a limit", bad)
	}
}
