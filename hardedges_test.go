package refold_test

// The table of hard edges in docs/operations.md names the tests that hold each
// of its lines; a line without one, and a name that no test has, fail here.

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestHardEdgesHaveTests(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "\n## Hard edges\n")
	if !found {
		t.Fatal("docs/operations.md has no section of hard edges")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	tests, named := testNames(t), regexp.MustCompile("`(Test[A-Za-z0-9]+)`")
	rows := 0
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| edge ") {
			continue
		}
		rows++
		names := named.FindAllStringSubmatch(line, -1)
		if len(names) == 0 {
			t.Errorf("no test is named by %s", line)
		}
		for _, name := range names {
			if !tests[name[1]] {
				t.Errorf("there is no %s: %s", name[1], line)
			}
		}
	}
	if rows < 13 {
		t.Errorf("%d edges, want the 13 that Refold promises to stand, at least", rows)
	}
}

// testNames returns the names of all tests.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, d fs.DirEntry, err error) error {
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
