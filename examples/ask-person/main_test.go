package main

// The example does what its README says: a run waits while no process has the log.

import (
	"strings"
	"testing"
)

func TestTheAnswerComesToAnotherProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	does := func(args ...string) string {
		t.Helper()
		var out strings.Builder
		if err := run(t.Context(), dir, args, &out); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return out.String()
	}
	if got, want := does("ask"), `ask_person {"question":"Which colour?","options":["Blue","Green"]}`+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := does("answer", "Blue"), "The fence is painted: Blue\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := run(t.Context(), dir, []string{"answer", "Green"}, &strings.Builder{}); err == nil {
		t.Error("a question was answered twice")
	}
}
