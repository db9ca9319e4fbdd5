package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The program is a user's: it builds in a module of its own, with Refold as a
// dependency, and runs.
func TestFrontDoorIsAModuleOfItsOwn(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ours, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	version := "" // the line that names Go's version
	for line := range strings.Lines(string(ours)) {
		if strings.HasPrefix(line, "go ") {
			version = line
		}
	}
	files := map[string]string{"go.mod": "module example.com/weather\n\n" + version +
		"\nrequire github.com/refold/refold v0.0.0\n\nreplace github.com/refold/refold => " + root + "\n"}
	for to, from := range map[string]string{"main.go": "main.go", "go.sum": filepath.Join(root, "go.sum")} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		files[to] = string(text)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	weather := filepath.Join(dir, "weather")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-mod=mod", "-o", weather, ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for range 2 {
		out, err := exec.CommandContext(t.Context(), weather, "-dir", filepath.Join(dir, "data")).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "It rains in Bergen.\nrun 1, 2 turns") {
			t.Errorf("got %q (%v)", out, err)
		}
	}
}
