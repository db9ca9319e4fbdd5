package llm

import "testing"

// TestToolName: a model may make up any name; the API refuses a history with a
// name that a tool can't have.
func TestToolName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"read_file": "read_file", "A-1": "A-1", "": inventedName, "no such": inventedName, "host.exec": inventedName, "läs": inventedName,
		string(make([]byte, 65)): inventedName,
	} {
		if got := ToolName(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
