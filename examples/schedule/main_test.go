package main

// The example does what its README says. That a schedule fires is tested in e2e, where the
// times are those of the test.

import (
	"regexp"
	"strings"
	"testing"
)

func TestTheScheduleOutlivesItsProcess(t *testing.T) {
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
	does("set")
	if got := does("list"); !regexp.MustCompile(`^each-minute \(\* \* \* \* \* UTC\) fires next at \d\d:\d\d:\d\d\n$`).MatchString(got) {
		t.Errorf("got %q", got)
	}
	does("remove")
	if got := does("list"); got != "" {
		t.Errorf("after remove: got %q", got)
	}
	if err := run(t.Context(), dir, []string{"remove"}, &strings.Builder{}); err == nil {
		t.Error("a schedule was removed twice")
	}
}
