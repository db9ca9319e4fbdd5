package main

// The example does what its README says: the model is shown the imported conversation.

import (
	"strings"
	"testing"
)

func TestTheModelIsShownTheConversation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var out strings.Builder
	if err := run(t.Context(), dir, []string{"conversation.json", "And how high?"}, &out); err != nil {
		t.Fatal(err)
	}
	const want = `I was shown:
user: How long is the fence?
assistant: measure {"what":"fence"}
tool: 12 m
assistant: The fence is 12 m long.
user: And how high?
`
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	if err := run(t.Context(), dir, []string{"conversation.json", "And how high?"}, &out); err == nil || !strings.Contains(err.Error(), "import into a new session") {
		t.Errorf("a second import: %v", err)
	}
}
