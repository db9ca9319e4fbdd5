package session

import "testing"

// A hook is shown the end of a long transcript, from an input or an answer on: a
// result without its call means nothing.
func TestHookIsShownTheLatestItems(t *testing.T) {
	t.Parallel()
	var s State
	for range 200 {
		s.Items = append(s.Items, Item{Role: RoleAssistant, Seq: 1}, Item{Role: RoleTool, Seq: 2}, Item{Role: RoleTool, Seq: 2, Call: 1})
	}
	got := s.latestItems()
	if len(got) != StepItemsMax-2 || got[0].Role != RoleAssistant {
		t.Errorf("%d items from a %s on, want %d from an assistant's on", len(got), got[0].Role, StepItemsMax-2)
	}
	s.Items = s.Items[1:4]
	if got := s.latestItems(); len(got) != 3 {
		t.Errorf("%d of a short transcript of 3 items", len(got))
	}
}
