package prompt

import (
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
)

// TestEditedArguments: the model's own call stays as it made it, and the
// result says what a person let run instead.
func TestEditedArguments(t *testing.T) {
	t.Parallel()
	asked := &entry{typ: session.TypeToolCallsObserved, batch: "r1t1", calls: []session.ObservedCall{{ToolName: "shell", Arguments: `{"command":"rm -rf /"}`}}}
	settled := &entry{typ: session.TypeToolCallSettled, results: []result{{call: "r1t1c0", text: "done", status: session.CallSucceeded}}}
	edit := &entry{typ: session.TypeApprovalDecided, edited: `{"command":"ls"}`}
	for _, c := range []struct {
		name string
		item session.Item
		edit *entry
		want string // in the text; empty: it can't be read
	}{
		{"as the model made it", session.Item{Role: session.RoleTool, Seq: 5}, nil, "done"},
		{"edited", session.Item{Role: session.RoleTool, Seq: 5, Edit: 4}, edit, "A person changed the arguments of this call to {\"command\":\"ls\"}\ndone"},
		{"edited, and never run", session.Item{Role: session.RoleTool, Seq: 5, Edit: 4, Code: "cancelled"}, edit, "A person changed the arguments of this call to {\"command\":\"ls\"}\nerror: cancelled"},
		{"an edit that is none", session.Item{Role: session.RoleTool, Seq: 5, Edit: 4}, settled, ""},
	} {
		m, err := editedMessage(c.item, settled, asked, c.edit)
		if (err != nil) != (c.want == "") || m.Text != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.name, m.Text, err, c.want)
		}
		if strings.Contains(asked.calls[0].Arguments, "ls") {
			t.Errorf("%s: the model's own call was changed", c.name)
		}
	}
}

// TestInputs: what a user says may come as a run, a steer or an edit.
func TestInputs(t *testing.T) {
	t.Parallel()
	for _, typ := range []string{session.TypeRunRequested, session.TypeSteerRequested, session.TypeRunEdited} {
		m, err := userMessage(session.Item{Role: session.RoleUser, Seq: 3}, &entry{typ: typ, text: "more"})
		if err != nil || m.Text != "more" {
			t.Errorf("%s: got %q, %v", typ, m.Text, err)
		}
	}
	if _, err := userMessage(session.Item{Role: session.RoleUser, Seq: 3}, &entry{typ: session.TypeApprovalDecided}); err == nil {
		t.Error("an approval is no input")
	}
}
