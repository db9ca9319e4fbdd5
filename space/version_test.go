package space_test

import (
	"slices"
	"testing"

	"golang.org/x/mod/semver"
	"pgregory.net/rapid"

	"github.com/refold/refold/space"
)

// TestVersionsAgreeWithSemver compares random versions by x/mod.
func TestVersionsAgreeWithSemver(t *testing.T) {
	t.Parallel()
	text := rapid.StringMatching(`(0|1|2|10|01|\d{9,10})\.[0-2]\.[0-2](-(a|rc|0|1|01|10|-|)(\.(b|2|10|rc-1))?)?`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		v, okA := space.ParseVersion(a)
		w, okB := space.ParseVersion(b)
		if longMajor := len(a) > 10 && a[9] != '.' && a[9] >= '0' && a[9] <= '9'; okA != semver.IsValid("v"+a) && !longMajor {
			t.Fatalf("%s is a version: got %v, want %v", a, okA, !okA)
		}
		if !okA || !okB {
			return
		}
		if got, want := v.Compare(w), semver.Compare("v"+a, "v"+b); got != want {
			t.Fatalf("%s against %s: got %d, want %d", a, b, got, want)
		}
	})
}

func TestSelectors(t *testing.T) {
	t.Parallel()
	versions := []string{"0.9.0", "1.0.0", "1.4.0-rc.1", "1.4.0", "1.4.2", "1.10.0", "2.0.0"}
	for selector, want := range map[string][]string{
		"1":          {"1.0.0", "1.4.0", "1.4.2", "1.10.0"},
		"1.4":        {"1.4.0", "1.4.2"},
		"1.4.2":      {"1.4.2"},
		"1.4.0-rc.1": {"1.4.0-rc.1"},
		"0":          {"0.9.0"},
		"3":          nil,
	} {
		s, ok := space.ParseSelector(selector)
		var got []string
		for _, text := range versions {
			if v, _ := space.ParseVersion(text); s.Matches(v) {
				got = append(got, text)
			}
		}
		if !ok || !slices.Equal(got, want) {
			t.Errorf("%s selects %v (%v), want %v", selector, got, ok, want)
		}
	}
	for _, text := range []string{"", "v1", "1.", ".1", "1.4.2.1", "01", "1-rc", "1.4-rc", "1.x", " 1", "1.4.2+b", "1234567890"} {
		if _, ok := space.ParseSelector(text); ok {
			t.Errorf("%q is taken as a selector", text)
		}
	}
}
