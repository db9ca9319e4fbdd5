package api

import (
	"go/ast"
	"go/constant"
	"go/types"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// Printed returns what the commands of the package in dir print with the named function,
// whose last argument is encoded as JSON: for each type with a method Run the lines of
// what Run prints, or a function of the package that it uses. A line is a field and its
// type.
func Printed(root, dir, function string) (map[string][]string, error) {
	loaded, err := load(packages.LoadSyntax, root, []string{dir})
	if err != nil {
		return nil, err
	}
	o := outputs{Package: loaded[0], bodies: map[*types.Func]*ast.FuncDecl{}}
	for _, f := range o.Syntax {
		for _, d := range f.Decls {
			if fn, is := d.(*ast.FuncDecl); is && fn.Body != nil {
				o.bodies[o.TypesInfo.Defs[fn.Name].(*types.Func)] = fn
			}
		}
	}
	o.print = o.Types.Scope().Lookup(function)
	all := map[string][]string{}
	for _, name := range o.Types.Scope().Names() {
		command, is := o.Types.Scope().Lookup(name).(*types.TypeName)
		if !is {
			continue
		}
		run, _, _ := types.LookupFieldOrMethod(types.NewPointer(command.Type()), true, o.Types, "Run")
		if run, is := run.(*types.Func); is {
			var objects [][]string
			o.follow(run, map[*types.Func]bool{}, &objects)
			all[name] = union(objects)
		}
	}
	return all, nil
}

type outputs struct {
	*packages.Package
	print  types.Object
	bodies map[*types.Func]*ast.FuncDecl
}

func (o *outputs) qualifier(p *types.Package) string {
	return strings.TrimPrefix(p.Path(), o.Module.Path+"/")
}

// follow adds what a function prints, and the functions that it uses.
func (o *outputs) follow(fn *types.Func, seen map[*types.Func]bool, objects *[][]string) {
	decl := o.bodies[fn.Origin()]
	if seen[fn] || decl == nil {
		return
	}
	seen[fn] = true
	ast.Inspect(decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if name, is := n.Fun.(*ast.Ident); is && o.TypesInfo.Uses[name] == o.print {
				*objects = append(*objects, o.printed(n.Args[len(n.Args)-1]))
			}
		case *ast.CompositeLit: // its methods may be called through an interface
			if named, is := o.TypesInfo.TypeOf(n).(*types.Named); is && named.Obj().Pkg() == o.Types {
				for m := range named.Methods() {
					if m.Name() != "Run" {
						o.follow(m, seen, objects)
					}
				}
			}
		case *ast.Ident:
			if used, is := o.TypesInfo.Uses[n].(*types.Func); is {
				o.follow(used, seen, objects)
			}
		}
		return true
	})
}

// printed returns the lines of an expression's value. Of a literal map these are its keys.
func (o *outputs) printed(value ast.Expr) []string {
	w := jsonLines{name: o.qualifier}
	literal, is := value.(*ast.CompositeLit)
	if _, isMap := o.TypesInfo.TypeOf(value).Underlying().(*types.Map); !is || !isMap {
		w.walk("", o.TypesInfo.TypeOf(value), nil)
		return w.lines
	}
	for _, e := range literal.Elts {
		pair := e.(*ast.KeyValueExpr)
		key := constant.StringVal(o.TypesInfo.Types[pair.Key].Value)
		w.walk("."+key, o.TypesInfo.TypeOf(pair.Value), nil)
		w.always("." + key)
	}
	return w.lines
}

// union returns the lines of objects that one command prints. A field is always there if
// each of them has it.
func union(objects [][]string) (lines []string) {
	for _, object := range objects {
		for _, line := range object {
			inAll := !slices.ContainsFunc(objects, func(other []string) bool { return !slices.Contains(other, line) })
			if inAll || !strings.HasSuffix(line, always) {
				lines = append(lines, line)
			}
		}
	}
	return sorted(lines)
}

const always = " is always there"

// jsonLines collects the lines of types as encoding/json writes them.
type jsonLines struct {
	name  types.Qualifier
	lines []string
}

func (w *jsonLines) always(place string) { w.lines = append(w.lines, place+always) }

// walk adds the lines of a type at a place such as .calls[].name, inside of the types in
// around.
func (w *jsonLines) walk(at string, t types.Type, around []types.Type) {
	say := func(kind string) { w.lines = append(w.lines, strings.TrimSpace(at+" "+kind)) }
	if p, is := types.Unalias(t).(*types.Pointer); is {
		t = p.Elem()
	}
	t = types.Unalias(t)
	if slices.ContainsFunc(around, func(outer types.Type) bool { return types.Identical(outer, t) }) {
		say(types.TypeString(t, w.name))
		return
	}
	around = append(slices.Clip(around), t)
	switch {
	case types.TypeString(t, nil) == "encoding/json.RawMessage":
		say("any")
		return
	case has(t, "MarshalJSON"):
		say(types.TypeString(t, w.name))
		return
	case has(t, "MarshalText"):
		say("string")
		return
	}
	switch under := t.Underlying().(type) {
	case *types.Basic:
		say(basic(under))
	case *types.Slice:
		if elem, is := under.Elem().Underlying().(*types.Basic); is && elem.Kind() == types.Byte {
			say("string")
			return
		}
		w.walk(at+"[]", under.Elem(), around)
	case *types.Array:
		w.walk(at+"[]", under.Elem(), around)
	case *types.Map:
		w.walk(at+"{}", under.Elem(), around)
	case *types.Struct:
		w.fields(at, under, around)
	default:
		say("any")
	}
}

// fields adds the lines of a struct's fields, those of embedded structs included.
func (w *jsonLines) fields(at string, of *types.Struct, around []types.Type) {
	for i := range of.NumFields() {
		f := of.Field(i)
		name, options, _ := strings.Cut(reflect.StructTag(of.Tag(i)).Get("json"), ",")
		inner := f.Type()
		if p, is := inner.Underlying().(*types.Pointer); is {
			inner = p.Elem()
		}
		embedded, isStruct := inner.Underlying().(*types.Struct)
		switch {
		case name == "-" && options == "":
		case f.Embedded() && name == "" && isStruct && !has(inner, "MarshalJSON"):
			w.fields(at, embedded, around)
		case f.Exported():
			if name == "" {
				name = f.Name()
			}
			place := at + "." + name
			w.walk(place, f.Type(), around)
			if !strings.Contains(options, "omit") {
				w.always(place)
			}
		}
	}
}

// has reports whether values of a type, or pointers to them, have a method.
func has(t types.Type, method string) bool {
	if _, is := t.Underlying().(*types.Interface); is {
		return false
	}
	found, _, _ := types.LookupFieldOrMethod(types.NewPointer(t), true, nil, method)
	_, is := found.(*types.Func)
	return is
}

func basic(t *types.Basic) string {
	switch info := t.Info(); {
	case info&types.IsBoolean != 0:
		return "boolean"
	case info&types.IsInteger != 0:
		return "integer"
	case info&types.IsNumeric != 0:
		return "number"
	}
	return "string"
}
