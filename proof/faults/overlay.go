package main

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/refold/refold/codec/nearest"
)

// fault is one fault: edits of source text, and the test that must fail with them.
type fault struct {
	name, does string
	test, pkg  string
	edits      []edit
}

// edit replaces lines of a file.
type edit struct {
	file     string // from the module's root on
	old, new []string
}

//go:embed *.txt
var files embed.FS

// readFaults reads the embedded files of faults.
func readFaults() (all []*fault, err error) {
	for _, name := range []string{"bridge.txt", "engine.txt", "lane.txt"} {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		some, err := parse(name, string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// parse reads one file of faults.
func parse(name, text string) (all []*fault, err error) {
	var f *fault
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSuffix(line, "\n")
		word, rest, _ := strings.Cut(line, " ")
		ok := f != nil
		switch {
		case line == "" || word == "#":
			ok = true
		case word == "fault":
			f = &fault{test: "TestSimulation", pkg: "./proof/sim"}
			f.name, f.does, ok = strings.Cut(rest, ": ")
			all = append(all, f)
		case ok && word == "found":
			f.test, f.pkg, ok = strings.Cut(strings.TrimPrefix(rest, "by "), " in ")
		case ok && word == "edit":
			f.edits = append(f.edits, edit{file: rest})
		case ok && len(f.edits) > 0 && strings.ContainsAny(line[:1], "-+ "):
			e := &f.edits[len(f.edits)-1]
			if line[0] != '+' {
				e.old = append(e.old, line[1:])
			}
			if line[0] != '-' {
				e.new = append(e.new, line[1:])
			}
		default:
			ok = false
		}
		if !ok {
			return nil, fmt.Errorf("%s:%d: not a line of a fault: %q", name, n, line)
		}
	}
	return all, nil
}

// choose returns the faults of those names, or all if there are none.
func choose(all []*fault, names []string) (chosen []*fault, err error) {
	if len(names) == 0 {
		return all, nil
	}
	var known []string
	for _, f := range all {
		known = append(known, f.name)
	}
	for _, name := range names {
		i := slices.Index(known, name)
		if i < 0 {
			meant := cmp.Or(nearest.Name(name, known), "one of "+strings.Join(known, ", "))
			return nil, fmt.Errorf("there is no fault %q; did you mean %s?", name, meant)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// overlayFile is the file for -overlay.
const overlayFile = "overlay.json"

// overlay writes overlayFile and the edited files into dir, which must exist.
func (f *fault) overlay(root, dir string) error {
	edited, err := f.apply(root)
	if err != nil {
		return err
	}
	replace := map[string]string{}
	for file, text := range edited {
		at := filepath.Join(dir, strings.ReplaceAll(file, "/", "+"))
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			return err
		}
		replace[filepath.Join(root, file)] = at
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, overlayFile), text, 0o600)
}

// apply returns the text of each file that the fault edits.
func (f *fault) apply(root string) (edited map[string]string, err error) {
	edited = map[string]string{}
	for _, e := range f.edits {
		text, ok := edited[e.file]
		if !ok {
			read, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return nil, fmt.Errorf("fault %s: %w", f.name, err)
			}
			text = string(read)
		}
		if edited[e.file], err = e.apply(text); err != nil {
			return nil, fmt.Errorf("fault %s: %w", f.name, err)
		}
	}
	return edited, nil
}

// apply returns a file's text after the edit.
func (e *edit) apply(text string) (string, error) {
	lines := strings.Split(text, "\n")
	same := func(a, b string) bool { return code(a) == code(b) }
	var places []int
	for i := range len(lines) - len(e.old) + 1 {
		if len(e.old) > 0 && slices.EqualFunc(lines[i:i+len(e.old)], e.old, same) {
			places = append(places, i)
		}
	}
	if len(places) != 1 {
		return "", fmt.Errorf("%s has these lines in %d places, and an edit needs one:\n%s", e.file, len(places), strings.Join(e.old, "\n"))
	}
	return strings.Join(slices.Replace(lines, places[0], places[0]+len(e.old), e.new...), "\n"), nil
}

// code returns a line without indentation, and without a comment after its code.
func code(line string) string {
	before, _, _ := strings.Cut(strings.TrimSpace(line), " // ")
	return before
}
