package planner_test

// Laws of step rules on random input.

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// drawWhen draws a text of the language's grammar. Its types need not fit, so
// some of it doesn't compile and some fails; depth bounds it.
func drawWhen(t *rapid.T, depth int) string {
	leaves := []string{
		"true", "false", "step == 1", `used("a.tool")`, `used("read")`, `fact("f") == "1"`, `role("r")`, `"read" in last`, "context.yes",
		`context.phase == "a"`, "has(context.phase)", `"phase" in context`, "usage.input_tokens > 10", "context.absent", "1 / step == 1",
		"last == []", "size(last) > 1", `context["n"] < 3`, "context == context.o", "1", `"x"`, "step", "last", "context", "null", "1u", "{}", "nonsense",
	}
	if depth == 0 {
		return rapid.SampledFrom(leaves).Draw(t, "leaf")
	}
	inner := func() string { return drawWhen(t, depth-1) }
	switch rapid.IntRange(0, 8).Draw(t, "form") {
	case 0:
		return "(" + inner() + " && " + inner() + ")"
	case 1:
		return "(" + inner() + " || " + inner() + ")"
	case 2:
		return "!" + inner()
	case 3:
		return "(" + inner() + " ? " + inner() + " : " + inner() + ")"
	case 4:
		list := rapid.SampledFrom([]string{"last", "[1, 2, 3]", "context.l", "context"}).Draw(t, "list")
		macro := rapid.SampledFrom([]string{"all", "exists", "exists_one", "map"}).Draw(t, "macro")
		return list + "." + macro + "(x, " + inner() + ")"
	case 5:
		return "(" + inner() + rapid.SampledFrom([]string{" == ", " < ", " + ", " - ", " in ", "."}).Draw(t, "operator") + inner() + ")"
	}
	return inner()
}

// drawSteps draws a rule list in which every when compiles.
func drawSteps(t *rapid.T, reg *planner.Registry) []planner.StepRule {
	when := rapid.Custom(func(t *rapid.T) string { return drawWhen(t, rapid.IntRange(0, 3).Draw(t, "depth")) })
	texts := rapid.SliceOfN(when, 0, 8).Draw(t, "whens")
	rules := []planner.StepRule{}
	for _, text := range texts {
		rule := planner.StepRule{When: text, Model: rapid.SampledFrom([]string{"", "m"}).Draw(t, "model")}
		if _, bad := planner.CompileSteps(reg, []planner.StepRule{rule}); bad == nil {
			rules = append(rules, rule)
		}
	}
	return rules
}

func drawStepFacts(t *rapid.T) planner.StepFacts {
	names := []string{"a.tool", "read", "x"}
	f := planner.StepFacts{
		Step:  rapid.IntRange(0, 3).Draw(t, "step"),
		Used:  rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 3, rapid.ID[string]).Draw(t, "used"),
		Last:  rapid.SliceOfN(rapid.SampledFrom(names), 0, 4).Draw(t, "last"),
		Roles: rapid.SliceOfN(rapid.SampledFrom([]string{"r", "s"}), 0, 2).Draw(t, "roles"),
		Usage: planner.StepUsage{InputTokens: rapid.Int64().Draw(t, "tokens")},
		Facts: drawFacts(t).Facts,
	}
	slices.Sort(f.Used)
	text := rapid.SampledFrom([]string{"", `{}`, `{"phase":"a","yes":true,"n":1,"l":[1,[2]],"o":{"a":1}}`, `{"phase":1,"yes":"x","n":2.5,"l":{},"o":null}`, `[1]`, `7`}).Draw(t, "context")
	if text != "" {
		context, err := codec.FromJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		f.Context = context
	}
	if rapid.IntRange(0, 9).Draw(t, "malformed") == 0 {
		f.Context = rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "bytes")
	}
	return f
}

