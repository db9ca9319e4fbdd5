package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A file can be read in one sitting. The fold is read from top to bottom, as a
// specification, so its files are chapters.
const (
	fileLinesMax    = 400
	chapterLinesMax = 1000
	chapters        = "actors/session"
)

// under reports whether dir is top or lies below it.
func under(dir, top string) bool {
	return dir == top || strings.HasPrefix(dir, top+"/")
}

// place returns the longest entry of the ladder that contains a directory, and
// its rung. ok is false for a directory that has no place.
func (l laws) place(dir string) (member string, rung int, ok bool) {
	for r, members := range l.ladder {
		for _, m := range members {
			if under(dir, m) && len(m) > len(member) {
				member, rung, ok = m, r, true
			}
		}
	}
	return member, rung, ok
}

// checkLadder: a package imports lower rungs and its own subtree, and nothing
// else of this module. Test files may import higher rungs: no program links them.
func (l laws) checkLadder(t *tree) (complaints []string) {
	for _, p := range t.pkgs {
		member, rung, ok := l.place(p.dir)
		if !ok && !l.isOffside(p.dir) {
			complaints = append(complaints, fmt.Sprintf("%s: has no place on the import ladder; give it one in internal/archtest/laws.go", p.dir))
			continue
		}
		for _, f := range p.shipped() {
			for _, i := range f.imports() {
				dir, inside := i.dir()
				if !inside {
					continue
				}
				other, above, known := l.place(dir)
				switch {
				case !known:
					complaints = append(complaints, t.at(i, "imports %s, which stands outside the ladder: no package imports it", dir))
				case !ok || other == member || above < rung:
				case above == rung:
					complaints = append(complaints, t.at(i, "%s imports %s: they share a rung and don't import one another", member, other))
				default:
					complaints = append(complaints, t.at(i, "%s imports %s, which is above it on the ladder", member, other))
				}
			}
		}
	}
	return complaints
}

// checkFences: fenced packages are imported only where the fence allows it.
func (l laws) checkFences(t *tree) (complaints []string) {
	for _, p := range t.pkgs {
		for _, f := range p.files {
			for _, i := range f.imports() {
				for _, fence := range l.fences {
					dir, inside := i.dir()
					if !under(i.path, fence.what) || fence.lets(p.dir) || f.test && fence.tests || inside && dir == p.dir {
						continue
					}
					complaints = append(complaints, t.at(i, "imports %s, which only %s may: %s", i.path, strings.Join(fence.only, ", "), fence.why))
				}
			}
		}
	}
	return complaints
}

// lets reports whether the fence lets dir through.
func (f fence) lets(dir string) bool {
	return slices.ContainsFunc(f.only, func(gate string) bool {
		tree, deep := strings.CutSuffix(gate, "/...")
		return gate == dir || deep && under(dir, tree)
	})
}

// isOffside reports whether a directory stands outside the ladder.
func (l laws) isOffside(dir string) bool {
	for top := range l.offside {
		if under(dir, top) {
			return true
		}
	}
	return false
}

// checkOutside: what plays a user, or is shown to users, imports no internal
// package, and nothing of the proof kit: e2e, the examples except for the tests that
// run them, and the test files of public packages that have an example for go doc.
func (l laws) checkOutside(t *tree) (complaints []string) {
	for _, p := range t.pkgs {
		for _, f := range p.files {
			var who string
			switch {
			case under(p.dir, "e2e"):
				who = "e2e plays a user"
			case under(p.dir, "examples") && !f.test:
				who = "an example plays a user"
			case slices.Contains(l.public, p.dir) && f.test && slices.ContainsFunc(f.ast.Decls, isExample):
				who = "go doc shows the examples of this file to a user"
			default:
				continue
			}
			for _, i := range f.imports() {
				switch dir, inside := i.dir(); {
				case inside && under(dir, "internal"):
					complaints = append(complaints, t.at(i, "imports %s: %s, who has no internal packages", dir, who))
				case inside && under(dir, "proof"):
					complaints = append(complaints, t.at(i, "imports %s: %s, and the proof kit is for people who check Refold", dir, who))
				}
			}
		}
	}
	return complaints
}

func isExample(d ast.Decl) bool {
	f, ok := d.(*ast.FuncDecl)
	return ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Example")
}

// spelt matches the beginning of a subject or of a stream's name.
var spelt = regexp.MustCompile(`^(refold\.(in|ctl|approve|llm|tool|wake|step|space|install|pack|fx|timer|due|alive|out|live|progress|cancel|view)\b|REFOLD_(LOG|FX|OUT|TIMERS|SNAPSHOTS|BLOBS|PACKS)\b)`)

// notSpelt begins like a subject but is none: it is the key in a service
// endpoint's metadata that marks a tool. Services write it too, without a prefix.
const notSpelt = "refold.tool"

// checkSpelling: subjects and names of streams are built in package subjects,
// which knows the prefix. No string elsewhere begins like one.
func (l laws) checkSpelling(t *tree) (complaints []string) {
	for _, p := range t.pkgs {
		if under(p.dir, "subjects") {
			continue
		}
		for _, f := range p.shipped() {
			ast.Inspect(f.ast, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				if text, err := strconv.Unquote(lit.Value); err == nil && spelt.MatchString(text) && text != notSpelt {
					complaints = append(complaints, t.at(lit, "spells %q: build it with package subjects, which knows the prefix of this process", text))
				}
				return true
			})
		}
	}
	return complaints
}

