package prompt

import (
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
)

// The model's own call stays unchanged.
func TestResultBeginsWithEditedArguments(t *testing.T) {
	t.Parallel()
	asked := &entry{kind: kindTurn, batch: "r1t1", calls: []session.ObservedCall{{ToolName: "shell", Arguments: `{"command":"rm -rf /"}`}}}
	settled := &entry{kind: kindResults, results: []result{{call: "r1t1c0", text: "done", status: session.CallSucceeded}}}
	edit := &entry{kind: kindEdit, edited: `{"command":"ls"}`}
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
		m, err := editedMessage(c.item, settled, asked, c.edit, false)
		if (err != nil) != (c.want == "") || m.Text != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.name, m.Text, err, c.want)
		}
		if strings.Contains(asked.calls[0].Arguments, "ls") {
			t.Errorf("%s: the model's own call was changed", c.name)
		}
	}
}

func TestRunSteerAndEditAreInputs(t *testing.T) {
	t.Parallel()
	l := newLog()
	input := session.Content{Text: "more"}
	for typ, body := range map[string]any{
		session.TypeRunRequested: session.RunRequested{Input: input}, session.TypeSteerRequested: session.SteerRequested{Input: input}, session.TypeRunEdited: session.RunEdited{Input: input},
	} {
		g := generation("r1t1", session.Item{Role: session.RoleUser, Seq: l.say(t, session.DoorIn, "s1", typ, body)})
		request, fault, err := New(l).Request(t.Context(), &g)
		if err != nil || fault != nil || request.Messages[0].Text != "more" {
			t.Errorf("%s: got %+v, %v, %v", typ, request, fault, err)
		}
	}
	g := generation("r1t1", session.Item{Role: session.RoleUser, Seq: l.say(t, session.DoorIn, "s1", session.TypeApprovalDecided, session.ApprovalDecided{})})
	if _, fault, _ := New(l).Request(t.Context(), &g); fault == nil {
		t.Error("an approval is no input")
	}
}
