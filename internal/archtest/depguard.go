package archtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// depguardRule is one rule of .golangci.yml.
type depguardRule struct {
	Files []string `yaml:"files"`
	Allow []string `yaml:"allow"`
	Deny  []struct {
		Pkg string `yaml:"pkg"`
	} `yaml:"deny"`
}

// Depguard compares the rules of root's .golangci.yml, from which an editor
// knows the laws, with the tables of laws.go, entry by entry, so that neither is
// changed alone.
func Depguard(t testing.TB, root string) {
	t.Helper()
	for _, complaint := range compareDepguard(t, repository, golangci(t, root)) {
		t.Error(complaint)
	}
}

func golangci(t testing.TB, root string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".golangci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func compareDepguard(t testing.TB, l laws, text []byte) (complaints []string) {
	t.Helper()
	var config struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules map[string]depguardRule `yaml:"rules"`
				} `yaml:"depguard"`
			} `yaml:"settings"`
		} `yaml:"linters"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	rules := config.Linters.Settings.Depguard.Rules

	var allowed []string
	for _, std := range l.pureStd {
		allowed = append(allowed, std+"$")
	}
	for _, m := range l.pureMods {
		allowed = append(allowed, m.what+"$")
	}
	for _, dir := range l.pure {
		allowed = append(allowed, module+"/"+dir)
	}
	if got := rules["pure"].Allow; !sameSet(got, allowed) {
		complaints = append(complaints, "pure: allows "+strings.Join(got, " ")+"; internal/archtest allows "+strings.Join(allowed, " "))
	}
	for rung, members := range l.ladder {
		for _, m := range members {
			want := l.forbidden(m, rung)
			rule, ok := rules[m]
			if got := rule.denies(); ok && !sameSet(got, want) {
				complaints = append(complaints, m+": denies "+strings.Join(got, " ")+"; the ladder wants "+strings.Join(want, " "))
			}
			if !ok && len(want) > 0 && m != "." { // no glob says "the root alone"
				complaints = append(complaints, "no rule "+m)
			}
		}
	}
	for _, f := range l.fences {
		var found bool
		for _, rule := range rules {
			found = found || slices.Equal(rule.denies(), []string{f.what}) && slices.Contains(rule.Files, "!$test") == f.tests && f.gated(rule.Files)
		}
		if !found {
			complaints = append(complaints, "no rule denies "+f.what+" to all but "+strings.Join(f.only, " "))
		}
	}
	return complaints
}

// forbidden are the members that one may not import. A pure package's list is
// strict and has no member above the pure ones, so those are not repeated.
func (l laws) forbidden(member string, rung int) (paths []string) {
	for above, members := range l.ladder {
		for _, other := range members {
			if other == member || above < rung || l.isPure(member) && !l.isPure(other) {
				continue
			}
			path := module + "/" + other
			if !slices.ContainsFunc(paths, func(p string) bool { return under(path, p) }) {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

func (r depguardRule) denies() (paths []string) {
	for _, d := range r.Deny {
		paths = append(paths, d.Pkg)
	}
	return paths
}

// gated says whether a rule's files leave out just the fence's gates, and the
// fenced package itself.
func (f fence) gated(files []string) bool {
	want := map[string]bool{}
	for _, gate := range f.only {
		want["!**/"+gate+"/*.go"] = true
	}
	if dir, inside := strings.CutPrefix(f.what, module+"/"); inside {
		want["!**/"+dir+"/*.go"] = true
	}
	files = slices.DeleteFunc(slices.Clone(files), func(s string) bool { return s == "!$test" })
	for _, file := range files {
		if !want[file] {
			return false
		}
	}
	return len(files) == len(want)
}

func sameSet(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}
