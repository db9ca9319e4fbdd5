package docs_test

// Tables that promise something name the tests that hold each of their lines:
// the hard edges in docs/operations.md, the promises of SECURITY.md and its list
// of attacks, and what docs/workspaces.md says of workspaces. A line without a
// test, and a name that neither a test nor a scenario has, fail here.

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestHardEdgesHaveTests(t *testing.T) {
	t.Parallel()
	if rows := heldRows(t, "docs/operations.md", "Hard edges"); len(rows) < 13 {
		t.Errorf("%d edges, want the 13 that Refold promises to stand, at least", len(rows))
	}
}

func TestSecurityPromisesHaveTests(t *testing.T) {
	t.Parallel()
	if rows := heldRows(t, "SECURITY.md", "What is promised"); len(rows) < 17 {
		t.Errorf("%d promises, want 17 at least", len(rows))
	}
}

func TestWorkspacesHaveTests(t *testing.T) {
	t.Parallel()
	if rows := heldRows(t, "docs/workspaces.md", "What tests show"); len(rows) < 34 {
		t.Errorf("%d cases, want 34 at least", len(rows))
	}
}

// TestSuiteOfAttacksIsListed: the appendix of SECURITY.md has each attack once, in
// order, and no other tests.
func TestSuiteOfAttacksIsListed(t *testing.T) {
	t.Parallel()
	var listed, want []string
	for _, row := range heldRows(t, "SECURITY.md", "Appendix: the attack suite") {
		listed = append(listed, row[0])
		if len(row) != 1 {
			t.Errorf("several tests in one line: %s", row)
		}
	}
	for name := range testNames(t) {
		if strings.HasPrefix(name, "TestAttack") {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	for _, name := range want {
		if !slices.Contains(listed, name) {
			t.Errorf("SECURITY.md does not list %s: add a line to its appendix that says what it attacks", name)
		}
	}
	if !slices.IsSorted(listed) || len(slices.Compact(listed)) != len(want) {
		t.Errorf("SECURITY.md lists %q, want each attack once and in order: %q", listed, want)
	}
}

// heldRows returns the names of tests and scenarios in each line of the tables of a section,
// all of which there must be, and fails for a line without one. Tests that are
// named beside the table must be there too.
func heldRows(t *testing.T, file, heading string) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no section %q", file, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	tests, named := testNames(t), regexp.MustCompile("`(Test[A-Za-z0-9]+|[0-9]+_[a-z_]+)`")
	inTable := false
	for line := range strings.Lines(section) {
		var names []string
		for _, name := range named.FindAllStringSubmatch(line, -1) {
			names = append(names, name[1])
			if !tests[name[1]] {
				t.Errorf("%s: there is no %s: %s", file, name[1], line)
			}
		}
		switch {
		case !strings.HasPrefix(line, "| "):
			inTable = strings.HasPrefix(line, "|---")
		case inTable:
			if len(names) == 0 {
				t.Errorf("%s: no test is named by %s", file, line)
			}
			rows = append(rows, names)
		}
	}
	return rows
}

// testNames returns the names of all tests, and of the session's scenarios.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, d fs.DirEntry, err error) error {
		if strings.HasPrefix(path, "actors/session/testdata/scenarios/") {
			names[strings.TrimSuffix(d.Name(), ".txt")] = true
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(source, -1) {
			names[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
