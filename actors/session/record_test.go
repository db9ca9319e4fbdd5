package session_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// free are the fields of a state that may have any value.
var free = map[string]string{
	"session.Record.Chain":          "a hash of all events",
	"session.Record.Leaf":           "a hash of the latest event",
	"session.Record.NoticeN":        "a count of notices",
	"session.Record.WindowBytes":    "a sum over the log's contents: TestWindowBytes",
	"session.Run.Doubt":             "a flag: the run's config is checked again",
	"session.StepCall.ArgumentsCut": "a flag",
	"session.Approval.ArgsHash":     "a hash of arguments",
	"session.Call.Result":           "a hash of an event's part",
	"session.Call.Settled":          "a hash of an event",
	"session.Turn.Settled":          "a hash of an event",
	"session.Compaction.Again":      "a flag",
	"session.Compaction.Asked":      "a flag",
	"session.Compaction.Settled":    "a hash of an event",
	"session.TurnStep.Settled":      "a hash of an event",
	"session.Submission.Content":    "a hash of an event's part",
	"spaces.Done.Hash":              "a hash of an event",
	"spaces.Sync.Data":              "a hash of an event",
	"spaces.Turn.Mark":              "a hash of a prompt",
	"spaces.Turn.Tools":             "a flag: the turn's registry was composed with it",
	"spaces.PromptPart.Ref":         "the hash of a blob",
	"spaces.Sync.Dry":               "a flag",
	"spaces.UsedGrant.Attach":       "a copy of a grant's",
	"spaces.UsedGrant.Sources":      "a copy of a grant's",
	"spaces.UsedGrant.Target":       "a copy of a grant's",
	"spaces.UsedGrant.Trust":        "a copy of a grant's",
	"spaces.Stage.Run":              "the number of a run that may have ended",
}

// Every field of a state is read by an invariant of the package that declares its type,
// by the generated limits of an event that brings it, or is listed above. A field
// without one could be restored with any value.
func TestEveryFieldHasAnInvariant(t *testing.T) {
	t.Parallel()
	unread := map[string]bool{}
	for _, dir := range []string{".", "../spaces"} {
		p := checked(t, dir)
		read := p.readByInvariants()
		for name := range stored(p) {
			of := p.pkg.Scope().Lookup(name).Type().(*types.Named)
			fields := of.Underlying().(*types.Struct)
			for i := range fields.NumFields() {
				f := fields.Field(i)
				if !read[f] && strings.Contains(fields.Tag(i), "msgpack") {
					unread[p.pkg.Name()+"."+name+"."+f.Name()] = true
				}
			}
		}
	}
	for _, field := range slices.Sorted(maps.Keys(unread)) {
		if free[field] == "" {
			t.Errorf("%s has no invariant: check it in the method invariant of its type, or list it as free, with the reason", field)
		}
	}
	for field, why := range free {
		if !unread[field] {
			t.Errorf("%s has an invariant, or is no field any more: take it off the list (%s)", field, why)
		}
	}
}

// stored returns the structs of a package that a state stores, besides those that events
// bring, which have limits.
func stored(p *checkedPackage) map[string]bool {
	found := map[string]bool{}
	var add func(types.Type)
	add = func(of types.Type) {
		switch of := types.Unalias(of).(type) {
		case *types.Pointer:
			add(of.Elem())
		case *types.Slice:
			add(of.Elem())
		case *types.Named:
			name, fields := of.Obj().Name(), (*types.Struct)(nil)
			if of.Obj().Pkg() == p.pkg {
				fields, _ = of.Underlying().(*types.Struct)
			}
			if fields == nil || found[name] || p.limits[name] {
				return
			}
			found[name] = true
			for i := range fields.NumFields() {
				if strings.Contains(fields.Tag(i), "msgpack") || fields.Field(i).Embedded() {
					add(fields.Field(i).Type())
				}
			}
		}
	}
	root := "Record"
	if p.pkg.Scope().Lookup(root) == nil || p.pkg.Name() == "spaces" {
		root = "State"
	}
	add(p.pkg.Scope().Lookup(root).Type())
	return found
}

// checkedPackage is a package with its types. Those of other packages are missing.
type checkedPackage struct {
	pkg    *types.Package
	files  []*ast.File
	info   *types.Info
	limits map[string]bool // types whose values limits_gen.go checks
}

// empty imports every package as an empty one: what the package declares itself suffices.
type empty struct{}

func (empty) Import(importPath string) (*types.Package, error) {
	p := types.NewPackage(importPath, path.Base(importPath))
	p.MarkComplete()
	return p, nil
}

func checked(t *testing.T, dir string) *checkedPackage {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	p := &checkedPackage{info: &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}, limits: map[string]bool{}}
	files := token.NewFileSet()
	for _, entry := range entries {
		if name := entry.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			file, err := parser.ParseFile(files, path.Join(dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			p.files = append(p.files, file)
		}
	}
	config := types.Config{Importer: empty{}, Error: func(error) {}}
	p.pkg, _ = config.Check(dir, files, p.files, p.info)
	for _, f := range p.functions() {
		if receiver, name, ok := strings.Cut(f.Name.Name, "imitsOf"); ok && receiver == "l" {
			p.limits[name] = true
		}
		if f.Name.Name == "limits" {
			p.limits[f.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name] = true
		}
	}
	return p
}

func (p *checkedPackage) functions() (all []*ast.FuncDecl) {
	for _, file := range p.files {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				all = append(all, f)
			}
		}
	}
	return all
}

// readByInvariants returns the fields that functions read whose name is invariant or
// ends so, and what these call for a part: the faults of a grant, the lists of overrides.
func (p *checkedPackage) readByInvariants() map[*types.Var]bool {
	read := map[*types.Var]bool{}
	for _, f := range p.functions() {
		if !strings.HasSuffix(strings.ToLower(f.Name.Name), "invariant") && !slices.Contains([]string{"Check", "lists", "Fault", "listsFault", "packFault", "RunLimitMS", "SpaceKind"}, f.Name.Name) {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if s := p.info.Selections[selector]; s != nil {
				if v, ok := s.Obj().(*types.Var); ok {
					read[v] = true
				}
			}
			return true
		})
	}
	return read
}
