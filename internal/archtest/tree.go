package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// tree is the Go source of a module, parsed regardless of build constraints.
type tree struct {
	fset *token.FileSet
	pkgs []*pkg // by directory
	// importer finds the types of imported packages.
	importer types.Importer
	outside  map[string][]string // imports of packages of other modules
}

// pkg is a directory of Go files, its external test package included.
type pkg struct {
	dir   string // "." is the root
	files []*file
}

type file struct {
	path string
	text []byte
	ast  *ast.File
	test bool
}

// imported is one import of one file.
type imported struct {
	*ast.ImportSpec
	path string
}

// readTree parses the module at root. The go command finds the types that its
// pure and public packages import.
func readTree(t testing.TB, root string) *tree {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != root && skipped(name) {
			return fs.SkipDir
		}
		if d.IsDir() || filepath.Ext(name) != ".go" {
			return nil
		}
		text, err := os.ReadFile(name)
		files[filepath.ToSlash(name)] = text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	tr := parseTree(t, files)
	tr.outside = outside(t)
	tr.importer = compiled(t, tr.fset, slices.Concat(repository.pure, repository.public))
	return tr
}

// skipped reports whether a directory holds no package of this module.
func skipped(dir string) bool {
	base := filepath.Base(dir)
	if base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// parseTree builds a tree from files, by slash-separated path.
func parseTree(t testing.TB, files map[string][]byte) *tree {
	t.Helper()
	tr := &tree{fset: token.NewFileSet()}
	tr.importer = blank{tr}
	dirs := map[string]*pkg{}
	for name, text := range files {
		parsed, err := parser.ParseFile(tr.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		dir := path.Dir(name)
		if dirs[dir] == nil {
			dirs[dir] = &pkg{dir: dir}
			tr.pkgs = append(tr.pkgs, dirs[dir])
		}
		dirs[dir].files = append(dirs[dir].files, &file{
			path: name, text: text, ast: parsed, test: strings.HasSuffix(name, "_test.go"),
		})
	}
	slices.SortFunc(tr.pkgs, func(a, b *pkg) int { return strings.Compare(a.dir, b.dir) })
	for _, p := range tr.pkgs {
		slices.SortFunc(p.files, func(a, b *file) int { return strings.Compare(a.path, b.path) })
	}
	return tr
}

// shipped returns the files that are not tests.
func (p *pkg) shipped() []*file {
	return slices.DeleteFunc(slices.Clone(p.files), func(f *file) bool { return f.test })
}

func (f *file) imports() []imported {
	var all []imported
	for _, spec := range f.ast.Imports {
		// The parser has checked the quotes.
		name, _ := strconv.Unquote(spec.Path.Value)
		all = append(all, imported{spec, name})
	}
	return all
}

// dir returns the directory of an imported package of this module.
func (i imported) dir() (dir string, inside bool) {
	if i.path == module {
		return ".", true
	}
	return strings.CutPrefix(i.path, module+"/")
}

// at returns a complaint about a place in a file.
func (t *tree) at(n ast.Node, format string, args ...any) string {
	pos := t.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d: %s", pos.Filename, pos.Line, fmt.Sprintf(format, args...))
}

// typesOf checks the types of a package's shipped files. The caller reports
// errors as complaints: code that does not type-check can't be judged.
func (t *tree) typesOf(p *pkg) (*types.Package, *types.Info, []error) {
	var (
		errs  []error
		files []*ast.File
		info  = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
		conf  = types.Config{Importer: t.importer, Error: func(err error) { errs = append(errs, err) }}
	)
	for _, f := range p.shipped() {
		files = append(files, f.ast)
	}
	checked, _ := conf.Check(path.Join(module, p.dir), t.fset, files, info) // its error is the first of errs
	return checked, info, errs
}

// compiled returns an importer that reads what the go command compiled: all
// that the packages below dirs import.
func compiled(t testing.TB, fset *token.FileSet, dirs []string) types.Importer {
	t.Helper()
	args := []string{"list", "-e", "-export", "-deps", "-f", "{{with .Export}}{{$.ImportPath}}={{.}}{{end}}"}
	for _, dir := range dirs {
		args = append(args, "./"+dir+"/...")
	}
	var stderr bytes.Buffer
	list := exec.CommandContext(t.Context(), "go", args...)
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if name, at, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			exports[name] = at
		}
	}
	return importer.ForCompiler(fset, "gc", func(name string) (io.ReadCloser, error) {
		if exports[name] == "" {
			return nil, fmt.Errorf("%s did not compile", name)
		}
		return os.Open(exports[name])
	})
}

// blank is the importer of test trees: packages that they don't have are empty.
type blank struct{ *tree }

func (b blank) Import(name string) (*types.Package, error) {
	if dir, inside := (imported{path: name}).dir(); inside {
		for _, p := range b.pkgs {
			if p.dir == dir {
				checked, _, _ := b.typesOf(p)
				return checked, nil
			}
		}
	}
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}
