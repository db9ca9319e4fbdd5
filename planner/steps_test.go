package planner_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// TestRegistryBytesKeepProfileSteps: a profile's step rules are part of the
// registry's bytes, and are read back from them.
func TestRegistryBytesKeepProfileSteps(t *testing.T) {
	t.Parallel()
	def := planner.Builtin()
	before := builtin(t)
	def.Profiles[0].Steps = []planner.StepRule{{When: `step == 0`, ToolChoice: planner.ChoiceNone}}
	reg, err := def.Registry()
	if err != nil {
		t.Fatal(err)
	}
	if reg.Hash() == before.Hash() {
		t.Error("step rules leave the registry's hash as it was")
	}
	again, err := planner.ParseRegistry(reg.Bytes())
	if err != nil || again.Hash() != reg.Hash() {
		t.Fatalf("parse what Bytes wrote: %v", err)
	}
	steps := again.ProfileSteps(def.Profiles[0].Profile)
	if got := steps.Match(planner.StepFacts{}); got.Rule != 0 {
		t.Errorf("got rule %d, want 0", got.Rule)
	}
	if got := steps.Match(planner.StepFacts{Step: 1}); got.Rule != -1 {
		t.Errorf("got rule %d, want none", got.Rule)
	}
	if again.ProfileSteps(def.Profiles[1].Profile) != nil || again.ProfileSteps("stranger") != nil {
		t.Error("got step rules of a profile without any")
	}
}

// TestNilAndEmptyStepsMatchNothing: nil rules give nil Steps, and an empty list
// gives Steps without rules.
func TestNilAndEmptyStepsMatchNothing(t *testing.T) {
	t.Parallel()
	reg := builtin(t)
	none, bad := planner.CompileSteps(reg, nil)
	if none != nil || bad != nil {
		t.Errorf("nil rules: got %v, %v; want nil, nil", none, bad)
	}
	empty, bad := planner.CompileSteps(reg, []planner.StepRule{})
	if empty == nil || bad != nil {
		t.Errorf("no rules: got %v, %v; want an empty list", empty, bad)
	}
	for _, s := range []*planner.Steps{none, empty} {
		if got := s.Match(planner.StepFacts{}); got.Rule != -1 || got.Failed != nil || s.Len() != 0 {
			t.Errorf("got %v, %d rules; want none", got, s.Len())
		}
	}
}

