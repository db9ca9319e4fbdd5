package chaos

import (
	"slices"
	"strings"
	"testing"
)

// adopted is the end of a run that adopted a workspace.
func adopted() *End {
	e := whole()
	e.Spaces = []string{"WorkspaceStaged {}", "WorkspaceApplied {}", "WorkspaceStaged {}", "applied rooms a", "composed b"}
	e.Prompts = []string{"r1t2 c", "r1t3 c"}
	return e
}

func TestCheckComparesSpaces(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*End)
		want  string // empty: nothing is wrong
	}{
		"the same":            {func(*End) {}, ""},
		"told twice":          {func(e *End) { e.Spaces = slices.Insert(e.Spaces, 0, e.Spaces[0]) }, "the spaces are"},
		"another is applied":  {func(e *End) { e.Spaces[3] = "applied rooms x" }, "the spaces are"},
		"another prompt":      {func(e *End) { e.Prompts[0] = "r1t2 x" }, "turns were shown"},
		"no prompt":           {func(e *End) { e.Prompts = e.Prompts[1:] }, "turns were shown"},
		"one turn is missing": {func(e *End) { e.Prompts = e.Prompts[:1] }, "turns were shown"},
		"an outcome is unknown, and a turn is left out": {func(e *End) {
			*e = *lost()
			e.Spaces, e.Prompts = adopted().Spaces, adopted().Prompts[:1]
		}, ""},
		"an outcome is unknown, and another is applied": {func(e *End) {
			*e = *lost()
			e.Prompts = nil
		}, "the spaces are"},
	} {
		got := adopted()
		c.spoil(got)
		faults := strings.Join(Check(true, adopted(), got), "; ")
		if c.want == "" && faults != "" || !strings.Contains(faults, c.want) {
			t.Errorf("%s: got %q, want %q", name, faults, c.want)
		}
	}
	conversation := workspaceConversation()
	if faults := conversation.faults(whole()); len(faults) == 0 {
		t.Error("an end without spaces is well")
	}
	if faults := conversation.faults(adopted()); len(faults) != 0 {
		t.Errorf("the end as it must be: %q", faults)
	}
}
