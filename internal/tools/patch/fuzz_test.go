package patch_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"

	"github.com/refold/refold/internal/tools/patch"
)

// FuzzPatch checks the laws on any text: no panic, all or nothing, correct
// earlier contents, and the same result twice.
func FuzzPatch(f *testing.F) {
	names, _ := filepath.Glob("testdata/*.txtar")
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		var text, content string
		for _, part := range txtar.Parse(data).Files {
			switch {
			case part.Name == "patch":
				text = string(part.Data)
			case strings.HasPrefix(part.Name, "before/"):
				content = string(part.Data)
			}
		}
		f.Add(text, content)
	}
	f.Fuzz(func(t *testing.T, text, content string) {
		p, err := patch.Parse(text)
		if err != nil {
			if p != nil {
				t.Fatalf("an error and a patch: %v", err)
			}
			return
		}
		// Every second file that the patch names exists.
		files := tree{}
		for i, s := range p.Sections {
			if i%2 == 0 && s.Kind != patch.Add {
				files[s.Path] = content
			}
		}
		before := maps.Clone(files)
		changes, err := p.Changes(t.Context(), files.read)
		if err != nil && changes != nil {
			t.Fatalf("an error and changes: %v", err)
		}
		if !maps.Equal(files, before) {
			t.Fatal("the files that were read changed")
		}
		for _, c := range changes {
			if was, existed := before[c.Path]; c.Existed != existed || c.Before != was {
				t.Errorf("%s: says that it was %q (%t), want %q (%t)", c.Path, c.Before, c.Existed, was, existed)
			}
			if c.Existed == c.Exists && c.Before == c.After {
				t.Errorf("%s: a change that changes nothing", c.Path)
			}
		}
		again, errAgain := p.Changes(t.Context(), files.read)
		if fmt.Sprint(again, errAgain) != fmt.Sprint(changes, err) {
			t.Errorf("second time %v, %v; first %v, %v", again, errAgain, changes, err)
		}
	})
}

// TestWholeFileHunkIsExact: a hunk with all lines of a file gives exactly its
// new lines, however often lines repeat.
func TestWholeFileHunkIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{"a", "b", " a", "", "a ", "@@", "*** End Patch", "+", "\ta", "“a”"})
		ops := rapid.SliceOfN(rapid.SampledFrom([]byte(" -+")), 1, 30).Draw(t, "ops")
		var body, before, after strings.Builder
		found := false
		for _, op := range ops {
			text := line.Draw(t, "line")
			fmt.Fprintf(&body, "%c%s\n", op, text)
			if op != '+' {
				before.WriteString(text + "\n")
				found = true
			}
			if op != '-' {
				after.WriteString(text + "\n")
			}
		}
		if !found {
			before.Reset() // additions alone, to an empty file
		}
		got, err := apply("*** Begin Patch\n*** Update File: f\n@@\n"+body.String()+"*** End Patch\n", tree{"f": before.String()})
		if err != nil {
			t.Fatal(err)
		}
		if got["f"] != after.String() {
			t.Fatalf("got %q, want %q", got["f"], after.String())
		}
	})
}
