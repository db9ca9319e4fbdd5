package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"strings"
)

// checkExamples: an example of the root's tests uses each exported name of the root. A
// type is used by a value of it. Exempt are options: types whose names end in Option,
// functions that return one, and constants, which are their arguments.
func (l laws) checkExamples(t *tree) (complaints []string) {
	for _, p := range t.pkgs {
		if p.dir != "." || len(p.shipped()) == 0 {
			continue
		}
		checked, _, _ := t.typesOf(p) // the law on surfaces complains of errors
		used, errs := t.usedByExamples(p)
		for _, err := range errs {
			complaints = append(complaints, fmt.Sprintf("its examples don't compile: %v", err))
		}
		for _, name := range exportedNames(checked) {
			if !used[name] {
				complaints = append(complaints, fmt.Sprintf("%s: no Example function of the root's tests uses it: show users how, in example_*_test.go", name))
			}
		}
	}
	return complaints
}

// exportedNames returns the exported names of a package that are no options, methods as
// Type.Method.
func exportedNames(of *types.Package) (all []string) {
	for _, name := range of.Scope().Names() {
		o := of.Scope().Lookup(name)
		if !token.IsExported(name) || isOption(o) {
			continue
		}
		all = append(all, name)
		named, is := o.Type().(*types.Named)
		if _, isType := o.(*types.TypeName); !is || !isType {
			continue
		}
		for m := range named.Methods() {
			if m.Exported() && !fromFmt(m) {
				all = append(all, name+"."+m.Name())
			}
		}
	}
	return all
}

// isOption reports whether a name is an option or the argument of one.
func isOption(o types.Object) bool {
	switch o := o.(type) {
	case *types.Const:
		return true
	case *types.TypeName:
		return strings.HasSuffix(o.Name(), "Option")
	case *types.Func:
		results := o.Signature().Results()
		if results.Len() != 1 {
			return false
		}
		if result, named := results.At(0).Type().(interface{ Obj() *types.TypeName }); named { // also an alias
			return isOption(result.Obj())
		}
	}
	return false
}

// fromFmt reports whether packages fmt and errors call a method.
func fromFmt(m *types.Func) bool {
	return m.Name() == "Error" || m.Name() == "Unwrap" || m.Name() == "String"
}

// usedByExamples returns the names of a package that its examples use.
func (t *tree) usedByExamples(p *pkg) (used map[string]bool, errs []error) {
	var files []*ast.File
	for _, f := range p.files {
		if f.test && strings.HasPrefix(path.Base(f.path), "example") {
			files = append(files, f.ast)
		}
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: t.importer, Error: func(err error) { errs = append(errs, err) }}
	_, _ = conf.Check(module+"_test", t.fset, files, info) // its error is the first of errs
	used = map[string]bool{}
	for _, o := range info.Uses {
		if o.Pkg() != nil && o.Pkg().Path() == module {
			used[qualified(o)] = true
		}
	}
	for _, value := range info.Types {
		if name := typeName(value.Type); name != nil && name.Pkg() != nil && name.Pkg().Path() == module {
			used[name.Name()] = true
		}
	}
	return used, errs
}

// qualified returns the name of an object, with the type of a method's receiver before it.
func qualified(o types.Object) string {
	if f, is := o.(*types.Func); is && f.Signature().Recv() != nil {
		if of := typeName(f.Signature().Recv().Type()); of != nil {
			return of.Name() + "." + o.Name()
		}
	}
	return o.Name()
}

// typeName returns the name of a type, of what it points to, or of its elements.
func typeName(t types.Type) *types.TypeName {
	switch t := t.(type) {
	case interface{ Obj() *types.TypeName }:
		return t.Obj()
	case interface{ Elem() types.Type }:
		return typeName(t.Elem())
	}
	return nil
}
