package api

import (
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// Go returns the exported names of the packages in dirs, which are below root: a line
// for each constant, variable, function, type, field and method. Of what is
// experimental it has less. Types of such packages, and of files such as web/bodies.go,
// have lines only if another line shows them; types such as actors/session.State have a
// line for their name alone.
func Go(root string, dirs, experimental []string) ([]string, error) {
	loaded, err := load(packages.LoadTypes, root, dirs)
	if err != nil {
		return nil, err
	}
	g := golang{files: loaded[0].Fset, module: loaded[0].Module.Path, experimental: experimental, seen: map[*types.TypeName]bool{}}
	for _, p := range loaded {
		g.public = append(g.public, p.Types)
	}
	for _, p := range g.public {
		for _, name := range p.Scope().Names() {
			if o := p.Scope().Lookup(name); token.IsExported(name) && !g.onlyIfShown(o) {
				g.object(o)
			}
		}
	}
	return sorted(g.lines), nil
}

// load loads packages by their directories, in that order.
func load(mode packages.LoadMode, root string, dirs []string) ([]*packages.Package, error) {
	if err := look(root); err != nil {
		return nil, err
	}
	patterns := make([]string, len(dirs))
	for i, dir := range dirs {
		patterns[i] = "./" + dir
	}
	all, err := packages.Load(&packages.Config{Mode: mode | packages.NeedModule, Dir: root}, patterns...)
	if err != nil {
		return nil, err
	}
	ordered := make([]*packages.Package, len(dirs))
	for _, p := range all {
		if len(p.Errors) > 0 {
			return nil, p.Errors[0]
		}
		i := slices.IndexFunc(dirs, func(dir string) bool { return p.PkgPath == path.Join(p.Module.Path, dir) })
		ordered[i] = p
	}
	return ordered, nil
}

// look reads the directories with Go files below root: go test keeps the result of a test
// until something changes that the test itself has read, and the go command reads the
// files for it.
func look(root string) error {
	return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		base := filepath.Base(name)
		if err == nil && d.IsDir() && name != root && (strings.HasPrefix(base, ".") || base == "node_modules" || base == "testdata") {
			return fs.SkipDir
		}
		return err
	})
}

// golang collects lines.
type golang struct {
	files        *token.FileSet
	module       string
	public       []*types.Package
	experimental []string
	seen         map[*types.TypeName]bool
	lines        []string
}

// onlyIfShown reports whether a name has a line only if another line shows it.
func (g *golang) onlyIfShown(o types.Object) bool {
	dir := g.name(o.Pkg())
	file := path.Join(dir, filepath.Base(g.files.Position(o.Pos()).Filename))
	_, isType := o.(*types.TypeName)
	return slices.Contains(g.experimental, dir) || isType && (!o.Exported() || slices.Contains(g.experimental, file))
}

// name names a package by its directory.
func (g *golang) name(p *types.Package) string {
	if dir, inside := strings.CutPrefix(p.Path(), g.module+"/"); inside {
		return dir
	}
	return p.Name()
}

// add adds a line, and the lines of the types that it shows.
func (g *golang) add(p *types.Package, shows types.Type, format string, args ...any) {
	g.lines = append(g.lines, g.name(p)+": "+fmt.Sprintf(format, args...))
	g.visit(shows)
}

func (g *golang) object(o types.Object) {
	switch o := o.(type) {
	case *types.Const:
		value := o.Val().ExactString()
		if o.Val().Kind() == constant.Float {
			value = o.Val().String()
		}
		g.add(o.Pkg(), o.Type(), "const %s %s = %s", o.Name(), g.text(o.Type()), value)
	case *types.Var:
		g.add(o.Pkg(), o.Type(), "var %s %s", o.Name(), g.text(o.Type()))
	case *types.Func:
		g.add(o.Pkg(), o.Type(), "func %s%s", o.Name(), strings.TrimPrefix(g.text(o.Type()), "func"))
	case *types.TypeName:
		g.typeName(o)
	}
}

// typeName adds the lines of a type, of its fields and of its methods.
func (g *golang) typeName(o *types.TypeName) {
	if g.seen[o] {
		return
	}
	g.seen[o] = true
	if alias, is := o.Type().(*types.Alias); is {
		g.add(o.Pkg(), alias.Rhs(), "type %s = %s", o.Name(), g.text(alias.Rhs()))
		return
	}
	named := o.Type().(*types.Named)
	head := o.Name()
	if all := named.TypeParams(); all.Len() > 0 {
		var params []string
		for p := range all.TypeParams() {
			params = append(params, p.Obj().Name()+" "+g.text(p.Constraint()))
		}
		head += "[" + strings.Join(params, ", ") + "]"
	}
	if slices.Contains(g.experimental, g.name(o.Pkg())+"."+o.Name()) {
		g.add(o.Pkg(), nil, "type %s, opaque", head)
		return
	}
	switch under := named.Underlying().(type) {
	case *types.Struct:
		g.add(o.Pkg(), nil, "type %s struct", head)
		g.fields(o, under)
	case *types.Interface:
		g.contract(o, head, under)
		return
	case *types.Signature:
		if hidden.MatchString(g.text(under)) {
			g.add(o.Pkg(), nil, "type %s func, sealed", head)
		} else {
			g.add(o.Pkg(), under, "type %s %s", head, g.text(under))
		}
	default:
		g.add(o.Pkg(), under, "type %s %s", head, g.text(under))
		g.values(o)
	}
	g.methods(o, named)
}