func stepRegistry(t testing.TB) *planner.Registry {
	t.Helper()
	one, two := minimal(t), minimal(t)
	one.ToolID, one.ToolName = "a.tool", "tool"
	two.ToolID, two.ToolName = "b.tool", "read"
	reg, err := planner.NewRegistry([]planner.ToolSpec{one, two}, nil, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

func mustSteps(t *rapid.T, reg *planner.Registry, rules []planner.StepRule) *planner.Steps {
	steps, bad := planner.CompileSteps(reg, rules)
	if bad != nil {
		t.Fatalf("rules that compile one by one: %v", bad)
	}
	return steps
}

// TestMatchLaws: a match is the first rule that holds by itself, and lists the
// rules before it that fail by themselves. Repeating it, or compiling the rules
// again, gives the same; a rule after the match changes nothing, and one before
// it that never holds only moves it.
func TestMatchLaws(t *testing.T) {
	t.Parallel()
	reg := stepRegistry(t)
	rapid.Check(t, func(t *rapid.T) {
		rules, f := drawSteps(t, reg), drawStepFacts(t)
		steps := mustSteps(t, reg, rules)
		got := steps.Match(f)

		want := planner.StepMatch{Rule: -1}
		for i, rule := range rules {
			alone := mustSteps(t, reg, []planner.StepRule{rule}).Match(f)
			for _, failure := range alone.Failed {
				want.Failed = append(want.Failed, planner.RuleFailure{Code: failure.Code, Rule: i})
			}
			if alone.Rule == 0 {
				want.Rule = i
				break
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if again := mustSteps(t, reg, rules).Match(f); fmt.Sprint(again) != fmt.Sprint(got) {
			t.Fatalf("matched again: %v, before %v", again, got)
		}
		if got.Rule >= 0 {
			longer := append(slices.Clone(rules[:got.Rule+1]), planner.StepRule{When: drawLeaf(t)}, planner.StepRule{})
			if more := mustSteps(t, reg, longer).Match(f); fmt.Sprint(more) != fmt.Sprint(got) {
				t.Fatalf("with rules after the match: %v, without %v", more, got)
			}
			moved := mustSteps(t, reg, append([]planner.StepRule{{When: "false"}}, rules...)).Match(f)
			if moved.Rule != got.Rule+1 || len(moved.Failed) != len(got.Failed) {
				t.Fatalf("behind a rule that doesn't hold: %v, before %v", moved, got)
			}
			return
		}
		if last := mustSteps(t, reg, append(rules, planner.StepRule{})).Match(f); last.Rule != len(rules) {
			t.Fatalf("a last rule without when: got %v, want rule %d", last, len(rules))
		}
	})
}

func drawLeaf(t *rapid.T) string {
	return rapid.SampledFrom([]string{"true", "false", "context.absent"}).Draw(t, "later")
}

// TestRegistriesWithStepsLaws: step rules of profiles survive the registry's
// encoding, in any order of the profiles.
func TestRegistriesWithStepsLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		def := drawRegistry(t)
		plain := mustRegistry(t, def)
		for i := range def.Profiles {
			switch rapid.IntRange(0, 2).Draw(t, "steps") {
			case 0:
				def.Profiles[i].Steps = []planner.StepRule{}
			case 1:
				def.Profiles[i].Steps = drawSteps(t, plain)
			}
		}
		reg := mustRegistry(t, def)
		other := def
		if len(def.Profiles) > 0 {
			other.Profiles = rapid.Permutation(def.Profiles).Draw(t, "profiles again")
		}
		if got, want := mustRegistry(t, other).Hash(), reg.Hash(); got != want {
			t.Fatalf("another order gives hash %s, want %s", got, want)
		}
		again, err := planner.ParseRegistry(reg.Bytes())
		if err != nil || again.Hash() != reg.Hash() {
			t.Fatalf("parse what Bytes wrote: %v", err)
		}
		for _, p := range def.Profiles {
			steps := again.ProfileSteps(p.Profile)
			if (steps == nil) != (p.Steps == nil) || steps.Len() != len(p.Steps) {
				t.Fatalf("profile %s: got %d rules, nil %t; want %d", p.Profile, steps.Len(), steps == nil, len(p.Steps))
			}
			for i := range p.Steps {
				if got, want := encode(t, steps.Rule(i)), encode(t, p.Steps[i]); string(got) != string(want) {
					t.Fatalf("rule %d: got %x, want %x", i, got, want)
				}
			}
		}
		for i, p := range reg.Profiles() {
			if len(p.Steps) > 0 {
				p.Steps[0].When = "changed" // the caller's own
				if reg.Profiles()[i].Steps[0].When == "changed" {
					t.Fatal("the registry's rules can be changed from outside")
				}
			}
		}
	})
}

// FuzzWhen: any when compiles or is refused without a panic, in our words,
// repeatably, and can be matched.
func FuzzWhen(f *testing.F) {
	for _, text := range []string{
		"", "true", `used("read")`, `used(last[0])`, `context.a.b["c"]`, `last.exists(x, x in context.l)`, "((((", "[[[[", "!!!!!", "1 ? 2 : 3", `"\u00`,
		"a.b.c.d", "{1: 2}", "x{a: 1}", "b'a'", "1u", "-9223372036854775808 == step", "// only words", "`a`", ".step == 1", "step.all(step, step)",
		`context.l.exists_one(a, context.l.exists_one(b, false))`, "last.exists_one(__result__, true)", "last.all(@result, true)", "\x00", "\xff", "1e400",
		strings.Repeat("(", 300), strings.Repeat("[1,", 300), strings.Repeat("a?", 300), strings.Repeat("-", 900), "last" + strings.Repeat(".a", 400),
	} {
		f.Add(text, `{"a":{"b":{"c":1}},"l":[1,"read"]}`)
	}
	reg := stepRegistry(f)
	f.Fuzz(func(t *testing.T, text, context string) {
		facts := planner.StepFacts{Step: 1, Used: []string{"a.tool"}, Last: []string{"read", "tool"}, Context: []byte(context)}
		if packed, err := codec.FromJSON([]byte(context)); err == nil {
			facts.Context = packed
		}
		rules := []planner.StepRule{{When: text}}
		steps, bad := planner.CompileSteps(reg, rules)
		again, badAgain := planner.CompileSteps(reg, rules)
		if (bad == nil) != (badAgain == nil) || bad != nil && *bad != *badAgain {
			t.Fatalf("compiled twice: %v, then %v", bad, badAgain)
		}
		if bad != nil {
			if bad.Path != "[0].when" || len(bad.Detail) > planner.DetailBytesMax {
				t.Fatalf("path %s, detail %q", bad.Path, bad.Detail)
			}
			return
		}
		got, more := steps.Match(facts), again.Match(facts)
		if fmt.Sprint(got) != fmt.Sprint(more) {
			t.Fatalf("matched twice: %v, then %v", got, more)
		}
		if len(got.Failed) > 0 && got.Rule == 0 {
			t.Fatalf("it failed and holds: %v", got)
		}
	})
}
