package sandbox_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/internal/tools/sandbox"
)

// TestDocsNameWhatCommandsRead: docs/tools.md lists exactly the paths that
// every command may read.
func TestDocsNameWhatCommandsRead(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/tools.md")
	must(t, err)
	_, list, _ := strings.Cut(string(text), "\n## What a command may read\n")
	list, _, found := strings.Cut(list, "\nKeep no secret in them")
	if !found {
		t.Fatal("docs/tools.md has no list of what a command may read")
	}
	var told []string
	for _, m := range regexp.MustCompile("`(/[^`]+)`").FindAllStringSubmatch(list, -1) {
		told = append(told, m[1])
	}
	want := sandbox.SystemPaths()
	slices.Sort(told)
	slices.Sort(want)
	if !slices.Equal(told, want) {
		t.Errorf("docs/tools.md lists\n%q, want\n%q", told, want)
	}
}
