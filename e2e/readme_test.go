//go:build unix

package e2e_test

import (
	"os"
	"strings"
	"testing"
)

// TestReadmeRecording: the demo prints what README.md shows, and its program
// compiles and runs in a module of its own. The program is that of
// examples/front-door.
func TestReadmeRecording(t *testing.T) {
	t.Parallel()
	play(t, "../README.md", "go run ./cmd/refold", program("refold"))
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../examples/front-door/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "```go main.go\n"+string(example)+"```\n") {
		t.Error("the program of README.md is not examples/front-door/main.go")
	}
}
