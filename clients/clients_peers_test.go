//go:build peers

package clients_test

// Tests that need Python and npm: see make check-web.

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/scenarios.golden; then read the diff")

const golden = "testdata/scenarios.golden"

// client is a client, as one of its programs uses it.
type client struct {
	name      string
	folder    string
	program   string // runs a file
	scenarios string
}

var clients = []client{
	{"Python", "python", "python3", "scenarios.py"},
	{"Python with asyncio", "python", "python3", "ascenarios.py"},
	{"TypeScript", "typescript", "node", "scenarios.js"},
}

// run runs a program in the client's folder until it ends, and returns what it printed.
func (c client) run(t *testing.T, w *world, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	program := exec.CommandContext(ctx, args[0], args[1:]...)
	program.Dir = c.folder
	program.Env = append(os.Environ(), "PYTHONPATH=.", "PYTHONDONTWRITEBYTECODE=1")
	if w != nil {
		program.Env = append(program.Env, "REFOLD_URL="+w.url, "REFOLD_TOKEN="+w.token, "REFOLD_CUT_URL="+w.cut, "REFOLD_OTHER_TOKEN="+w.other)
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
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t)
			got := c.run(t, w, c.program, c.scenarios)
			if *rewrite {
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

// FD-06: each operation of web/openapi.json has a method with the types that are generated
// from it, and the server answers it with success.
func TestPeersTypeScriptCallsEachOperation(t *testing.T) {
	t.Parallel()
	if left := clients[2].run(t, serve(t), "node", "operations.js"); left != "" {
		t.Errorf("no method called with success:\n%s", left)
	}
}

// The examples of each README run, and print what it says.
func TestPeersExamples(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		client  client
		fence   string // of the code
		example string // a name for it, in the folder: it imports the package by its name
		count   int
	}{
		{clients[0], "python", "example%d.py", 2},
		{clients[2], "js", "example%d.mjs", 1},
	} {
		t.Run(of.client.name, func(t *testing.T) {
			t.Parallel()
			page, err := os.ReadFile(filepath.Join(of.client.folder, "README.md"))
			if err != nil {
				t.Fatal(err)
			}
			codes, wants := fenced(string(page), of.fence), fenced(string(page), "text")
			if len(codes) != of.count || len(wants) != of.count {
				t.Fatalf("got %d examples and %d outputs, want %d", len(codes), len(wants), of.count)
			}
			for i := range codes {
				name := fmt.Sprintf(of.example, i+1)
				script := filepath.Join(of.client.folder, name)
				if err := os.WriteFile(script, []byte(codes[i]), 0o600); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = os.Remove(script) })
				if got := of.client.run(t, serve(t), of.client.program, name); got != wants[i] {
					t.Errorf("%s: got\n%s\nwant\n%s", name, got, wants[i])
				}
			}
		})
	}
}

// fenced returns the codes of a page in a language.
func fenced(page, language string) (codes []string) {
	for _, found := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(page, -1) {
		codes = append(codes, found[1])
	}
	return codes
}

// The clients' own tests, which need no server: among them that the generated types are
// those of web/openapi.json.
func TestPeersClientsOwnTests(t *testing.T) {
	t.Parallel()
	t.Run("Python", func(t *testing.T) {
		t.Parallel()
		clients[0].run(t, nil, "python3", "-m", "unittest", "discover", "-s", "tests", "-t", ".")
	})
	t.Run("TypeScript", func(t *testing.T) {
		t.Parallel()
		clients[2].run(t, nil, "npm", "test")
	})
}
