package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// exempt is a file, or a directory and everything below it, that a law spares.
type exempt struct{ path, why string }

func spares(all []exempt, file string) bool {
	for _, e := range all {
		if under(file, e.path) {
			return true
		}
	}
	return false
}

var (
	// cutting are the names of functions that cut texts.
	cutting = regexp.MustCompile(`^([cC]lip|[tT]runcate|[sS]horten|[aA]bbreviate|[eE]xcerpt)`)
	// limits are the names of what bounds a slice.
	limits = regexp.MustCompile(`(Max|Bytes|^max|^limit|^most)$`)
)

// shortest is the smallest number as the end of a slice that counts as a limit.
const shortest = 32

// checkCuts: the text of a program, a server or a tool is cut by Clip of a
// redactor, which removes secrets first. What is left of a secret that was cut is
// not found any more.
func (l laws) checkCuts(t *tree) (complaints []string) {
	for _, p := range t.pkgs {
		if !spares(l.redacting, p.dir) {
			continue
		}
		for _, f := range p.shipped() {
			if spares(l.uncut, f.path) {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					if n.Recv == nil && cutting.MatchString(n.Name.Name) {
						complaints = append(complaints, t.at(n, "%s cuts a text that may contain a secret: use Clip of a secrets.Redactor", n.Name.Name))
					}
				case *ast.CallExpr:
					if name, plain := f.plainCall(n); plain && cutting.MatchString(name) && !redacts(n) {
						complaints = append(complaints, t.at(n, "%s cuts a text that may contain a secret: use Clip of a secrets.Redactor", name))
					}
				case *ast.SliceExpr:
					if n.High != nil && isLimit(n.High) {
						complaints = append(complaints, t.at(n, "cuts at a limit what may contain a secret: use Clip of a secrets.Redactor"))
					}
				}
				return true
			})
		}
	}
	return complaints
}

// plainCall returns the name of a called function. plain is false for methods, and
// for package slices, whose Clip cuts nothing.
func (f *file) plainCall(call *ast.CallExpr) (name string, plain bool) {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name, true
	case *ast.SelectorExpr:
		x, ok := fun.X.(*ast.Ident)
		if !ok || x.Name == "slices" {
			return "", false
		}
		for _, i := range f.imports() {
			if i.Name != nil && i.Name.Name == x.Name || path.Base(i.path) == x.Name {
				return fun.Sel.Name, true
			}
		}
	}
	return "", false
}

// redacts reports whether the first argument of a call is a text without secrets.
func redacts(call *ast.CallExpr) bool {
	if len(call.Args) == 0 {
		return false
	}
	inner, ok := call.Args[0].(*ast.CallExpr)
	if !ok {
		return false
	}
	method, ok := inner.Fun.(*ast.SelectorExpr)
	return ok && (method.Sel.Name == "Clean" || method.Sel.Name == "Text")
}

func isLimit(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return limits.MatchString(e.Name)
	case *ast.SelectorExpr:
		return limits.MatchString(e.Sel.Name)
	case *ast.BasicLit:
		n, err := strconv.Atoi(e.Value)
		return err == nil && n >= shortest
	case *ast.BinaryExpr:
		return isLimit(e.X) || isLimit(e.Y)
	case *ast.CallExpr:
		for _, arg := range e.Args {
			if isLimit(arg) {
				return true
			}
		}
	}
	return false
}

// checkLines: a line has a limit. bufio.Reader and bytes.Buffer read a line of any
// length into memory; a function that reads one from an io.LimitReader does not.
func (l laws) checkLines(t *tree) (complaints []string) {
	for _, p := range t.pkgs {
		for _, f := range p.shipped() {
			for _, d := range f.ast.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || fn.Body == nil || mentions(fn.Body, "LimitReader") {
					continue
				}
				ast.Inspect(fn.Body, func(n ast.Node) bool {
					call, ok := n.(*ast.CallExpr)
					if !ok || len(call.Args) != 1 {
						return true
					}
					method, ok := call.Fun.(*ast.SelectorExpr)
					if delimiter, is := call.Args[0].(*ast.BasicLit); ok && is && strings.HasPrefix(delimiter.Value, "'") && (method.Sel.Name == "ReadString" || method.Sel.Name == "ReadBytes") {
						complaints = append(complaints, t.at(call, "%s takes a line of any length: read from an io.LimitReader, or by ReadSlice with a limit", method.Sel.Name))
					}
					return true
				})
			}
		}
	}
	return complaints
}

func mentions(n ast.Node, name string) (yes bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		yes = yes || ok && id.Name == name
		return !yes
	})
	return yes
}

// staleExempts returns complaints about entries that name no file.
func (t *tree) staleExempts(law string, all []exempt) (complaints []string) {
	for _, e := range all {
		there := false
		for _, p := range t.pkgs {
			for _, f := range p.files {
				there = there || under(f.path, e.path)
			}
		}
		if !there {
			complaints = append(complaints, fmt.Sprintf("%s: %s is not there; take it off", law, e.path))
		}
	}
	return complaints
}
