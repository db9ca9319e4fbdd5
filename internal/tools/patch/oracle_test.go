//go:build nightly

package patch_test

// Compares this package with another implementation of the format.
// REFOLD_V4A_APPLIER is the path of a program that takes the patch as its only
// argument and applies it to the files of its working directory. It is run
// under the name apply_patch, which some such programs need.

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// differs lists the cases on which the two shall not agree; doc.go says why.
// One that agrees all the same fails the test: the list has gone stale.
var differs = map[string]bool{
	"add": true, "add_exists": true, "blank_before_end": true, "header_line_numbers": true, "header_repeated": true,
	"headers": true, "headers_loose": true, "insert_below_header": true, "move_exists": true, "move_only": true,
}

func applier(t *testing.T) string {
	t.Helper()
	program := os.Getenv("REFOLD_V4A_APPLIER")
	if program == "" {
		t.Fatal("REFOLD_V4A_APPLIER is not set: give it the path of an applier of the form")
	}
	link := filepath.Join(t.TempDir(), "apply_patch")
	must(t, os.Symlink(program, link))
	return link
}

// other applies a patch with the other applier.
func other(t *testing.T, program, text string, before tree) (tree, error) {
	t.Helper()
	dir := t.TempDir()
	for path, content := range before {
		name := filepath.Join(dir, path)
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must(t, os.WriteFile(name, []byte(content), 0o644))
	}
	c := exec.Command(program, text)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	after := tree{}
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		after[filepath.ToSlash(rel)] = string(data)
		return err
	})
	must(t, err)
	return after, nil
}

func TestVectorsAgainstOther(t *testing.T) {
	program := applier(t)
	names, _ := filepath.Glob("testdata/*.txtar")
	for _, name := range names {
		base := strings.TrimSuffix(filepath.Base(name), ".txtar")
		v := readVector(t, name)
		after, err := other(t, program, v.patch, v.before)
		same := (err != nil) == (v.err != "") && (err != nil || maps.Equal(after, v.after))
		if same == differs[base] {
			t.Errorf("%s: same %t, want %t; the other applier: %q, %v", base, same, !differs[base], after, err)
		}
	}
}

// TestRandomAgainstOther: on patches without known differences, both agree
// whether one applies, and on the resulting file.
func TestRandomAgainstOther(t *testing.T) {
	program := applier(t)
	random := rand.New(rand.NewPCG(1, 2))
	lines := []string{"a", "b", "c", " a", "a ", "\tb", "x-y", "x\u2014y"}
	headers := []string{"one", "two"}
	inFile := append(append([]string{""}, headers...), lines...)
	applied := 0
	for n := range 1500 {
		before := ""
		for range random.IntN(10) {
			before += inFile[random.IntN(len(inFile))] + "\n"
		}
		text := "*** Begin Patch\n*** Update File: f\n"
		for range 1 + random.IntN(2) {
			text += "@@"
			if random.IntN(3) == 0 {
				text += " " + headers[random.IntN(2)]
			}
			text += "\n-" + lines[random.IntN(len(lines))] + "\n"
			for range random.IntN(4) {
				text += string(" -+"[random.IntN(3)]) + lines[random.IntN(len(lines))] + "\n"
			}
			if random.IntN(5) == 0 {
				text += "*** End of File\n"
			}
		}
		text += "*** End Patch"
		got, gotErr := apply(text, tree{"f": before})
		want, wantErr := other(t, program, text, tree{"f": before})
		if (gotErr != nil) != (wantErr != nil) || gotErr == nil && !maps.Equal(got, want) {
			t.Errorf("case %d: before %q\n%s\n got %q %v\nwant %q %v", n, before, text, got, gotErr, want, wantErr)
		}
		if wantErr == nil {
			applied++
		}
	}
	if applied < 100 {
		t.Errorf("only %d of the patches applied: the test says little", applied)
	}
}
