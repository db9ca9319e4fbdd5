package client_test

// No function of a public package panics on options that are left out. The list of
// functions follows from the source, so that a new one can't be forgotten.

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/bridgetest"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/client"
)

// withOptions are the directories of the public packages whose functions have
// options. Those of the others take data.
var withOptions = []string{"bridge", "bridge/bridgetest", "bridge/executor", "bridge/function", "client"}

// optionsTakers returns the exported functions and methods that take a struct or a
// function of an exported type, with their packages and types.
func optionsTakers(t *testing.T) (all []string) {
	t.Helper()
	types := map[string]bool{} // structs and functions by package and name
	files := map[string][]*ast.File{}
	for _, dir := range append([]string{"actors/session", "space"}, withOptions...) {
		paths, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: no files (%v)", dir, err)
		}
		pkg := filepath.Base(dir)
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(withOptions, dir) {
				files[pkg] = append(files[pkg], file)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.IsExported() {
					switch spec.Type.(type) {
					case *ast.StructType, *ast.FuncType:
						types[pkg+"."+spec.Name.Name] = true
					}
				}
				return true
			})
		}
	}
	for pkg, parsed := range files {
		for _, file := range parsed {
			for _, decl := range file.Decls {
				f, ok := decl.(*ast.FuncDecl)
				if !ok || !f.Name.IsExported() || !takes(f, pkg, types) {
					continue
				}
				name := pkg + "." + f.Name.Name
				if f.Recv != nil {
					of := nameOf(f.Recv.List[0].Type)
					if !ast.IsExported(of) {
						continue
					}
					name = pkg + "." + of + "." + f.Name.Name
				}
				all = append(all, name)
			}
		}
	}
	slices.Sort(all)
	return all
}

// takes reports whether a function takes one of the types as a value.
func takes(f *ast.FuncDecl, pkg string, types map[string]bool) bool {
	return slices.ContainsFunc(f.Type.Params.List, func(field *ast.Field) bool {
		typ := field.Type
		if more, ok := typ.(*ast.Ellipsis); ok {
			typ = more.Elt
		}
		switch typ := typ.(type) {
		case *ast.Ident:
			return types[pkg+"."+typ.Name]
		case *ast.SelectorExpr:
			return types[nameOf(typ.X)+"."+typ.Sel.Name]
		}
		return false
	})
}