// values adds the constants of a type that has a line only because another shows it.
func (g *golang) values(o *types.TypeName) {
	all := o.Pkg().Scope()
	for _, name := range all.Names() {
		if c, is := all.Lookup(name).(*types.Const); is && c.Exported() && types.Identical(c.Type(), o.Type()) {
			g.object(c)
		}
	}
}

// hidden matches types that users can't name: those of internal packages, and those
// without an exported name.
var hidden = regexp.MustCompile(`internal/|\w\.[a-z]`)

// fields adds the fields of a struct. The exported fields of an embedded type without
// an exported name are its own.
func (g *golang) fields(o *types.TypeName, of *types.Struct) {
	for f := range of.Fields() {
		inner, isStruct := f.Type().Underlying().(*types.Struct)
		switch {
		case f.Exported() && f.Embedded():
			g.add(o.Pkg(), f.Type(), "field %s: embedded %s", o.Name(), g.text(f.Type()))
		case f.Exported():
			g.add(o.Pkg(), f.Type(), "field %s.%s %s", o.Name(), f.Name(), g.text(f.Type()))
		case f.Embedded() && isStruct:
			g.fields(o, inner)
		}
	}
}

// contract adds an interface with its methods' names: with one more, programs that
// implement it don't compile. Nobody implements a sealed one, which has methods that
// users can't write.
func (g *golang) contract(o *types.TypeName, head string, of *types.Interface) {
	var names []string
	sealed := false
	for m := range of.Methods() {
		text := g.text(m.Type())
		if !m.Exported() || hidden.MatchString(text) {
			sealed = true
			continue
		}
		names = append(names, m.Name())
		g.add(o.Pkg(), m.Type(), "method %s.%s%s", o.Name(), m.Name(), strings.TrimPrefix(text, "func"))
	}
	if sealed {
		g.add(o.Pkg(), nil, "type %s interface, sealed", head)
		return
	}
	g.add(o.Pkg(), nil, "type %s interface{%s}", head, strings.Join(names, ", "))
}

// methods adds the methods of a type, those of embedded types included.
func (g *golang) methods(o *types.TypeName, named *types.Named) {
	values := types.NewMethodSet(named)
	for m := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		if !m.Obj().Exported() {
			continue
		}
		receiver := "*" + o.Name()
		if values.Lookup(m.Obj().Pkg(), m.Obj().Name()) != nil {
			receiver = o.Name()
		}
		g.add(o.Pkg(), m.Type(), "method (%s) %s%s", receiver, m.Obj().Name(), strings.TrimPrefix(g.text(m.Type()), "func"))
	}
}

// visit adds the lines of types that a line shows.
func (g *golang) visit(t types.Type) {
	switch t := t.(type) {
	case *types.Alias:
		g.shown(t.Obj())
		g.visit(types.Unalias(t))
	case *types.Named:
		g.shown(t.Obj())
		for arg := range t.TypeArgs().Types() {
			g.visit(arg)
		}
	case *types.Signature:
		for v := range t.Params().Variables() {
			g.visit(v.Type())
		}
		for v := range t.Results().Variables() {
			g.visit(v.Type())
		}
	case *types.Struct:
		for f := range t.Fields() {
			g.visit(f.Type())
		}
	case *types.Map:
		g.visit(t.Key())
		g.visit(t.Elem())
	case interface{ Elem() types.Type }: // a pointer, a slice, an array or a channel
		g.visit(t.Elem())
	}
}

func (g *golang) shown(o *types.TypeName) {
	ours := o.Pkg() != nil && strings.HasPrefix(o.Pkg().Path()+"/", g.module+"/")
	if ours && (!slices.Contains(g.public, o.Pkg()) || g.onlyIfShown(o)) {
		g.typeName(o)
	}
}

// text returns a type without the names of parameters: callers don't spell them.
func (g *golang) text(t types.Type) string {
	return types.TypeString(unnamed(t), g.name)
}

func unnamed(t types.Type) types.Type {
	switch t := t.(type) {
	case *types.Signature:
		params := func(all *types.Tuple) *types.Tuple {
			var vars []*types.Var
			for v := range all.Variables() {
				vars = append(vars, types.NewParam(token.NoPos, nil, "", unnamed(v.Type())))
			}
			return types.NewTuple(vars...)
		}
		var typeParams []*types.TypeParam
		for p := range t.TypeParams().TypeParams() {
			typeParams = append(typeParams, types.NewTypeParam(types.NewTypeName(token.NoPos, nil, p.Obj().Name(), nil), p.Constraint()))
		}
		return types.NewSignatureType(nil, nil, typeParams, params(t.Params()), params(t.Results()), t.Variadic())
	case *types.Pointer:
		return types.NewPointer(unnamed(t.Elem()))
	case *types.Slice:
		return types.NewSlice(unnamed(t.Elem()))
	case *types.Map:
		return types.NewMap(unnamed(t.Key()), unnamed(t.Elem()))
	}
	return t
}
