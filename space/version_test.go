package space_test

import (
	"slices"
	"testing"

	"golang.org/x/mod/semver"
	"pgregory.net/rapid"

	"github.com/refold/refold/space"
)

// TestVersionsAgreeWithSemver compares random versions with x/mod.
func TestVersionsAgreeWithSemver(t *testing.T) {
	t.Parallel()
	versions := rapid.StringMatching(`(0|1|2|10|01|\d{9,10})\.[0-2]\.[0-2](-(a|rc|0|1|01|10|-|)(\.(b|2|10|rc-1))?)?`)
	rapid.Check(t, func(t *rapid.T) {
		text := versions.Draw(t, "version")
		_, ok := space.ParseVersion(text)
		if longMajor := len(text) > 10 && text[9] != '.' && text[9] >= '0' && text[9] <= '9'; ok != semver.IsValid("v"+text) && !longMajor {
			t.Fatalf("%s is a version: got %v, want %v", text, ok, !ok)
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
