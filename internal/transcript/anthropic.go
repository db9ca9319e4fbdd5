package transcript

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"

	"github.com/refold/refold/client"
)

// Anthropic prints a messages array of Anthropic's API: a message a line, the roles in
// turns.
type Anthropic struct {
	Out    io.Writer
	n      int
	turnIs string  // the latest turn's name
	said   []block // of the user, not printed yet
	turn   []block // the latest turn, not printed yet
	given  []block // the results of its calls
}

// block is a block of a message.
type block struct {
	Type      string          `json:"type"` // text, tool_use or tool_result
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}

// Entry prints the messages of the next entry, as far as they are complete.
func (a *Anthropic) Entry(e *Entry) {
	switch e.Kind {
	case client.EntryInput, client.EntrySteer, client.EntryRepair:
		a.flush()
		a.said = append(a.said, block{Type: "text", Text: cmp.Or(e.Text, noText)})
	case client.EntryText, client.EntryCall:
		if a.turnIs != e.Turn {
			a.flush()
			a.turnIs = e.Turn
		}
		if e.Kind == client.EntryCall {
			a.turn = append(a.turn, block{Type: "tool_use", ID: e.Call, Name: e.Tool, Input: objectOf(e.Arguments)})
			a.given = append(a.given, block{Type: "tool_result", ToolUseID: e.Call, Content: noResult})
		} else if e.Text != "" {
			a.turn = append(a.turn, block{Type: "text", Text: e.Text})
		}
	case client.EntryResult:
		for i := range a.given {
			if a.given[i].ToolUseID == e.Call {
				a.given[i].Content, a.given[i].IsError = ResultText(e), e.Code != ""
			}
		}
	}
}

// noText stands for an empty text, which the API refuses.
const noText = "(no text)"

// objectOf returns arguments as the object that the API requires.
func objectOf(arguments string) json.RawMessage {
	var object map[string]json.RawMessage
	arguments = cmp.Or(arguments, "{}")
	if json.Unmarshal([]byte(arguments), &object) != nil || object == nil {
		text, _ := json.Marshal(map[string]string{"arguments": arguments}) // it has only strings
		return text
	}
	return json.RawMessage(arguments)
}

// flush prints what the user said and the turn that followed, and keeps its results for
// the next message.
func (a *Anthropic) flush() {
	if len(a.turn) == 0 {
		return
	}
	a.print("user", a.said)
	a.print("assistant", a.turn)
	a.said, a.turn, a.given, a.turnIs = a.given, nil, nil, ""
}

// End prints what is left of the array.
func (a *Anthropic) End() {
	a.flush()
	a.print("user", a.said)
	if a.n == 0 {
		fmt.Fprint(a.Out, "[")
	}
	fmt.Fprint(a.Out, "\n]\n")
}

func (a *Anthropic) print(role string, content []block) {
	if len(content) == 0 {
		return
	}
	text, _ := json.Marshal(struct {
		Role    string  `json:"role"`
		Content []block `json:"content"`
	}{role, content}) // it has only strings, and arguments that were parsed
	before := ","
	if a.n++; a.n == 1 {
		before = "["
	}
	fmt.Fprintf(a.Out, "%s\n%s", before, text)
}
