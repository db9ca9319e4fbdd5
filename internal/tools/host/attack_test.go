package host

// Everything that a model controls is bounded and can be cancelled: patterns, trees
// and lines that would take hours without limits and checks of the context.

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/bmatcuk/doublestar/v4"
)

// countdown is a context that is cancelled when it has been looked at so often:
// what never looks at it does not end.
type countdown struct {
	context.Context
	left atomic.Int64
}

func newCountdown(ctx context.Context, looks int64) *countdown {
	c := &countdown{Context: ctx}
	c.left.Store(looks)
	return c
}

// Err is context.Canceled once the looks are used up.
func (c *countdown) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return c.Context.Err()
}

// TestAttackGlobOfManyBraces: 26 groups of two stand for 67 million patterns.
func TestAttackGlobOfManyBraces(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, map[string]string{"f": "text\n"})
	braces := strings.Repeat("{a,b}", 26)
	wantIn(t, r.refused(CodeTooLarge, ToolGlob, args{"pattern": braces}), "more than 256", "fewer")
	wantIn(t, r.refused(CodeTooLarge, ToolGrep, args{"pattern": "text", "glob": braces}), "more than 256", "fewer")
	nested := strings.Repeat("{a,", 120) + "b" + strings.Repeat("}", 120)
	wantOutput(t, "nested", r.ok(ToolGlob, args{"pattern": nested}), "no matches")
	wantIn(t, r.refused(CodeTooLarge, ToolGlob, args{"pattern": strings.Repeat("a", globBytesMax+1)}), "at most 1024")
}

// TestAttackGlobOfManyDirectories: each ** walks everything that the one before
// it found, so a few of them visit a deep tree millions of times.
func TestAttackGlobOfManyDirectories(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, map[string]string{strings.Repeat("a/", 40) + "f": "text\n"})
	pattern := strings.Repeat("**/a/", 8) + "nothing"
	wantIn(t, r.refused(CodeTooLarge, ToolGlob, args{"pattern": pattern}), "2000000", "narrower")
	for _, tool := range []string{ToolGlob, ToolGrep, ToolListDir} {
		call := r.newCall(tool, map[string]args{
			ToolGlob: {"pattern": pattern}, ToolGrep: {"pattern": "text"}, ToolListDir: {},
		}[tool])
		got := r.execute(newCountdown(t.Context(), 3), call)
		if got.Error == nil || got.Error.Code != CodeCancelled {
			t.Errorf("%s: got %v %q, want %s", tool, got.Error, got.Output, CodeCancelled)
		}
	}
}

// TestAttackGrepOfManyStates: repeats of repeats are a few bytes of text and a
// gigabyte of program.
func TestAttackGrepOfManyStates(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, map[string]string{"f": "text\n"})
	for _, pattern := range []string{"((((a{100}){10}){10}){10}){10}", strings.Repeat("a{900}", 20), strings.Repeat("(?:x|yz)", 600)} {
		got := r.call(ToolGrep, args{"pattern": pattern})
		if got.Error == nil || got.Error.Code != CodeTooLarge && got.Error.Code != CodeInvalidArguments {
			t.Errorf("%.40q: got %+v, want it refused", pattern, got)
		}
	}
	wantIn(t, r.refused(CodeTooLarge, ToolGrep, args{"pattern": "(?:abcdefghij){900}"}), "states")
}

// TestAttackGrepOfALongLine: one match of a large expression against a line of a
// megabyte takes billions of steps. It ends with its call.
func TestAttackGrepOfALongLine(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, map[string]string{"f": strings.Repeat("x", 900<<10) + "\nxyz\n"})
	call := r.newCall(ToolGrep, args{"pattern": "(?:x?){900}y"})
	got := r.execute(newCountdown(t.Context(), 100), call)
	if got.Error == nil || got.Error.Code != CodeCancelled {
		t.Errorf("got %v %q, want %s", got.Error, got.Output, CodeCancelled)
	}
	// The slow way and the quick one agree.
	wantOutput(t, "slow", r.ok(ToolGrep, args{"pattern": "(?:xy?){40}z|xyz$"}), "f:2:xyz\n")
}

// TestAttackPatchOfManySections: a patch ends with its call, even if it names
// the same large file many times.
func TestAttackPatchOfManySections(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, map[string]string{"f": strings.Repeat("a\n", 2<<20)})
	text := "*** Begin Patch\n" + strings.Repeat("*** Update File: f\n@@\n-a\n", 5000) + "*** End Patch"
	wantIn(t, r.refused(CodePatchFailed, ToolApplyPatch, args{"patch": text}), "nothing was changed", "several smaller patches")
	got := r.execute(newCountdown(t.Context(), 600), r.newCall(ToolApplyPatch, args{"patch": text}))
	if got.Error == nil || got.Error.Code != CodeCancelled && got.Error.Code != CodePatchFailed {
		t.Errorf("got %+v, want it ended", got)
	}
}

// TestExpandedBracesMatchTheSame: braces become every choice of one alternative
// each, and nothing else changes. A path that matches the glob matches an
// expanded one too. The reverse does not hold: doublestar 4 does not match
// "*{,a}" with an empty rest.
func TestExpandedBracesMatchTheSame(t *testing.T) {
	t.Parallel()
	alternatives := map[string][]string{"{a,b}": {"a", "b"}, "{,a}": {"", "a"}, "{a,{b,/}}": {"a", "b", "/"}, "{a*,?b}": {"a*", "?b"}, "{a}": {"a"}}
	piece := rapid.SampledFrom([]string{"a", "b", "*", "?", "[ab]", "[!{]", `\{`, `\,`, "/", "{a,b}", "{,a}", "{a,{b,/}}", "{a*,?b}", ",", "{a}"})
	name := rapid.StringOfN(rapid.RuneFrom([]rune("ab/{,")), 1, 6, -1)
	rapid.Check(t, func(t *rapid.T) {
		pieces := append([]string{rapid.SampledFrom([]string{"", "**/"}).Draw(t, "first")}, rapid.SliceOfN(piece, 1, 5).Draw(t, "glob")...)
		want := []string{""}
		for _, p := range pieces {
			choices, ok := alternatives[p]
			if !ok {
				choices = []string{p}
			}
			var longer []string
			for _, begun := range want {
				for _, choice := range choices {
					longer = append(longer, begun+choice)
				}
			}
			want = longer
		}
		glob := strings.Join(pieces, "")
		got, ok := expandBraces(nil, glob)
		if !ok || !slices.Equal(got, want) {
			t.Fatalf("%q is expanded to %q (few enough: %v), want %q", glob, got, ok, want)
		}
		text := name.Draw(t, "name")
		if doublestar.MatchUnvalidated(glob, text) && !slices.ContainsFunc(got, func(one string) bool { return doublestar.MatchUnvalidated(one, text) }) {
			t.Errorf("%q matches %q, and none of %q does", glob, text, got)
		}
	})
}

// TestLargeDirectoriesAreCounted: entries that are not shown are counted, and
// not looked up.
func TestLargeDirectoriesAreCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, nil)
	for i := range namesMax + 10 {
		if err := os.WriteFile(filepath.Join(r.dir, fmt.Sprintf("f%05d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wantIn(t, r.ok(ToolListDir, nil), "[10 more;")
}
