// Package api holds releases to what they promise. It derives lines of text from the
// code, such as
//
//	client: func Connect(context.Context, client.Options) (*client.Client, error)
//	RunRequest requires ["input"]
//	refold sessions --json prints .state string
//
// and compares them with the files of the directory api, of which the lines are what the
// version in its path promises. docs/stability.md says for how long.
//
// # Files
//
// Each file is derived from what says the same already: go.txt from the types of the
// public packages, http.txt from web/openapi.json, wire.txt from docs/schemas, and a
// file for each program from the flags that its parser has, and from the types that it
// prints as JSON.
//
// # Changes
//
// A line that only the code has is an addition: the test fails until the file has it, and
// -rewrite adds it. A line that only the file has is something that programs of others may
// use: -rewrite never removes it. A change is one of each. Not every such change breaks a
// program; whoever deletes the line decides, and says so in CHANGELOG.md.
//
// Values that a program sends have lines about what is taken, and values that it gets have
// lines about what is there. So a field that is required from now on, a value that is
// refused and a limit that differs are changes of what is sent; a field that may be absent
// from now on is a change of what is got.
package api

import (
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "add new lines to the files of the directory api")

// Check compares lines with those of a file in the directory api below root.
func Check(t *testing.T, root, file string, lines []string) {
	t.Helper()
	versions, err := filepath.Glob(filepath.Join(root, "api", "*"))
	if err != nil || len(versions) != 1 {
		t.Fatalf("the directory api has %d versions (%v), want one: %q", len(versions), err, versions)
	}
	version := filepath.Base(versions[0])
	at := filepath.Join(versions[0], file)
	text, err := os.ReadFile(at)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	held := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(text) == 0 {
		held = nil
	}
	gone, added := compare(held, lines)
	if *rewrite && len(added) > 0 {
		all := sorted(slices.Concat(held, added))
		if err := os.WriteFile(at, []byte(strings.Join(all, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		added = nil
	}
	for _, complaint := range complaints(version, path.Join("api", version, file), gone, added) {
		t.Error(complaint)
	}
}

// compare returns the lines that only a file has, and those that only the code has.
func compare(held, now []string) (gone, added []string) {
	without := func(lines, others []string) (rest []string) {
		known := make(map[string]bool, len(others))
		for _, line := range others {
			known[line] = true
		}
		for _, line := range lines {
			if !known[line] {
				rest = append(rest, line)
			}
		}
		return rest
	}
	return without(held, now), without(now, held)
}

// complaints says what the lines mean, and what to do.
func complaints(version, file string, gone, added []string) (all []string) {
	show := func(lines []string) string { return "\n  " + strings.Join(lines, "\n  ") + "\n" }
	if len(gone) > 0 {
		all = append(all, fmt.Sprintf("%s has lines that are not true any more:%s"+
			"Version %[3]s promises them, and programs may use what they name: keep that beside what is new, and deprecate it. "+
			"What a released version has deprecated may go in the next minor version: rename the directory api/%[3]s to it, delete the lines, and write the change in CHANGELOG.md. "+
			"Before %[3]s.0 is released, only delete the lines. CONTRIBUTING.md has more.", file, show(gone), version))
	}
	if len(added) > 0 {
		all = append(all, fmt.Sprintf("%s lacks lines:%s"+
			"What is released is promised, so read them: is each meant to stay? Then add them: make api", file, show(added)))
	}
	return all
}

func sorted(lines []string) []string {
	slices.Sort(lines)
	return slices.Compact(lines)
}
