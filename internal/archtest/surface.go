package archtest

import (
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"
)

// Promised returns the directories of the public packages, and what is experimental of
// them: docs/stability.md says what that means.
func Promised() (public, experimental []string) {
	for _, e := range repository.experimental {
		experimental = append(experimental, e.path)
	}
	return slices.Clone(repository.public), experimental
}

// packageOf returns the package's directory of an entry of what is experimental.
func packageOf(entry string) string {
	if strings.HasSuffix(entry, ".go") {
		return path.Dir(entry)
	}
	name, _, _ := strings.Cut(path.Base(entry), ".")
	return path.Join(path.Dir(entry), name)
}

// checkSurface: no exported name of a public package shows a type of an internal
// one, which users of the package can't name.
func (l laws) checkSurface(t *tree) (complaints []string) {
	for _, p := range t.pkgs {
		if !slices.Contains(l.public, p.dir) || len(p.shipped()) == 0 {
			continue
		}
		checked, _, errs := t.typesOf(p)
		if _, test := t.importer.(blank); !test && len(errs) > 0 {
			complaints = append(complaints, fmt.Sprintf("%s: doesn't compile: %v", p.dir, errors.Join(errs...)))
			continue
		}
		s := surface{of: checked, seen: map[types.Type]bool{}}
		for _, e := range l.sealed {
			if o := checked.Scope().Lookup(e.path); p.dir == "." && o != nil {
				s.seen[o.Type()] = true // its methods are not looked at
			}
		}
		for _, name := range checked.Scope().Names() {
			if token.IsExported(name) {
				s.object(name, checked.Scope().Lookup(name))
			}
		}
		slices.Sort(s.shows)
		for _, shown := range slices.Compact(s.shows) {
			complaints = append(complaints, fmt.Sprintf("%s: %s: users of a public package can't name it", p.dir, shown))
		}
	}
	return complaints
}

// surface collects the internal types that one package's exported names show.
type surface struct {
	of    *types.Package
	seen  map[types.Type]bool
	shows []string // each with the name that shows it
}

func (s *surface) object(name string, o types.Object) {
	if alias, ok := o.Type().(*types.Alias); ok {
		s.visit(name, alias.Rhs())
	}
	s.visit(name, o.Type())
}

// visit checks a type that an exported name reaches.
func (s *surface) visit(name string, t types.Type) {
	switch t := t.(type) {
	case *types.Alias:
		s.names(name, t.Obj())
		s.visit(name, types.Unalias(t))
	case *types.Named:
		s.names(name, t.Obj())
		for arg := range t.TypeArgs().Types() {
			s.visit(name, arg)
		}
		if t.Obj().Pkg() != s.of || s.seen[t] {
			return
		}
		s.seen[t] = true
		s.visit(t.Obj().Name(), t.Underlying())
		for m := range t.Methods() {
			if m.Exported() {
				s.visit(t.Obj().Name()+"."+m.Name(), m.Type())
			}
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() || f.Embedded() {
				s.visit(name+"."+f.Name(), f.Type())
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			s.visit(name+"."+m.Name(), m.Type())
		}
	case *types.Signature:
		for v := range t.Params().Variables() {
			s.visit(name, v.Type())
		}
		for v := range t.Results().Variables() {
			s.visit(name, v.Type())
		}
		for p := range t.TypeParams().TypeParams() {
			s.visit(name, p.Constraint())
		}
	case *types.Map:
		s.visit(name, t.Key())
		s.visit(name, t.Elem())
	case interface{ Elem() types.Type }: // a pointer, a slice, an array or a channel
		s.visit(name, t.Elem())
	}
}

func (s *surface) names(name string, o *types.TypeName) {
	if o.Pkg() != nil && strings.HasPrefix(o.Pkg().Path(), module+"/internal/") {
		s.shows = append(s.shows, fmt.Sprintf("%s shows %s.%s", name, strings.TrimPrefix(o.Pkg().Path(), module+"/"), o.Name()))
	}
}
