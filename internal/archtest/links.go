package archtest

import (
	"bytes"
	"fmt"
	"maps"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// link names the roots that link a large library: programs, and packages that
// users import. Everyone who builds a root builds the library too.
type link struct {
	what  string   // import path, and every path below it
	roots []string // directories
	why   string
}

// checkLinks: a root links a large library only if its entry says so. An entry that
// a root does not need any more is a complaint too.
func (l laws) checkLinks(t *tree) (complaints []string) {
	for _, root := range l.roots(t) {
		via := t.reached(path.Join(module, root))
		for _, link := range l.links {
			var found string
			for _, name := range slices.Sorted(maps.Keys(via)) {
				if under(name, link.what) && name != path.Join(module, root) {
					found = name
					break
				}
			}
			switch listed := slices.Contains(link.roots, root); {
			case found != "" && !listed:
				complaints = append(complaints, fmt.Sprintf("%s links %s (%s), which only %s may: %s", root, link.what, chain(via, found), strings.Join(link.roots, ", "), link.why))
			case found == "" && listed:
				complaints = append(complaints, fmt.Sprintf("links: %s does not link %s; take it off", root, link.what))
			}
		}
	}
	return complaints
}

// roots returns the directories of programs and of public packages. Examples, and
// programs that build others, are no roots.
func (l laws) roots(t *tree) (dirs []string) {
	for _, p := range t.pkgs {
		shipped := p.shipped()
		program := len(shipped) > 0 && shipped[0].ast.Name.Name == "main" && !l.isOffside(p.dir)
		if program || slices.Contains(l.public, p.dir) {
			dirs = append(dirs, p.dir)
		}
	}
	return dirs
}

// reached returns all packages that root imports, directly or not, each with the
// one by which it was found.
func (t *tree) reached(root string) (via map[string]string) {
	via = map[string]string{root: ""}
	for next := []string{root}; len(next) > 0; next = next[1:] {
		for _, name := range t.importsOf(next[0]) {
			if _, known := via[name]; !known {
				via[name] = next[0]
				next = append(next, name)
			}
		}
	}
	return via
}

// importsOf returns what the shipped files of a package import.
func (t *tree) importsOf(name string) (all []string) {
	dir, inside := imported{path: name}.dir()
	if !inside {
		return t.outside[name]
	}
	for _, p := range t.pkgs {
		if p.dir != dir {
			continue
		}
		for _, f := range p.shipped() {
			for _, i := range f.imports() {
				all = append(all, i.path)
			}
		}
	}
	return all
}

// chain returns the packages by which a package is reached.
func chain(via map[string]string, name string) string {
	all := []string{name}
	for at := via[name]; at != ""; at = via[at] {
		all = append(all, strings.TrimPrefix(at, module+"/"))
	}
	slices.Reverse(all)
	return strings.Join(all, ", ")
}

// outside returns the imports of all packages of other modules that this one's
// programs link.
func outside(t testing.TB) map[string][]string {
	t.Helper()
	var stderr bytes.Buffer
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", `{{if .Module}}{{.ImportPath}} {{join .Imports " "}}{{end}}`, "./...")
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		all[words[0]] = words[1:]
	}
	return all
}