func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return nameOf(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// plain is an executor of everything, which does nothing.
type plain struct{}

func (plain) Execute(context.Context, executor.Call) (executor.Result, error) {
	return executor.Result{}, nil
}

func (plain) Generate(context.Context, executor.Request, func(string)) (executor.Answer, error) {
	return executor.Answer{}, nil
}

func (plain) PrepareStep(context.Context, executor.StepRequest) (executor.StepChoice, error) {
	return executor.StepChoice{}, nil
}

func (plain) ReadSpace(context.Context, executor.SpaceRequest) (executor.SpaceContent, error) {
	return executor.SpaceContent{}, fs.ErrNotExist
}

// failing is the T of a test that may fail: that is not what is tested.
type failing struct{ *testing.T }

var errFailed = errors.New("the test failed")

func (failing) Errorf(string, ...any) {}
func (failing) Fatalf(string, ...any) { panic(errFailed) }

// TestZeroOptionsDoNotPanic calls every function that takes options with their zero
// values, on a real server, whose session s1 has a run.
func TestZeroOptionsDoNotPanic(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	follower, err := w.Follow(w.ctx, "s1")
	if err != nil {
		t.Fatal(err)
	}
	defer follower.Close()
	seq := w.ask("s1", "hi")
	w.answer("s1", 1, "hello")
	b, err := bridge.Connect(w.ctx, bridge.Options{URL: w.node.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	tool := function.New("t.do", func(context.Context, struct{}) (string, error) { return "", nil })
	functions := map[string]any{
		"bridge.Bridge.AskReader":          b.AskReader,
		"bridge.Bridge.EndHostSession":     b.EndHostSession,
		"bridge.Bridge.Fleet":              b.Fleet,
		"bridge.Bridge.Functions":          b.Functions,
		"bridge.Bridge.Model":              b.Model,
		"bridge.Bridge.Pack":               b.Pack,
		"bridge.Bridge.PublishedPacks":     b.PublishedPacks,
		"bridge.Bridge.SessionTools":       b.SessionTools,
		"bridge.Bridge.Space":              b.Space,
		"bridge.Bridge.Step":               b.Step,
		"bridge.Bridge.Tool":               b.Tool,
		"bridge.Bucket.ReadSpace":          bridge.Bucket{}.ReadSpace,
		"bridge.Connect":                   bridge.Connect,
		"bridge.Folder.ReadSpace":          bridge.Folder{}.ReadSpace,
		"bridge.Limit":                     bridge.Limit,
		"bridge.Published.ReadSpace":       bridge.Published{}.ReadSpace,
		"bridge.Rehearse":                  bridge.Rehearse,
		"bridgetest.Call":                  bridgetest.Call,
		"bridgetest.Calls":                 bridgetest.Calls,
		"bridgetest.Model":                 bridgetest.Model,
		"bridgetest.New":                   bridgetest.New,
		"client.Client.Apply":              w.Apply,
		"client.Client.Approve":            w.Approve,
		"client.Client.Reply":              w.Reply,
		"client.Client.Cancel":             w.Cancel,
		"client.Client.Compact":            w.Compact,
		"client.Client.SetSchedule":        w.SetSchedule,
		"client.Client.CompleteRun":        w.CompleteRun,
		"client.Client.Deny":               w.Deny,
		"client.Client.EditRun":            w.EditRun,
		"client.Client.Ended":              w.Ended,
		"client.Client.FailRun":            w.FailRun,
		"client.Client.Index":              w.Index,
		"client.Client.Interrupt":          w.Interrupt,
		"client.Client.Deletable":          w.Deletable,
		"client.Client.Keep":               w.Keep,
		"client.Client.SweepBlobs":         w.SweepBlobs,
		"client.Client.Deleter":            w.Deleter,
		"client.Client.Pause":              w.Pause,
		"client.Client.Restore":            w.Restore,
		"client.Client.Resume":             w.Resume,
		"client.Client.Run":                w.Run,
		"client.Client.SetOverrides":       w.SetOverrides,
		"client.Client.SettleBatch":        w.SettleBatch,
		"client.Client.SettleCall":         w.SettleCall,
		"client.Client.Steer":              w.Steer,
		"client.Client.Store":              w.Store,
		"client.Client.Sync":               w.Sync,
		"client.Client.Verify":             w.Verify,
		"client.Connect":                   client.Connect,
		"client.Follower.End":              func(ctx context.Context, o client.Watch) (client.RunEnd, error) { return follower.End(ctx, seq, "", o) },
		"executor.PrepareStep.PrepareStep": executor.PrepareStep(plain{}.PrepareStep).PrepareStep,
		"executor.StepRequest.Arguments":   executor.StepRequest{}.Arguments,
		"executor.StepRequest.Result":      executor.StepRequest{}.Result,
		"function.Function.Execute":        tool.Execute,
		"function.New":                     function.New[struct{}, string],
		"function.Set.Execute":             function.Set{}.Execute,
	}
	derived := optionsTakers(t)
	for _, name := range derived {
		if functions[name] == nil {
			t.Errorf("%s takes options, and is not called here", name)
		}
	}
	for name, f := range functions {
		if !slices.Contains(derived, name) {
			t.Errorf("%s takes no options", name)
		}
		t.Run(name, func(t *testing.T) { callZero(t, reflect.ValueOf(f), tool) })
	}
}

// callZero calls f with a context, a session, executors, and zero options. Each
// variadic option is given once, as its zero value. It reads the first value of an
// iterator.
func callZero(t *testing.T, f reflect.Value, tool *function.Function) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	given := []any{ctx, "s1", plain{}, tool, func(context.Context, struct{}) (string, error) { return "", nil }, failing{t}}
	var in []reflect.Value
	for i := range f.Type().NumIn() {
		typ := f.Type().In(i)
		if f.Type().IsVariadic() && i == f.Type().NumIn()-1 {
			typ = typ.Elem()
		}
		arg := reflect.Zero(typ)
		for _, one := range given {
			if v := reflect.ValueOf(one); v.Type().AssignableTo(typ) && (typ.Kind() != reflect.Interface || typ.NumMethod() > 0) {
				arg = v
				break
			}
		}
		in = append(in, arg)
	}
	defer func() {
		if p := recover(); p != nil && p != errFailed { //nolint:errorlint // it is never wrapped
			t.Errorf("it panics: %v", p)
		}
	}()
	for _, out := range f.Call(in) {
		switch v := out.Interface().(type) {
		case interface{ Close() }:
			if !out.IsNil() {
				v.Close()
			}
		default:
			if out.Kind() == reflect.Func && out.Type().NumIn() == 1 && out.Type().In(0).Kind() == reflect.Func {
				for range out.Seq2() {
					break
				}
			}
		}
	}
}
