package planner

import (
	"regexp/syntax"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestPatternStatesAreNeverFewer compares the count with the compiler's, for
// expressions small enough to compile.
func TestPatternStatesAreNeverFewer(t *testing.T) {
	t.Parallel()
	const fixed = 3 // the program's fail, match and jump
	rapid.Check(t, func(t *rapid.T) {
		text := drawPattern(t, 4)
		parsed, err := syntax.Parse(text, syntax.Perl)
		if err != nil {
			return // not RE2
		}
		states, err := PatternStates(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if states > 100_000 {
			return // too large to compile here
		}
		program, err := syntax.Compile(parsed.Simplify())
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if got := len(program.Inst); got > states+fixed {
			t.Errorf("%q compiles to %d states, counted %d", text, got, states)
		}
	})
}

// drawPattern draws an expression of a few levels.
func drawPattern(t *rapid.T, depth int) string {
	leaf := rapid.SampledFrom([]string{"a", "abc", ".", "[a-z0-9]", `\pL`, `\d`, "(?i)kelvin", "^", "$", `\b`, ""})
	if depth == 0 {
		return leaf.Draw(t, "leaf")
	}
	sub := func() string { return drawPattern(t, depth-1) }
	switch rapid.IntRange(0, 6).Draw(t, "shape") {
	case 0:
		return sub() + sub() + sub()
	case 1:
		return "(" + sub() + "|" + sub() + "|" + sub() + ")"
	case 2:
		return "(?:" + sub() + ")" + rapid.SampledFrom([]string{"*", "+", "?", "*?", "+?", "??"}).Draw(t, "times")
	case 3:
		return "(?:" + sub() + ")" + rapid.SampledFrom([]string{"{0}", "{1}", "{0,1}", "{3}", "{2,}", "{0,}", "{2,9}", "{7,7}?"}).Draw(t, "repeat")
	case 4:
		return "(" + sub() + ")"
	}
	return leaf.Draw(t, "leaf")
}

// TestLargePatternsAreNotCompiled: the size of a pattern is known before it is
// compiled. The compiler took seconds and a gigabyte for these.
func TestLargePatternsAreNotCompiled(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"((((a{100}){10}){10}){10}){10}", strings.Repeat("(a{1000}|b{1000})", 40), "(?:(?:x{30}){30}){30}", strings.Repeat("a{900}", 100),
	} {
		begun := time.Now()
		_, problem := compilePattern(text, &patternRoom{})
		if !strings.Contains(problem, "too large") && !strings.Contains(problem, "does not compile") {
			t.Errorf("%q: got %q, want it refused as too large", text, problem)
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("%q: refused after %v", text, took)
		}
	}
}
