package patch

import (
	"slices"
	"strings"
	"unicode"
)

// levels are the ways to compare lines, strictest first: two lines are equal at
// a level if it maps them to the same text.
var levels = [...]func(string) string{
	func(s string) string { return s },
	func(s string) string { return strings.TrimRightFunc(s, unicode.IsSpace) },
	strings.TrimSpace,
	func(s string) string { return strings.TrimSpace(plain.Replace(s)) },
}

// plain replaces typographic punctuation by the plain one, since models confuse
// them in both directions.
var plain = strings.NewReplacer(
	"\u2010", "-", "\u2011", "-", "\u2012", "-", "\u2013", "-", "\u2014", "-", "\u2015", "-", "\u2212", "-",
	"\u2018", "'", "\u2019", "'", "\u201a", "'", "\u201b", "'",
	"\u201c", `"`, "\u201d", `"`, "\u201e", `"`, "\u201f", `"`,
	"\u00a0", " ", "\u2002", " ", "\u2003", " ", "\u2004", " ", "\u2005", " ", "\u2006", " ",
	"\u2007", " ", "\u2008", " ", "\u2009", " ", "\u200a", " ", "\u202f", " ", "\u205f", " ", "\u3000", " ",
)

func mapped(lines []string, level int) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = levels[level](l)
	}
	return out
}

// search returns the index of the first occurrence of want in have, or -1.
// matched is the length of the longest prefix of want that it found, and after
// the index after its last line. It takes len(have)+len(want) steps (Knuth,
// Morris, Pratt), so a file of equal lines costs no more than another.
func search(have, want []string) (place, matched, after int) {
	if len(want) == 0 {
		return 0, 0, 0
	}
	fallback := make([]int, len(want)) // longest border of want[:i+1]
	for i, k := 1, 0; i < len(want); i++ {
		for k > 0 && want[i] != want[k] {
			k = fallback[k-1]
		}
		if want[i] == want[k] {
			k++
		}
		fallback[i] = k
	}
	k := 0
	for i, line := range have {
		for k > 0 && line != want[k] {
			k = fallback[k-1]
		}
		if line == want[k] {
			k++
		}
		if k > matched {
			matched, after = k, i+1
		}
		if k == len(want) {
			return i + 1 - k, k, i + 1
		}
	}
	return -1, matched, after
}

// find returns the index of want in the file at or after from, at the strictest
// level that matches, or -1; with atEnd, only as the file's last lines. The
// error is that of the budget.
func (f *file) find(want []string, from int, atEnd bool) (int, error) {
	for level := range levels {
		if err := f.budget.spend(len(f.lines)+len(want), f.bytes); err != nil {
			return -1, err
		}
		have, want := f.at(level), mapped(want, level)
		if atEnd {
			if last := len(have) - len(want); last >= from && slices.Equal(have[last:], want) {
				return last, nil
			}
			continue
		}
		if place, _, _ := search(have[from:], want); place >= 0 {
			return from + place, nil
		}
	}
	return -1, nil
}
