package archtest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// isPure reports whether dir is one of the pure packages.
func (l laws) isPure(dir string) bool {
	return slices.ContainsFunc(l.pure, func(top string) bool { return under(dir, top) })
}

// checkPurity: the same events must give the same bytes on every machine.
// Therefore a pure package imports only what is listed, starts no goroutine, and
// never depends on the order of a map.
func (l laws) checkPurity(t *tree) (complaints []string) {
	for _, p := range t.pkgs {
		files := p.shipped()
		if !l.isPure(p.dir) || len(files) == 0 {
			continue
		}
		for _, f := range files {
			complaints = append(complaints, l.pureImports(t, f)...)
		}
		_, info, errs := t.typesOf(p)
		if _, test := t.importer.(blank); !test && len(errs) > 0 {
			complaints = append(complaints, fmt.Sprintf("%s: doesn't compile: %v", p.dir, errors.Join(errs...)))
			continue
		}
		for _, f := range files {
			ast.Inspect(f.ast, func(n ast.Node) bool {
				if what := impure(n, info); what != "" {
					complaints = append(complaints, t.at(n, "%s: a pure package gives the same bytes everywhere", what))
				}
				return true
			})
		}
	}
	return complaints
}

// pureImports checks the imports of a file of a pure package against the list.
func (l laws) pureImports(t *tree, f *file) (complaints []string) {
	for _, i := range f.imports() {
		if _, inside := i.dir(); inside || slices.Contains(l.pureStd, i.path) {
			continue
		}
		var places []string
		for _, m := range l.pureMods {
			if m.what == i.path {
				places = append(places, m.in)
			}
		}
		switch {
		case places == nil:
			complaints = append(complaints, t.at(i, "imports %q, which is not on the list of pure packages: take its value as an argument, or give a reason in internal/archtest/laws.go", i.path))
		case !slices.ContainsFunc(places, func(in string) bool { return under(f.path, in) }):
			complaints = append(complaints, t.at(i, "imports %s, which stays in %s", i.path, strings.Join(places, ", ")))
		}
	}
	return complaints
}

// impure describes what a pure package may not do in a node; "": nothing.
func impure(n ast.Node, info *types.Info) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "starts a goroutine"
	case *ast.ChanType:
		return "has a channel type"
	case *ast.SendStmt:
		return "sends on a channel"
	case *ast.SelectStmt:
		return "selects over channels"
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			return "receives from a channel"
		}
	case *ast.RangeStmt:
		return ranges(info.TypeOf(n.X))
	case *ast.SelectorExpr:
		s := info.Selections[n]
		if s != nil && s.Obj().Pkg() != nil && s.Obj().Pkg().Path() == "reflect" && slices.Contains([]string{"MapRange", "Seq", "Seq2"}, n.Sel.Name) {
			return "ranges over a map by reflection"
		}
	}
	return ""
}

// ranges describes what is wrong with ranging over a value of type t.
func ranges(t types.Type) string {
	if t == nil || t == types.Typ[types.Invalid] {
		return "ranges over something whose type can't be told"
	}
	switch u := t.Underlying().(type) {
	case *types.Map:
		return "ranges over a map"
	case *types.Chan:
		return "ranges over a channel"
	case *types.Interface:
		// A type parameter: every type of its set counts.
		for embedded := range u.EmbeddedTypes() {
			if what := ranges(embedded); what != "" {
				return what
			}
		}
	case *types.Union:
		for term := range u.Terms() {
			if what := ranges(term.Type()); what != "" {
				return what
			}
		}
	}
	return ""
}
