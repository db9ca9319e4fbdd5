//go:build peers

package clients_test

// Tests that need Python and npm: see make check-web.

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/scenarios.golden as the Python client prints it; then read the diff")

const golden = "testdata/scenarios.golden"

// language is a language that has a client.
type language struct {
	name      string
	folder    string
	program   []string // runs a file
	scenarios string
	fence     string // of its code in Markdown
	script    string // a name for the code of README.md
}

var languages = []language{
	{"Python", "python", []string{"python3"}, "scenarios.py", "python", "readme.py"},
	{"TypeScript", "typescript", []string{"node"}, "scenarios.js", "ts", "readme.mjs"},
}

// run runs a program in the language's folder until it ends, and returns what it printed.
func (l language) run(t *testing.T, w *world, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	program := exec.CommandContext(ctx, args[0], args[1:]...)
	program.Dir = l.folder
	program.Env = append(os.Environ(), "PYTHONPATH=.", "PYTHONDONTWRITEBYTECODE=1")
	if w != nil {
		program.Env = append(program.Env, "REFOLD_URL="+w.url, "REFOLD_TOKEN=acme-token", "REFOLD_CUT_URL="+w.cut, "REFOLD_OTHER_TOKEN=other-token")
	}
	var out, errs strings.Builder
	program.Stdout, program.Stderr = &out, &errs
	if err := program.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, out.String(), errs.String())
	}
	return out.String()
}

// FD-11: the clients print the same of the same scenarios.
func TestPeersClientsPlayTheSameScenarios(t *testing.T) {
	t.Parallel()
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			w := serve(t)
			got := l.run(t, w, append(l.program, l.scenarios)...)
			if *rewrite && l.name == "Python" {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant %s:\n%s", got, golden, want)
			}
			if cuts := w.cuts.Load(); cuts < 4 {
				t.Errorf("%d streams were cut, want 4 or more", cuts)
			}
		})
	}
}

// The example of each README runs, and prints what the README says.
func TestPeersReadmes(t *testing.T) {
	t.Parallel()
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			page, err := os.ReadFile(filepath.Join(l.folder, "README.md"))
			if err != nil {
				t.Fatal(err)
			}
			code, want := fenced(t, string(page), l.fence), fenced(t, string(page), "text")
			script := filepath.Join(l.folder, l.script)
			if err := os.WriteFile(script, []byte(code), 0o600); err != nil { // in the folder: it imports the package by its name
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Remove(script) })
			if got := l.run(t, serve(t), append(l.program, l.script)...); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// fenced returns the first code of a page with a language.
func fenced(t *testing.T, page, language string) string {
	t.Helper()
	found := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("the page has no code in %s", language)
	}
	return found[1]
}

// The clients' own tests, which need no server: among them that the generated types are
// those of web/openapi.json.
func TestPeersClientsOwnTests(t *testing.T) {
	t.Parallel()
	t.Run("Python", func(t *testing.T) {
		t.Parallel()
		languages[0].run(t, nil, "python3", "-m", "unittest", "discover", "-s", "tests", "-t", ".")
	})
	t.Run("TypeScript", func(t *testing.T) {
		t.Parallel()
		languages[1].run(t, nil, "node", "--test", "test/")
	})
}
