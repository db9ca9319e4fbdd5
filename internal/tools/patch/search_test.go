package patch

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSearchAgainstOracle compares the linear search with the obvious one.
func TestSearchAgainstOracle(t *testing.T) {
	t.Parallel()
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 0, 12)
	rapid.Check(t, func(t *rapid.T) {
		have := lines.Draw(t, "have")
		want := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 5).Draw(t, "want")
		wantPlace, wantMatched, wantAfter := obvious(have, want)
		place, matched, after := search(have, want)
		if place != wantPlace || matched != wantMatched || after != wantAfter {
			t.Fatalf("search(%q, %q): got %d %d %d, want %d %d %d",
				have, want, place, matched, after, wantPlace, wantMatched, wantAfter)
		}
	})
}

func obvious(have, want []string) (place, matched, after int) {
	for start := range have {
		n := 0
		for n < len(want) && start+n < len(have) && have[start+n] == want[n] {
			n++
		}
		// The search knows a prefix by where it ends: the first to end wins.
		for k := matched + 1; k <= n; k++ {
			matched, after = k, start+k
		}
		if n == len(want) {
			return start, n, start + n
		}
	}
	return -1, matched, after
}

func TestLevelsAreOrdered(t *testing.T) {
	t.Parallel()
	texts := []string{"a", "a ", " a", "\ta\t", "a-b", "a\u2014b ", "\u201cq\u201d", "\"q\"", "", "  "}
	for level := range len(levels) - 1 {
		for _, x := range texts {
			for _, y := range texts {
				strict, loose := mapped([]string{x, y}, level), mapped([]string{x, y}, level+1)
				if strict[0] == strict[1] && loose[0] != loose[1] {
					t.Errorf("%q and %q are equal at level %d and not at %d", x, y, level, level+1)
				}
			}
		}
	}
	if got := mapped(texts, 3); !slices.Contains(got, "a-b") || got[5] != "a-b" || got[6] != `"q"` {
		t.Errorf("punctuation is not plain: %q", got)
	}
}
