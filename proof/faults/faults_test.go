package main

// The files of faults are checked against the tree: each edit fits, and the edited
// package compiles. One fault of the tree, and some of a small module, are built
// in and tried.

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rootHere is the module's root.
const rootHere = "../.."

func TestFaultsFitTheTree(t *testing.T) {
	t.Parallel()
	all, err := readFaults()
	if err != nil {
		t.Fatal(err)
	}
	var dirs, names []string
	for _, f := range all {
		for _, e := range f.edits {
			dirs = append(dirs, "./"+filepath.Dir(e.file))
		}
	}
	listed := listPackages(t, dirs)
	for _, f := range all {
		if f.does == "" || len(f.edits) == 0 || slices.Contains(names, f.name) {
			t.Errorf("fault %s: does nothing, or is listed twice", f.name)
		}
		names = append(names, f.name)
		edited, err := f.apply(rootHere)
		if err != nil {
			t.Error(err)
			continue
		}
		if err := listed.check(edited); err != nil {
			t.Errorf("fault %s: %v", f.name, err)
		}
		if !hasTest(t, f) {
			t.Errorf("fault %s: there is no %s in %s", f.name, f.test, f.pkg)
		}
	}
	// The check itself: an unused variable must be an error.
	f := fault{edits: []edit{{file: "internal/worker/claim.go", old: []string{"if n != f.claims.asked {"}, new: []string{"unused := 1", "if n != f.claims.asked {"}}}}
	edited, err := f.apply(rootHere)
	if err != nil {
		t.Fatal(err)
	}
	if err := listed.check(edited); err == nil || !strings.Contains(err.Error(), "unused") {
		t.Errorf("an edit with an unused variable: got %v, want an error", err)
	}
}

// hasTest reports whether the package of a fault's test has it.
func hasTest(t *testing.T, f *fault) bool {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(rootHere, f.pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(paths, func(path string) bool {
		text, err := os.ReadFile(path)
		return err == nil && strings.Contains(string(text), "func "+f.test+"(t *testing.T)")
	})
}

// packages are some packages as the go command lists them, by their directory.
type packages struct {
	files   map[string][]string
	exports map[string]string // what was compiled, by import path
}

func listPackages(t *testing.T, dirs []string) packages {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Dir}} {{.Export}} {{join .GoFiles \",\"}}"}, dirs...)...)
	list.Dir = rootHere
	list.Stderr = os.Stderr
	said, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	root, err := filepath.Abs(rootHere)
	if err != nil {
		t.Fatal(err)
	}
	p := packages{map[string][]string{}, map[string]string{}}
	for line := range strings.Lines(string(said)) {
		is := strings.Split(strings.TrimSpace(line), " ")
		if len(is) != 4 {
			continue // unsafe has no file
		}
		p.exports[is[0]] = is[2]
		if dir, err := filepath.Rel(root, is[1]); err == nil {
			p.files[filepath.ToSlash(dir)] = strings.Split(is[3], ",")
		}
	}
	return p
}

// check type-checks the packages of edited files.
func (p packages) check(edited map[string]string) error {
	for file := range edited {
		fset, dir := token.NewFileSet(), filepath.Dir(file)
		var asts []*ast.File
		for _, name := range p.files[dir] {
			path := dir + "/" + name
			var text any // nil: as it is on the disk
			if is, ok := edited[path]; ok {
				text = is
			}
			one, err := parser.ParseFile(fset, filepath.Join(rootHere, path), text, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			asts = append(asts, one)
		}
		conf := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(p.exports[path]) })}
		if _, err := conf.Check(dir, fset, asts, nil); err != nil {
			return err
		}
	}
	return nil
}

func TestEditMustMatchOnePlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "p/p.go", "package p\n\nfunc f() {\n\tg()\n\tif g() { // why\n\t\tg()\n\t}\n}\n")
	for _, c := range []struct{ old, new, want string }{
		{"if g() {\n g()", "h()", "package p\n\nfunc f() {\n\tg()\nh()\n\t}\n}\n"},
		{"g()", "h()", "fault x: p/p.go has these lines in 2 places, and an edit needs one:\ng()"},
		{"g()\nh()", "", "fault x: p/p.go has these lines in 0 places, and an edit needs one:\ng()\nh()"},
	} {
		f := fault{name: "x", edits: []edit{{file: "p/p.go", old: strings.Split(c.old, "\n"), new: strings.Split(c.new, "\n")}}}
		edited, err := f.apply(dir)
		got := edited["p/p.go"]
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q: got %q, want %q", c.old, got, c.want)
		}
	}
	f := fault{name: "x", edits: []edit{{file: "p/gone.go"}}}
	if _, err := f.apply(dir); err == nil || !strings.Contains(err.Error(), "fault x: open ") || !strings.Contains(err.Error(), "p/gone.go") {
		t.Errorf("a file that is not there: got %v", err)
	}
}

// TestFindReportsWhatFoundTheFault: a failing test finds a fault, a passing test
// misses it, and a fault that does not compile is an error.
func TestFindReportsWhatFoundTheFault(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "go.mod", "module m\n\ngo 1.26\n")
	write(t, dir, "p/p.go", "package p\n\nfunc one() int {\n\treturn 1\n}\n")
	write(t, dir, "p/p_test.go", "package p\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n\tif one() != 1 {\n\t\tt.Error()\n\t}\n}\n")
	for _, c := range []struct{ new, want string }{
		{"return 2", "found by TestOne"},
		{"return 1 + 0", ""},
		{"return x", "undefined: x"},
	} {
		f := fault{test: "TestOne", pkg: "./p", edits: []edit{{file: "p/p.go", old: []string{"return 1"}, new: []string{c.new}}}}
		got, err := f.find(t.Context(), dir, 1)
		if err != nil && strings.Contains(err.Error(), c.want) {
			got = c.want
		}
		if got != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.new, got, err, c.want)
		}
	}
}

func TestSimulationFindsAFault(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := run(t.Context(), []string{"-seeds", "1", "no-claim"}, &out); err != nil {
		t.Error(err)
	}
	if got, want := out.String(), fmt.Sprintf("%-22s found by seed 0: ", "no-claim"); !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q and the rule", got, want)
	}
}

func TestWritesAnOverlay(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	if err := run(t.Context(), []string{"-write", dir, "gap-ignored"}, io.Discard); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, overlayFile))
	if want := `/internal/delivery/lane_epoch.go":"` + dir + `/internal+delivery+lane_epoch.go"`; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
	if err := run(t.Context(), []string{"-write", dir}, io.Discard); err == nil || !strings.Contains(err.Error(), "one fault") {
		t.Errorf("of all faults: got %v, want an error", err)
	}
}

func TestUnknownFaultNameSuggestsNearest(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"no-clam": "did you mean no-claim?", "xyz": "did you mean one of no-claim, claim-not-looked, "} {
		err := run(t.Context(), []string{"-list", name}, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
}

func TestMalformedFaultFileNamesItsLine(t *testing.T) {
	t.Parallel()
	for text, line := range map[string]int{
		"edit p/p.go\n": 1, "fault x\n": 1, "fault x: y\n- z\n": 2, "fault x: y\n\nfound by TestX\n": 3, "fault x: y\nedit p.go\nfind\n": 3,
	} {
		_, err := parse("a.txt", text)
		if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("a.txt:%d: ", line)) {
			t.Errorf("%q: got %v, want an error of line %d", text, err, line)
		}
	}
}

func write(t *testing.T, dir, file, text string) {
	t.Helper()
	path := filepath.Join(dir, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