// TestStepRefs: tool_refs may name only descriptors of the registry, alternates
// included.
func TestStepRefs(t *testing.T) {
	t.Parallel()
	spec := minimal(t)
	spec.Alternates = []planner.Descriptor{{ToolName: "other", ArgsSchema: spec.ArgsSchema}}
	reg, err := planner.NewRegistry([]planner.ToolSpec{spec}, nil, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	var refs []codec.Ref
	for _, blob := range reg.Blobs() {
		refs = append(refs, blob.Ref)
	}
	if len(refs) != 2 {
		t.Fatalf("got %d descriptors, want 2", len(refs))
	}
	if bad := planner.CheckStep(reg, "[0]", &planner.StepRule{ToolRefs: &refs}); bad != nil {
		t.Errorf("the registry's own: %v", bad)
	}
	refs = append(refs, codec.RefOf([]byte("stranger")))
	bad := planner.CheckStep(reg, "data.rule", &planner.StepRule{ToolRefs: &refs})
	if bad == nil || bad.Path != "data.rule.tool_refs[2]" || !bad.Unknown || bad.TooLarge {
		t.Errorf("got %+v, want an unknown descriptor at data.rule.tool_refs[2]", bad)
	}
}

// TestCheckStepPaths: a fault's path begins with the rule's, unless that is empty.
func TestCheckStepPaths(t *testing.T) {
	t.Parallel()
	rule := planner.StepRule{Model: strings.Repeat("m", planner.StepModelBytesMax+1)}
	for path, want := range map[string]string{"": "model", "[3]": "[3].model", "data": "data.model"} {
		if bad := planner.CheckStep(builtin(t), path, &rule); bad == nil || bad.Path != want || !bad.TooLarge {
			t.Errorf("rule at %q: got %+v, want a limit at %s", path, bad, want)
		}
	}
	// When is not CheckStep's: who answers for one step has no condition.
	if bad := planner.CheckStep(builtin(t), "", &planner.StepRule{When: "("}); bad != nil {
		t.Errorf("when: got %v, want it unread", bad)
	}
}

// TestStepObjects: context and params contain only what JSON has, in the
// canonical encoding.
func TestStepObjects(t *testing.T) {
	t.Parallel()
	binary, err := codec.Marshal(map[string][]byte{"b": {1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	for what, bytes := range map[string]codec.Raw{"binary": binary, "no encoding": {0xc1}, "two values": {0x80, 0x80}, "a list": {0x90}} {
		for field, rule := range map[string]planner.StepRule{"context": {Context: bytes}, "params": {Params: bytes}} {
			bad := planner.CheckStep(builtin(t), "", &rule)
			if bad == nil || bad.Path != field || bad.Unknown || bad.TooLarge {
				t.Errorf("%s: got %+v, want an invalid %s", what, bad, field)
			}
		}
	}
	for field, rule := range map[string]planner.StepRule{"system": {System: "\xff"}, "model": {Model: "\xff"}, "[0].when": {When: "\xff"}} {
		_, bad := planner.CompileSteps(builtin(t), []planner.StepRule{rule})
		if bad == nil || !strings.HasSuffix(bad.Path, field) || bad.TooLarge {
			t.Errorf("got %+v, want an invalid %s", bad, field)
		}
	}
}

// TestStepsKeepCopies: later changes by the caller have no effect.
func TestStepsKeepCopies(t *testing.T) {
	t.Parallel()
	names, context := []string{"read_file"}, raw(t, `{"a":1}`)
	steps, bad := planner.CompileSteps(builtin(t), []planner.StepRule{{ActiveTools: &names, Context: context}})
	if bad != nil {
		t.Fatal(bad)
	}
	names[0], context[0] = "stranger", 0
	got := steps.Rule(0)
	if (*got.ActiveTools)[0] != "read_file" || got.Context[0] == 0 {
		t.Errorf("got %v %x, want what was given", *got.ActiveTools, got.Context)
	}
}

// faultyWhens are refused, each in another way.
var faultyWhens = []string{
	"(", "step ==", `used("a") && nonsense && more`, `step == "1" && last == 3`, "{1: 2, 3: 4}", ") ] }",
	strings.Repeat("(", 80), strings.Repeat("[1,", 60), "step" + strings.Repeat(".a", 60), "\x00", "a b c", `"open`,
	"timestamp(1)", "x.y.z(1, 2)", "last.map(x, x)", "google.protobuf.Any{}", "1u", "int", "step", "last.all(1, true)",
}

// libraryWords stand in the library's messages, and must not in ours.
var libraryWords = []string{"ERROR", "<input>", "undeclared", "overload", "mismatched", "extraneous", "expecting", "token", "viable", "Syntax", "recursion", "cel"}

// TestWhenFaultsAreTheSameEachTime: a thousand repeats of a fault, also from
// several goroutines, give the same bytes, in our own words.
func TestWhenFaultsAreTheSameEachTime(t *testing.T) {
	t.Parallel()
	reg := stepRegistry(t)
	fault := func(when string) string {
		_, bad := planner.CompileSteps(reg, []planner.StepRule{{When: when}})
		if bad == nil {
			return "no fault"
		}
		return fmt.Sprintf("%+v", *bad)
	}
	for i, when := range faultyWhens {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			want := fault(when)
			if want == "no fault" {
				t.Fatalf("%.40s compiles", when)
			}
			for _, word := range libraryWords {
				if strings.Contains(want, word) {
					t.Errorf("%.40s: %s has the library's %q", when, want, word)
				}
			}
			for range 1_000 {
				if got := fault(when); got != want {
					t.Fatalf("%.40s: got %s, before %s", when, got, want)
				}
			}
		})
	}
}

// TestMatchIsTheSameEachTime: a thousand matches of one Steps, from several
// goroutines, give the same.
func TestMatchIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	rules := []planner.StepRule{{When: "context.absent"}, {When: whenWorst}, {When: `size(context.l) == 1 / step`}, {When: `context.l[2] == 0.5 + double(step)`}}
	steps, bad := planner.CompileSteps(stepRegistry(t), rules)
	if bad != nil {
		t.Fatal(bad)
	}
	facts := planner.StepFacts{Step: 1, Context: raw(t, `{"l":[1,"x",1.5,`+strings.Repeat("1,", 400)+`1]}`)}
	const want = "{3 [{when_failed 0}]}"
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			for range 250 {
				if got := fmt.Sprint(steps.Match(facts)); got != want {
					t.Fatalf("got %s, want %s", got, want)
				}
			}
		})
	}
}

