package nearest_test

// Suggestions for misspelt names, and the distance against a slow implementation.

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/refold/refold/codec/nearest"
)

func TestName(t *testing.T) {
	t.Parallel()
	known := []string{"approval", "command", "model", "models", "tools", "to", strings.Repeat("x", 33)}
	for name, want := range map[string]string{
		"aproval": "approval", "comand": "command", "ocmmand": "command", "modle": "model", "modelss": "models",
		"Command": "command", "commnad_": "command", "": "", "tz": "", "tolos": "tools", "topics": "", "nothing": "", "model": "models",
		strings.Repeat("x", 32): "", strings.Repeat("y", 1<<20): "",
	} {
		if got := nearest.Name(name, known); got != want {
			t.Errorf("%.40q: got %q, want %q", name, got, want)
		}
	}
}

// TestNameIsNearest: no known name needs fewer edits than the returned one, and no
// earlier one as few.
func TestNameIsNearest(t *testing.T) {
	t.Parallel()
	word := rapid.StringMatching(`[abc]{1,8}`)
	rapid.Check(t, func(t *rapid.T) {
		name, known := word.Draw(t, "name"), rapid.SliceOfN(word, 1, 6).Draw(t, "known")
		want, fewest := "", min(3, len(name)/3)+1
		for _, k := range known {
			if edits := slow(name, k); k != name && edits < fewest {
				want, fewest = k, edits
			}
		}
		if got := nearest.Name(name, known); got != want {
			t.Fatalf("%q among %q: got %q, want %q", name, known, got, want)
		}
	})
}

// slow is the distance by its definition.
func slow(a, b string) int {
	if a == "" || b == "" {
		return len(a) + len(b)
	}
	change := 1
	if a[len(a)-1] == b[len(b)-1] {
		change = 0
	}
	n := min(slow(a[:len(a)-1], b)+1, slow(a, b[:len(b)-1])+1, slow(a[:len(a)-1], b[:len(b)-1])+change)
	if len(a) > 1 && len(b) > 1 && a[len(a)-1] == b[len(b)-2] && a[len(a)-2] == b[len(b)-1] {
		n = min(n, slow(a[:len(a)-2], b[:len(b)-2])+1)
	}
	return n
}
