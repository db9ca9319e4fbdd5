package transcript

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/refold/refold/client"
)

// OpenAI prints a messages array of OpenAI's chat API: a message a line.
type OpenAI struct {
	Out    io.Writer
	n      int
	turnIs string        // the latest turn's name
	turn   []chatMessage // that turn, which is not printed yet, and the results of its calls
}

// chatMessage is a message of the API.
type chatMessage struct {
	Role       string     `json:"role"`
	Content    string     `json:"content"`
	ToolCalls  []chatCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

// chatCall is a call of the API.
type chatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"` // function
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// noResult replaces a missing result: the API refuses calls without a result.
const noResult = "(no result)"

// End prints what is left of the array.
func (c *OpenAI) End() {
	c.flush()
	if c.n == 0 {
		fmt.Fprint(c.Out, "[")
	}
	fmt.Fprint(c.Out, "\n]\n")
}

// Entry prints the messages of the next entry, as far as they are complete.
func (c *OpenAI) Entry(e *Entry) {
	switch e.Kind {
	case client.EntryInput, client.EntrySteer, client.EntryRepair:
		c.flush()
		c.print(&chatMessage{Role: "user", Content: e.Text})
	case client.EntryText, client.EntryCall:
		if c.turnIs != e.Turn {
			c.flush()
			c.turnIs, c.turn = e.Turn, []chatMessage{{Role: "assistant"}}
		}
		if e.Kind == client.EntryText {
			c.turn[0].Content = e.Text
			return
		}
		call := chatCall{ID: e.Call, Type: "function"}
		call.Function.Name, call.Function.Arguments = e.Tool, cmp.Or(e.Arguments, "{}")
		c.turn[0].ToolCalls = append(c.turn[0].ToolCalls, call)
		c.turn = append(c.turn, chatMessage{Role: "tool", ToolCallID: e.Call, Content: noResult})
	case client.EntryResult:
		for i := range c.turn {
			if c.turn[i].ToolCallID == e.Call {
				c.turn[i].Content = ResultText(e)
			}
		}
	}
}

// flush prints the turn and its results.
func (c *OpenAI) flush() {
	for i := range c.turn {
		c.print(&c.turn[i])
	}
	c.turn, c.turnIs = nil, ""
}

// ResultText returns a result as a model is shown it.
func ResultText(e *Entry) string {
	text := e.Text
	if e.Code != "" {
		text = strings.TrimRight(fmt.Sprintf("error: %s\n%s", strings.Trim(e.Code+": "+e.Detail, ": "), e.Text), "\n")
	}
	if e.Arguments != "" {
		text = "A person changed the arguments of this call to " + e.Arguments + "\n" + text
	}
	if text == "" {
		return "(no output)"
	}
	return text
}

func (c *OpenAI) print(m *chatMessage) {
	text, _ := json.Marshal(m) // it has only strings
	before := ","
	if c.n++; c.n == 1 {
		before = "["
	}
	fmt.Fprintf(c.Out, "%s\n%s", before, text)
}