// TestWhensAreBounded: reading each value of the largest context once is
// affordable; nested loops are not, however cheap each step is.
func TestWhensAreBounded(t *testing.T) {
	t.Parallel()
	facts := planner.StepFacts{Context: raw(t, `{"l":[`+strings.Repeat("0,", planner.StepContextBytesMax-8)+`0]}`)}
	if got := len(facts.Context); got > planner.StepContextBytesMax {
		t.Fatalf("the context takes %d bytes, at most %d", got, planner.StepContextBytesMax)
	}
	for when, want := range map[string]string{
		`context.l.all(x, x == 0)`:                                              "{0 []}",
		`context.l.exists(x, x == 1)`:                                           "{-1 []}",
		`!context.l.exists_one(x, x == 1)`:                                      "{0 []}",
		`context.l.all(a, context.l.all(b, true))`:                              "{-1 [{when_too_costly 0}]}",
		`context.l.exists(a, context.l.exists(b, false))`:                       "{-1 [{when_too_costly 0}]}",
		`context.l.exists_one(a, context.l.exists_one(b, false))`:               "{-1 [{when_too_costly 0}]}",
		`context.l.exists_one(a, context.l.exists_one(b, true ? false : true))`: "{-1 [{when_too_costly 0}]}",
		`[1, 2, 3, 4].all(a, context.l == context.l)`:                           "{-1 [{when_too_costly 0}]}",
		`[1, 2].all(a, [context.l, context.l] == [context.l, context.l])`:       "{-1 [{when_too_costly 0}]}",
		`[1, 2].all(a, context.l + context.l == context.l + context.l)`:         "{-1 [{when_too_costly 0}]}",
	} {
		steps, bad := planner.CompileSteps(stepRegistry(t), []planner.StepRule{{When: when}})
		if bad != nil {
			t.Fatalf("%s: %v", when, bad)
		}
		if got := fmt.Sprint(steps.Match(facts)); got != want {
			t.Errorf("%s: got %s, want %s", when, got, want)
		}
	}
}

// TestMalformedContext: a context that is not a canonical object counts as {}.
func TestMalformedContext(t *testing.T) {
	t.Parallel()
	steps, bad := planner.CompileSteps(stepRegistry(t), []planner.StepRule{{When: `has(context.a)`}, {When: `!("a" in context)`}})
	if bad != nil {
		t.Fatal(bad)
	}
	for _, context := range []codec.Raw{nil, {0x80}, {0xc0}, {0x91, 0xa1, 'a'}, {0x81, 0xa1, 'a', 0xc1}, {0x81, 0xa1, 'a'}, {0x81, 0xa1, 'a', 0xc0, 0xc0}, {0xdf, 0xff, 0xff, 0xff, 0xff}} {
		if got := steps.Match(planner.StepFacts{Context: context}); got.Rule != 1 || got.Failed != nil {
			t.Errorf("% x: got %v, want rule 1", []byte(context), got)
		}
	}
}
