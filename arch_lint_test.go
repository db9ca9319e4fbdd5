package refold_test

import (
	"os"
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

// TestDepguard: the editor hears the same laws from .golangci.yml. It compares
// that file's rules with the tables of arch_test.go, entry by entry, so that
// neither is changed alone.
func TestDepguard(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(".golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, complaint := range compareDepguard(t, repository, text) {
		t.Error(complaint)
	}
}

// TestDepguardDrift plants a difference in each kind of rule.
func TestDepguardDrift(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(".golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct{ name, from, to, want string }{
		{"a lost denial", "            - {pkg: github.com/refold/refold/client, desc: *ladder}\n", "", "internal/spaces: denies"},
		{"a lost rule", "        planner:\n", "        planer:\n", "no rule planner"},
		{"another list", "            - bytes$\n", "            - time$\n", "pure: allows"},
		{"a fence that is gone", "pkg: github.com/nats-io/nats.go,", "pkg: github.com/nats-io/nats,", "no rule denies github.com/nats-io/nats.go"},
	}
	for _, c := range cases {
		spoilt := strings.Replace(string(text), c.from, c.to, 1)
		if spoilt == string(text) {
			t.Errorf("%s: .golangci.yml has no %q to spoil", c.name, c.from)
		}
		got := compareDepguard(t, repository, []byte(spoilt))
		if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, c.want) }) {
			t.Errorf("%s: got %q, want a complaint with %q", c.name, got, c.want)
		}
	}
}

func compareDepguard(t *testing.T, l laws, text []byte) (complaints []string) {
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
		complaints = append(complaints, "pure: allows "+strings.Join(got, " ")+"; arch_test.go allows "+strings.Join(allowed, " "))
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
