package docs_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
)

// TestMain runs the tests in the root of the repository, where the documents and
// what they speak of have the paths that people write.
func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// sameSet reports whether two lists hold the same texts, in any order.
func sameSet(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}
