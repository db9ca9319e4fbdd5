//go:build peers

package clients_test

// The program of examples/python, as its README starts it.

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The program of examples/python prints what its README says, also if it ended before it
// got an answer.
func TestPeersExamplePython(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	example := filepath.Join("examples", "python")
	if err := os.CopyFS(filepath.Join(root, example), os.DirFS(filepath.Join("..", example))); err != nil { // the import writes a file beside servers.yaml
		t.Fatal(err)
	}
	python, err := filepath.Abs("python")
	if err != nil {
		t.Fatal(err)
	}
	e := &inFolder{t: t, root: root, env: append(os.Environ(), "PYTHONPATH="+python, "PYTHONDONTWRITEBYTECODE=1")}
	for name, from := range map[string]string{"refold": "refold-full", "bridge": "bridge"} { // go run builds both refolds
		e.run("", "go", "-C", filepath.Dir(filepath.Dir(python)), "build", "-o", filepath.Join(root, name), "./cmd/"+from)
	}
	dev := e.start("refold", "dev", "--dir", "dev", "--port", "0", "--serve", "127.0.0.1:0", "--model", "scripted:examples/python/model.yaml")
	var url string
	for url == "" {
		if !dev.Scan() {
			t.Fatal("refold dev ended")
		}
		if found := served.FindStringSubmatch(dev.Text()); found != nil {
			url = found[1]
		}
	}
	go func() {
		for dev.Scan() { // so that it can go on writing
		}
	}()
	e.env = append(e.env, "NATS_CONTEXT="+filepath.Join(root, "dev", "roles", "users", "refold", "admin", "context.json"), "REFOLD_URL="+url)
	servers := filepath.Join(example, "servers.yaml")
	e.run(e.run("", "refold", "tools", "import", "mcp", servers), "refold", "install", "-")
	e.start("bridge", "--tools", "mcp:"+servers)
	chat := []string{filepath.Join(example, "chat.py"), "w1", "Warn Bergen if it rains."}
	if out, err := e.command(t.Context(), "python3", chat...).Output(); err == nil || !strings.HasSuffix(string(out), "[y/n] ") {
		t.Errorf("without a person: got %q, %v; want that it asks, and ends", out, err)
	}
	got := e.run("y\n", "python3", chat...)
	page, err := os.ReadFile(filepath.Join(root, example, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	wants := fenced(string(page), "text")
	if len(wants) != 1 || got != strings.Replace(wants[0], "[y/n] y\n", "[y/n] ", 1) { // who types y sees it
		t.Errorf("got\n%s\nwant\n%q", got, wants)
	}
}

// docs/tools.md shows the tools of examples/python.
func TestPeersToolsPageShowsTheExample(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("../examples/python/weather.py")
	if err != nil {
		t.Fatal(err)
	}
	if shown := fenced(string(page), "python"); len(shown) != 1 || shown[0] != string(code) {
		t.Errorf("docs/tools.md shows\n%s\nand examples/python/weather.py is\n%s", shown, code)
	}
}

// inFolder runs programs in a folder, which may have them.
type inFolder struct {
	t    *testing.T
	root string
	env  []string
}

func (e *inFolder) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	if own := filepath.Join(e.root, name); exists(own) {
		name = own
	}
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env = e.root, e.env
	return c
}

func exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// run runs a program until it ends, and returns what it printed.
func (e *inFolder) run(stdin, name string, args ...string) string {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), patience)
	defer cancel()
	c := e.command(ctx, name, args...)
	var out, errs bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(stdin), &out, &errs
	if err := c.Run(); err != nil {
		e.t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out.String(), errs.String())
	}
	return out.String()
}

// start starts a program, which is killed with the test, and returns the lines that it
// prints.
func (e *inFolder) start(name string, args ...string) *bufio.Scanner {
	e.t.Helper()
	c := e.command(context.Background(), name, args...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return bufio.NewScanner(out)
}
