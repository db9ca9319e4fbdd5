package spacefiles

import (
	"slices"
	"strings"

	"github.com/refold/refold/space"
)

// Lookup says what a machine has. A nil function finds nothing.
type Lookup struct {
	Secret func(name string) bool // a secret with a value
	Env    func(name string) bool // an environment variable with a value
	Bin    func(name string) bool // a program on the PATH
	OS     string                 // the operating system, as Go names it
}

// Lacks returns the needs that are not met, sorted and without duplicates. A need
// that ends with ? is optional and never among them; a malformed one always is.
func Lacks(needs []string, look Lookup) []string {
	var lacks []string
	for _, need := range needs {
		if !strings.HasSuffix(need, "?") && !look.meets(need) {
			lacks = append(lacks, need)
		}
	}
	slices.Sort(lacks)
	return slices.Compact(lacks)
}

// meets reports whether a need is met. One of several alternatives is enough.
func (l Lookup) meets(need string) bool {
	kind, what, _ := strings.Cut(need, ":")
	var there func(string) bool
	switch kind {
	case "secret":
		there = l.Secret
	case "env":
		there = l.Env
	case "bin":
		there = l.Bin
	case "os":
		there = func(name string) bool { return osName(name) == l.OS }
	}
	return space.IsNeed(need) && there != nil && slices.ContainsFunc(strings.Split(what, "|"), there)
}

// osName returns Go's name for an operating system: some skills use the names
// of Node and Python.
func osName(name string) string {
	switch name = strings.ToLower(name); name {
	case "macos":
		return "darwin"
	case "win32":
		return "windows"
	}
	return name
}
