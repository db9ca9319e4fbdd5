package docs_test

import (
	"os"
	"regexp"
	"testing"
)

// TestArchitectureNamesFilesThatAreThere: every file that architecture.md names stands
// in the tree.
func TestArchitectureNamesFilesThatAreThere(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`([a-z_/0-9]+\\.(?:go|conf))`").FindAllStringSubmatch(string(text), -1)
	if len(names) < 20 {
		t.Errorf("%d files are named: the pattern misses some", len(names))
	}
	for _, name := range names {
		if _, err := os.Stat(name[1]); err != nil {
			t.Errorf("architecture.md names %s: %v", name[1], err)
		}
	}
}