// checkNouns: a package is named after a concept, a type after one of the
// project's seven nouns or a word of its field.
func (l laws) checkNouns(t *tree) (complaints []string) {
	for _, p := range t.pkgs {
		for _, word := range words(path.Base(p.dir)) {
			if noun, bad := l.nouns[word]; bad {
				complaints = append(complaints, fmt.Sprintf("%s: %q names no package; name it after %s", p.dir, word, noun.instead))
			}
		}
		for _, f := range p.shipped() {
			ast.Inspect(f.ast, func(n ast.Node) bool {
				spec, ok := n.(*ast.TypeSpec)
				if !ok {
					return true
				}
				for _, word := range words(spec.Name.Name) {
					if noun, bad := l.nouns[word]; bad && noun.except != p.dir {
						complaints = append(complaints, t.at(spec, "type %s: %q is not one of our words; say %s", spec.Name.Name, word, noun.instead))
					}
				}
				return true
			})
		}
	}
	return complaints
}

// words splits a camelCase, dotted or dashed name into lower-case words.
func words(name string) []string {
	var b strings.Builder
	prev := rune(0)
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r):
			r = ' '
		case unicode.IsUpper(r) && !unicode.IsUpper(prev):
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
		prev = r
	}
	return strings.Fields(b.String())
}

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// checkSizes: files that ship stay short. Every line counts, comments too.
func (l laws) checkSizes(t *tree) (complaints []string) {
	for _, p := range t.pkgs {
		for _, f := range p.shipped() {
			if generated.Match(f.text) {
				continue
			}
			most := fileLinesMax
			if p.dir == chapters {
				most = chapterLinesMax
			}
			if n := strings.Count(string(f.text), "\n"); n > most {
				complaints = append(complaints, fmt.Sprintf("%s: %d lines; the limit is %d: find the second concept in it", f.path, n, most))
			}
		}
	}
	return complaints
}

// checkStale: every entry of the laws names what exists and allows what happens.
func (l laws) checkStale(t *tree) (complaints []string) {
	say := func(format string, args ...any) { complaints = append(complaints, fmt.Sprintf(format, args...)) }
	for _, member := range slices.Concat(l.ladder...) {
		there := slices.ContainsFunc(t.pkgs, func(p *pkg) bool { got, _, _ := l.place(p.dir); return got == member })
		if !there {
			say("ladder: %s is not there; take it off", member)
		}
	}
	there := func(dir string) bool { return slices.ContainsFunc(t.pkgs, func(p *pkg) bool { return p.dir == dir }) }
	for _, dir := range slices.Sorted(maps.Keys(l.offside)) {
		if !slices.ContainsFunc(t.pkgs, func(p *pkg) bool { return under(p.dir, dir) }) {
			say("offside: %s is not there; take it off", dir)
		}
	}
	complaints = append(complaints, t.staleExempts("redacting", l.redacting)...)
	complaints = append(complaints, t.staleExempts("uncut", l.uncut)...)
	complaints = append(complaints, t.staleExempts("naming", l.naming)...)
	for _, dir := range l.public {
		if !there(dir) {
			say("public: %s is not there; take it off", dir)
		}
	}
	for _, e := range l.experimental {
		if !slices.Contains(l.public, packageOf(e.path)) {
			say("experimental: %s is not public; take it off", e.path)
		}
	}
	for _, f := range l.fences {
		for _, gate := range f.only {
			through := t.imported(func(p *pkg, _ *file, i imported) bool {
				return fence{only: []string{gate}}.lets(p.dir) && under(i.path, f.what)
			})
			if !through {
				say("fence: %s doesn't import %s; close the gate", gate, f.what)
			}
		}
	}
	for _, link := range l.links {
		for _, dir := range link.roots {
			if !slices.Contains(l.roots(t), dir) {
				say("links: %s is neither a program nor public; take it off", dir)
			}
		}
	}
	for _, what := range l.pureStd {
		if !t.imported(func(p *pkg, f *file, i imported) bool { return l.isPure(p.dir) && !f.test && i.path == what }) {
			say("pure: no pure package imports %q; take it off", what)
		}
	}
	for _, m := range l.pureMods {
		if !t.imported(func(_ *pkg, f *file, i imported) bool { return !f.test && under(f.path, m.in) && i.path == m.what }) {
			say("pure: %s doesn't import %s; take it off", m.in, m.what)
		}
	}
	for _, word := range slices.Sorted(maps.Keys(l.nouns)) {
		if dir := l.nouns[word].except; dir != "" && !t.declares(dir, word) {
			say("nouns: no type of %s holds %q; take it off", dir, word)
		}
	}
	return complaints
}

// imported reports whether any import of the tree satisfies is.
func (t *tree) imported(is func(*pkg, *file, imported) bool) bool {
	for _, p := range t.pkgs {
		for _, f := range p.files {
			for _, i := range f.imports() {
				if is(p, f, i) {
					return true
				}
			}
		}
	}
	return false
}

// declares reports whether dir has a type with word in its name.
func (t *tree) declares(dir, word string) bool {
	for _, p := range t.pkgs {
		if p.dir != dir {
			continue
		}
		for _, f := range p.shipped() {
			for _, d := range f.ast.Decls {
				gen, ok := d.(*ast.GenDecl)
				if !ok || gen.Tok != token.TYPE {
					continue
				}
				for _, s := range gen.Specs {
					if slices.Contains(words(s.(*ast.TypeSpec).Name.Name), word) {
						return true
					}
				}
			}
		}
	}
	return false
}
