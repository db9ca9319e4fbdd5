package wire

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/refold/refold"

// source is the Go source of the packages whose types are on the wire: their type
// declarations with comments, and their constants.
type source struct {
	root     string // directory of the module
	files    *token.FileSet
	packages map[string]*sourcePackage // by import path
	parts    map[string]string         // names of the schemas of types that have one of their own, by Go type
}

type sourcePackage struct {
	path  string
	types map[string]*declaration
	about map[string]string // the comments of constants

	variables map[string]ast.Expr // their values
	checks    *types.Package      // for constants; types of other modules are missing in it
}

// declaration is a declared type.
type declaration struct {
	in   *sourcePackage
	file *ast.File
	name string
	doc  string
	expr ast.Expr

	// rules are JSON fragments that its schema has besides what follows from its
	// fields: lines of the comment that begin with //wire:rule.
	rules []string
	// example is a message as JSON: the line that begins with //wire:example.
	example string
}

func newSource(root string) *source {
	return &source{root: root, files: token.NewFileSet(), packages: map[string]*sourcePackage{}, parts: partNames}
}

// Import returns the package of this module with the given path, and an empty package
// for any other: constants on the wire do not depend on those.
func (s *source) Import(importPath string) (*types.Package, error) {
	if !strings.HasPrefix(importPath, module+"/") {
		p := types.NewPackage(importPath, path.Base(importPath))
		p.MarkComplete()
		return p, nil
	}
	p, err := s.load(importPath)
	if err != nil {
		return nil, err
	}
	return p.checks, nil
}

// load parses a package of this module, without its tests.
func (s *source) load(importPath string) (*sourcePackage, error) {
	if p, ok := s.packages[importPath]; ok {
		return p, nil
	}
	dir := filepath.Join(s.root, strings.TrimPrefix(importPath, module+"/"))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	p := &sourcePackage{path: importPath, types: map[string]*declaration{}, about: map[string]string{}, variables: map[string]ast.Expr{}}
	var parsed []*ast.File
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(s.files, filepath.Join(dir, name), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, file)
		p.declare(file)
	}
	s.packages[importPath] = p
	config := types.Config{Importer: s, Error: func(error) {}, IgnoreFuncBodies: true}
	p.checks, _ = config.Check(importPath, s.files, parsed, nil) // incomplete: see Import
	return p, nil
}

// declare adds the types that a file declares, and the comments of its constants.
func (p *sourcePackage) declare(file *ast.File) {
	for _, decl := range file.Decls {
		of, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range of.Specs {
			if value, ok := spec.(*ast.ValueSpec); ok && of.Tok == token.CONST {
				for _, name := range value.Names {
					p.about[name.Name] = cmp.Or(oneLine(value.Doc.Text()), oneLine(value.Comment.Text()))
				}
			}
			if value, ok := spec.(*ast.ValueSpec); ok && of.Tok == token.VAR && len(value.Values) == 1 {
				p.variables[value.Names[0].Name] = value.Values[0]
			}
			typ, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			doc := typ.Doc
			if doc == nil {
				doc = of.Doc
			}
			d := &declaration{in: p, file: file, name: typ.Name.Name, doc: doc.Text(), expr: typ.Type}
			if doc != nil {
				for _, line := range doc.List {
					if rule, ok := strings.CutPrefix(line.Text, "//wire:rule "); ok {
						d.rules = append(d.rules, rule)
					}
					if example, ok := strings.CutPrefix(line.Text, "//wire:example "); ok {
						d.example = example
					}
				}
			}
			p.types[typ.Name.Name] = d
		}
	}
}

// find returns the declaration of a type that a file names: Name, or package.Name.
// It returns nil for a basic type and for one of another module.
func (s *source) find(from *declaration, expr ast.Expr) (*declaration, error) {
	switch e := expr.(type) {
	case *ast.Ident:
		return from.in.types[e.Name], nil
	case *ast.SelectorExpr:
		importPath := importOf(from.file, e.X.(*ast.Ident).Name)
		if !strings.HasPrefix(importPath, module+"/") {
			return nil, nil
		}
		p, err := s.load(importPath)
		if err != nil {
			return nil, err
		}
		return p.types[e.Sel.Name], nil
	}
	return nil, nil
}

