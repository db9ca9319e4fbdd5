package session_test

// What a model bridge is told about the choice of a tool.

import (
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// Lists and choices name a tool by tool_id or tool_name, a provider knows it by its
// offered name, and a provider refuses a choice of a tool that it was not offered.
func TestToolChoice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ choice, host, want string }{
		{"", "ready", ""},
		{"auto", "ready", "auto"},
		{"none", "none", "none"},
		{"required", "none", "required"},
		{"shell", "ready", "shell"},
		{"host.exec", "ready", "shell"},
		{"host.exec", "none", ""},
		{"shell", "closed", ""},
		{"open_session", "none", "open_session"},
		{"edit_file", "ready", ""}, // the profile leaves it out
	} {
		w := newTold(t)
		w.must(w.tell(session.DoorCtl, session.TypeHostSessionUpdated, map[string]any{"status": c.host}))
		w.run(map[string]any{"tool_choice": c.choice})
		var g session.Generation
		if err := codec.Unmarshal(w.open("r1t1").Payload, &g); err != nil {
			t.Fatal(err)
		}
		if g.ToolChoice != c.want {
			t.Errorf("tool_choice %q with host session %s: got %q, want %q", c.choice, c.host, g.ToolChoice, c.want)
		}
	}
}
