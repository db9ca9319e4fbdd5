package logs

// docs/logs.md lists every message that the daemons log at level info or above.
// Names and levels come from the code; people write the meanings. -rewrite adds
// and removes lines and keeps the meanings.

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write the list of docs/logs.md; then write what new messages mean")

// components are the sections of the list, and the directories whose messages
// they have.
var components = []struct {
	name string
	dirs []string
}{
	{"Session-actor", []string{"internal/sessionactor", "internal/engine", "internal/audit", "cmd/session-actor"}},
	{"Bridge", []string{"internal/worker", "internal/prompt", "bridge", "cmd/bridge"}},
	{"NATS, lanes and streams", []string{"internal/natsio", "internal/streams", "internal/journal", "internal/delivery", "internal/presence"}},
	{"Tools", []string{"internal/tools", "tools"}},
	{"HTTP API", []string{"web", "internal/webhook", "cmd/refold/cli", "internal/retain"}},
	{"Telemetry and the rest", []string{"internal/telemetry", "internal/devserver", "cmd/settings"}},
}

const (
	root   = "../../../"
	page   = root + "docs/logs.md"
	opens  = "<!-- messages -->\n"
	closes = "<!-- end of messages -->\n"
)

func TestLogMessagesAreListed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), opens)
	list, after, ok := strings.Cut(rest, closes)
	if !ok {
		t.Fatalf("%s has no list", page)
	}
	meanings, section := map[string]string{}, ""
	for line := range strings.Lines(list) {
		if name, is := strings.CutPrefix(line, "## "); is {
			section = strings.TrimSpace(name)
		}
		if cells := strings.Split(line, " | "); len(cells) == 3 {
			meanings[section+cells[0]] = strings.TrimSuffix(strings.TrimSpace(cells[2]), " |")
		}
	}
	var b strings.Builder
	for _, c := range components {
		fmt.Fprintf(&b, "\n## %s\n\n| message | level | what happened, and what to do |\n|---|---|---|\n", c.name)
		levels := messages(t, c.dirs)
		for _, message := range slices.Sorted(maps.Keys(levels)) {
			cell := "| `" + message + "`"
			meaning := meanings[c.name+cell]
			if meaning == "" {
				t.Errorf("%s: %s: write what it means", c.name, message)
			}
			fmt.Fprintf(&b, "%s | %s | %s |\n", cell, strings.Join(slices.Sorted(maps.Keys(levels[message])), ", "), meaning)
		}
	}
	b.WriteByte('\n')
	if *rewrite {
		if err := os.WriteFile(page, []byte(before+opens+b.String()+closes+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(list, b.String()); diff != "" {
		t.Errorf("the list is another one (-docs +code); -rewrite writes it:\n%s", diff)
	}
}

// messages returns the levels of every message that a directory's files log.
func messages(t *testing.T, dirs []string) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	for _, dir := range dirs {
		err := filepath.WalkDir(root+dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "bridgetest") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			named := constants(file)
			ast.Inspect(file, func(n ast.Node) bool {
				if level, message := logged(n, named); message != "" {
					if all[message] == nil {
						all[message] = map[string]bool{}
					}
					all[message][level] = true
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(all) == 0 {
		t.Fatalf("%v log nothing: the list would be empty", dirs)
	}
	return all
}

// constants returns the values of a file's constants, quoted.
func constants(file *ast.File) map[string]string {
	all := map[string]string{}
	for _, decl := range file.Decls {
		d, is := decl.(*ast.GenDecl)
		if !is || d.Tok != token.CONST {
			continue
		}
		for _, spec := range d.Specs {
			if v, is := spec.(*ast.ValueSpec); is && len(v.Values) == 1 {
				if text, is := v.Values[0].(*ast.BasicLit); is {
					all[v.Names[0].Name] = text.Value
				}
			}
		}
	}
	return all
}

// logged returns the level and the message of a call that logs one, which is a literal
// or one of the named constants.
func logged(n ast.Node, named map[string]string) (level, message string) {
	call, is := n.(*ast.CallExpr)
	if !is || len(call.Args) == 0 {
		return "", ""
	}
	to, is := call.Fun.(*ast.SelectorExpr)
	if !is || !slices.Contains([]string{"Info", "Warn", "Error"}, to.Sel.Name) {
		return "", ""
	}
	var quoted string
	switch text := call.Args[0].(type) {
	case *ast.BasicLit:
		quoted = text.Value
	case *ast.Ident:
		quoted = named[text.Name]
	}
	message, err := strconv.Unquote(quoted)
	if err != nil || strings.Trim(message, "0123456789") == "" { // a status
		return "", ""
	}
	return strings.ToLower(to.Sel.Name), message
}
