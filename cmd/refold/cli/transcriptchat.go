package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// chat prints a messages array of OpenAI's chat API: a message a line.
type chat struct {
	out     io.Writer
	n       int
	turn    *chatMessage // collects the calls of a turn
	turnIs  string       // its name
	pending []string     // calls without a result so far
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

func (c *chat) begin() { fmt.Fprint(c.out, "[") }

func (c *chat) end() {
	c.settle()
	fmt.Fprint(c.out, "\n]\n")
}

func (c *chat) entry(e *item) {
	switch e.Kind {
	case kindInput, kindSteer, kindRepair:
		c.settle()
		c.print(&chatMessage{Role: "user", Content: e.Text})
	case kindText, kindCall:
		if c.turn == nil || c.turnIs != e.Turn {
			c.settle()
			c.turn, c.turnIs = &chatMessage{Role: "assistant"}, e.Turn
		}
		if e.Kind == kindText {
			c.turn.Content = e.Text
			return
		}
		call := chatCall{ID: e.Call, Type: "function"}
		call.Function.Name, call.Function.Arguments = e.Tool, e.Arguments
		if e.Arguments == "" {
			call.Function.Arguments = "{}"
		}
		c.turn.ToolCalls = append(c.turn.ToolCalls, call)
		c.pending = append(c.pending, e.Call)
	case kindResult:
		c.flush()
		c.pending = slices.DeleteFunc(c.pending, func(call string) bool { return call == e.Call })
		c.print(&chatMessage{Role: "tool", ToolCallID: e.Call, Content: resultText(e)})
	}
}

// resultText returns a result as a model is shown it.
func resultText(e *item) string {
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

// flush prints the collected turn.
func (c *chat) flush() {
	if c.turn != nil {
		c.print(c.turn)
		c.turn = nil
	}
}

// settle prints the collected turn, and replacements for missing results.
func (c *chat) settle() {
	c.flush()
	for _, call := range c.pending {
		c.print(&chatMessage{Role: "tool", ToolCallID: call, Content: noResult})
	}
	c.pending = nil
}

func (c *chat) print(m *chatMessage) {
	text, _ := json.Marshal(m) // it has only strings
	comma := ","
	if c.n++; c.n == 1 {
		comma = ""
	}
	fmt.Fprintf(c.out, "%s\n%s", comma, text)
}
