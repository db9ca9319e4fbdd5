package space

import (
	"cmp"
	"strings"
)

// versionDigitsMax bounds a number of a version, so that all fit a uint32.
const versionDigitsMax = 9

// Version is MAJOR.MINOR.PATCH with or without a pre-release, as Semantic
// Versioning 2.0.0 defines it, without build metadata.
type Version struct {
	Major, Minor, Patch uint32
	Pre                 string // rc.1; empty: a release
}

// ParseVersion reads a version of at most VersionBytesMax bytes. Numbers have no
// leading zeros and at most nine digits.
func ParseVersion(text string) (v Version, ok bool) {
	core, pre, hasPre := strings.Cut(text, "-")
	numbers, n, ok := versionNumbers(core)
	if !ok || n != 3 || len(text) > VersionBytesMax || hasPre && !isPreRelease(pre) {
		return Version{}, false
	}
	return Version{Major: numbers[0], Minor: numbers[1], Patch: numbers[2], Pre: pre}, true
}

// versionNumbers reads one to three numbers joined by dots.
func versionNumbers(text string) (numbers [3]uint32, n int, ok bool) {
	for more := true; more; n++ {
		var part string
		part, text, more = strings.Cut(text, ".")
		if n == len(numbers) || !isNumber(part) || len(part) > versionDigitsMax {
			return numbers, 0, false
		}
		for i := range len(part) {
			numbers[n] = numbers[n]*10 + uint32(part[i]-'0')
		}
	}
	return numbers, n, true
}

// isNumber reports whether s is digits without a leading zero.
func isNumber(s string) bool {
	return isDigits(s) && (s == "0" || s[0] != '0')
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// isPreRelease reports whether s is identifiers joined by dots.
func isPreRelease(s string) bool {
	for more := true; more; {
		var part string
		part, s, more = strings.Cut(s, ".")
		if part == "" || isDigits(part) && !isNumber(part) {
			return false
		}
		for i := range len(part) {
			if c := part[i]; !isAlphanumeric(c) && c != '-' {
				return false
			}
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// Compare returns -1, 0 or 1, by the precedence of Semantic Versioning: a
// pre-release comes before its release.
func (v Version) Compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor), cmp.Compare(v.Patch, w.Patch), comparePre(v.Pre, w.Pre))
}

func comparePre(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == "":
		return 1
	case b == "":
		return -1
	}
	for {
		partA, restA, moreA := strings.Cut(a, ".")
		partB, restB, moreB := strings.Cut(b, ".")
		if c := compareIdentifier(partA, partB); c != 0 {
			return c
		}
		if !moreA || !moreB {
			return cmp.Compare(len(restA), len(restB)) // one of them has no more, and comes first
		}
		a, b = restA, restB
	}
}

// compareIdentifier compares numbers as numbers; they come before all else.
func compareIdentifier(a, b string) int {
	numberA, numberB := isDigits(a), isDigits(b)
	switch {
	case numberA && numberB:
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	case numberA:
		return -1
	case numberB:
		return 1
	}
	return cmp.Compare(a, b)
}

// Selector is 1, 1.4 or 1.4.2, or a whole version with a pre-release.
type Selector struct {
	least Version
	parts int
}

// ParseSelector reads a selector of at most VersionBytesMax bytes.
func ParseSelector(text string) (s Selector, ok bool) {
	if v, ok := ParseVersion(text); ok {
		return Selector{least: v, parts: 3}, true
	}
	numbers, n, ok := versionNumbers(text)
	if !ok || len(text) > VersionBytesMax {
		return Selector{}, false
	}
	return Selector{least: Version{Major: numbers[0], Minor: numbers[1], Patch: numbers[2]}, parts: n}, true
}

// Exact reports whether the selector matches one version alone.
func (s Selector) Exact() bool { return s.parts == 3 }

// PreRelease reports whether the selector names a pre-release.
func (s Selector) PreRelease() bool { return s.least.Pre != "" }

// Matches reports whether the selector selects v. Pre-releases are selected only
// by a selector that is exactly that version.
func (s Selector) Matches(v Version) bool {
	return v.Pre == s.least.Pre && v.Major == s.least.Major &&
		(s.parts < 2 || v.Minor == s.least.Minor) && (s.parts < 3 || v.Patch == s.least.Patch)
}