// importOf returns the path of the import that a file uses under a name.
func importOf(file *ast.File, name string) string {
	for _, imported := range file.Imports {
		importPath := strings.Trim(imported.Path.Value, `"`)
		if imported.Name != nil && imported.Name.Name == name || imported.Name == nil && path.Base(importPath) == name {
			return importPath
		}
	}
	return ""
}

// declared returns the type that "actors/session.RunConfig" names.
func (s *source) declared(name string) (*declaration, error) {
	dot := strings.LastIndexByte(name, '.')
	dir, typ := name[:dot], name[dot+1:]
	p, err := s.load(module + "/" + dir)
	if err != nil {
		return nil, err
	}
	if d := p.types[typ]; d != nil {
		return d, nil
	}
	return nil, fmt.Errorf("%s declares no type %s", dir, typ)
}

// number returns the value of a constant expression in a package: a literal, Name,
// package.Name, or Name and a literal joined by + or -.
func (s *source) number(in *sourcePackage, text string) (int64, error) {
	expr, err := parser.ParseExpr(text)
	if err != nil {
		return 0, err
	}
	value, err := s.evaluate(in, expr)
	if err != nil {
		return 0, err
	}
	n, exact := constant.Int64Val(constant.ToInt(value))
	if !exact {
		return 0, fmt.Errorf("%s is no whole number", text)
	}
	return n, nil
}

func (s *source) evaluate(in *sourcePackage, expr ast.Expr) (constant.Value, error) {
	switch e := expr.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0), nil
	case *ast.UnaryExpr:
		x, err := s.evaluate(in, e.X)
		if err != nil {
			return nil, err
		}
		return constant.UnaryOp(e.Op, x, 0), nil
	case *ast.BinaryExpr:
		x, err := s.evaluate(in, e.X)
		if err != nil {
			return nil, err
		}
		y, err := s.evaluate(in, e.Y)
		if err != nil {
			return nil, err
		}
		return constant.BinaryOp(x, e.Op, y), nil
	case *ast.Ident:
		return constantOf(in, e.Name)
	case *ast.SelectorExpr:
		p, err := s.load(module + "/" + packageDirs[e.X.(*ast.Ident).Name])
		if err != nil {
			return nil, err
		}
		return constantOf(p, e.Sel.Name)
	}
	return nil, fmt.Errorf("a limit is a literal or a constant, not %T", expr)
}

func constantOf(p *sourcePackage, name string) (constant.Value, error) {
	c, ok := p.checks.Scope().Lookup(name).(*types.Const)
	if !ok || c.Val().Kind() == constant.Unknown {
		return nil, fmt.Errorf("%s has no constant %s", p.path, name)
	}
	return c.Val(), nil
}

// code is a constant text, and its comment.
type code struct{ value, about string }

// codes returns the constants that have a type with this name, or else a name with this
// prefix, in the order of their declaration.
func (p *sourcePackage) codes(name string) (all []code) {
	scope := p.checks.Scope()
	typ, _ := scope.Lookup(name).(*types.TypeName)
	isType := typ != nil && types.Identical(typ.Type().Underlying(), types.Typ[types.String])
	var found []*types.Const
	for _, of := range scope.Names() {
		c, ok := scope.Lookup(of).(*types.Const)
		if !ok || c.Val().Kind() != constant.String {
			continue
		}
		if isType && c.Type() == typ.Type() || !isType && strings.HasPrefix(of, name) {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b *types.Const) int { return cmp.Compare(a.Pos(), b.Pos()) })
	for _, c := range found {
		all = append(all, code{constant.StringVal(c.Val()), p.about[c.Name()]})
	}
	return all
}

// values returns the texts of codes.
func (p *sourcePackage) values(name string) (all []string) {
	for _, c := range p.codes(name) {
		all = append(all, c.value)
	}
	return all
}
