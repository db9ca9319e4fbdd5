package spacefiles_test

import (
	"slices"
	"testing"

	"github.com/refold/refold/internal/spacefiles"
)

// TestMissingNeeds checks needs on a machine with one of each kind.
func TestMissingNeeds(t *testing.T) {
	t.Parallel()
	is := func(want string) func(string) bool { return func(name string) bool { return name == want } }
	look := spacefiles.Lookup{Secret: is("KEY"), Env: is("HOME"), Bin: is("git"), OS: "darwin"}
	met := []string{"secret:KEY", "env:HOME", "bin:git", "bin:gh|git", "os:linux|darwin", "os:macos", "secret:OTHER?", "bin:gh?"}
	if got := spacefiles.Lacks(met, look); got != nil {
		t.Errorf("got %v, want none", got)
	}
	lacking := []string{"secret:OTHER", "env:KEY", "bin:gh|hg", "bin:gh", "os:linux", "nonsense", "env:", "secret:KEY|OTHER"}
	slices.Sort(lacking)
	if got := spacefiles.Lacks(append(lacking, "bin:gh"), look); !slices.Equal(got, lacking) {
		t.Errorf("got %v, want %v", got, lacking)
	}
	if got := spacefiles.Lacks([]string{"bin:git", "os:linux"}, spacefiles.Lookup{OS: "linux"}); !slices.Equal(got, []string{"bin:git"}) {
		t.Errorf("without a look-up of programs: got %v, want bin:git", got)
	}
}
