package space

import (
	"cmp"
	"slices"
	"strings"
)

// versionDigitsMax bounds a number of a version, so that all fit a uint32.
const versionDigitsMax = 9

// Version is MAJOR.MINOR.PATCH with an optional pre-release, as Semantic
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

// Compare orders versions as Semantic Versioning 2.0.0 does, section 11: a
// pre-release comes before its release.
func (v Version) Compare(w Version) int {
	if c := cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor), cmp.Compare(v.Patch, w.Patch)); c != 0 {
		return c
	}
	if v.Pre == "" || w.Pre == "" {
		return cmp.Compare(w.Pre, v.Pre) // empty is greater
	}
	return slices.CompareFunc(strings.Split(v.Pre, "."), strings.Split(w.Pre, "."), func(a, b string) int {
		switch numberA, numberB := isDigits(a), isDigits(b); {
		case numberA && numberB:
			return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) // no leading zeros
		case numberA:
			return -1
		case numberB:
			return 1
		}
		return strings.Compare(a, b)
	})
}

// Selector is 1, 1.4 or 1.4.2, or a full version with a pre-release.
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

// Matches reports whether the selector matches v. Only a selector that is
// exactly that version matches a pre-release.
func (s Selector) Matches(v Version) bool {
	return v.Pre == s.least.Pre && v.Major == s.least.Major &&
		(s.parts < 2 || v.Minor == s.least.Minor) && (s.parts < 3 || v.Patch == s.least.Patch)
}
