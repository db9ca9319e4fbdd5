package recorded

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// wireConversation is a line of the file. Unknown fields are ignored.
type wireConversation struct {
	ID       *string       `json:"id"`
	Messages []wireMessage `json:"messages"`
}

// wireMessage is a message of the OpenAI chat form.
type wireMessage struct {
	Role       string      `json:"role"`
	Content    wireContent `json:"content"`
	ToolCalls  []wireCall  `json:"tool_calls"`
	ToolCallID string      `json:"tool_call_id"`
}

type wireCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function *struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// wireContent is a text, null, or a list of parts that are texts.
type wireContent string

// UnmarshalJSON reads any of the three forms.
func (c *wireContent) UnmarshalJSON(data []byte) error {
	if data[0] != '[' {
		var text *string
		if err := json.Unmarshal(data, &text); err != nil {
			return errors.New("content is a text, null, or a list of text parts")
		}
		if text != nil {
			*c = wireContent(*text)
		}
		return nil
	}
	var parts []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return fmt.Errorf("content: %w", err)
	}
	var all strings.Builder
	for i, p := range parts {
		if p.Type != "text" || p.Text == nil {
			return fmt.Errorf("content[%d] is of type %q: only text can be run again", i, p.Type)
		}
		all.WriteString(*p.Text)
	}
	*c = wireContent(all.String())
	return nil
}

func parseConversation(line []byte) (*Conversation, error) {
	var wire wireConversation
	if err := json.Unmarshal(line, &wire); err != nil {
		return nil, fmt.Errorf("not a conversation: %w", err)
	}
	if wire.ID == nil || *wire.ID == "" {
		return nil, errors.New("the conversation has no id")
	}
	b := builder{c: &Conversation{ID: *wire.ID}}
	for i := range wire.Messages {
		if err := b.add(&wire.Messages[i], i); err != nil {
			return nil, fmt.Errorf("conversation %q: messages[%d]: %w", b.c.ID, i, err)
		}
	}
	if err := b.end(); err != nil {
		return nil, fmt.Errorf("conversation %q: %w", b.c.ID, err)
	}
	return b.c, nil
}

// builder splits messages into runs and turns.
type builder struct {
	c       *Conversation
	results int // of the last turn's calls, read so far
}

// last returns the current run's latest turn, or nil.
func (b *builder) last() *Turn {
	if len(b.c.Runs) == 0 {
		return nil
	}
	turns := b.c.Runs[len(b.c.Runs)-1].Turns
	if len(turns) == 0 {
		return nil
	}
	return &turns[len(turns)-1]
}

// missingResult returns an error if a result must come next.
func (b *builder) missingResult() error {
	if t := b.last(); t != nil && b.results < len(t.Calls) {
		return fmt.Errorf("the result of call %d, %s, should stand here", b.results, t.Calls[b.results].Name)
	}
	return nil
}

func (b *builder) add(m *wireMessage, at int) error {
	if m.Role == "tool" {
		return b.result(m)
	}
	if err := b.missingResult(); err != nil {
		return err
	}
	switch m.Role {
	case "system", "developer":
		if at > 0 {
			return fmt.Errorf("a %s message may only be the first one", m.Role)
		}
		b.c.System = string(m.Content)
		return nil
	case "user":
		if m.Content == "" {
			return errors.New("the user's message is empty, and a run needs an input")
		}
		b.c.Runs = append(b.c.Runs, Run{User: string(m.Content)})
		return nil
	case "assistant":
		return b.turn(m)
	}
	return fmt.Errorf("role %q: roles are system, user, assistant, tool", m.Role)
}

// turn adds a message of the model.
func (b *builder) turn(m *wireMessage) error {
	if len(b.c.Runs) == 0 {
		return errors.New("the model speaks before the user")
	}
	if t := b.last(); t != nil && len(t.Calls) == 0 {
		return errors.New("the model speaks after it ended its run: a user message or nothing should stand here")
	}
	turn := Turn{Text: string(m.Content)}
	for i, call := range m.ToolCalls {
		if call.Function == nil || call.Function.Name == "" {
			return fmt.Errorf("tool_calls[%d] names no function", i)
		}
		if len(call.ID) > providerIDBytesMax {
			return fmt.Errorf("tool_calls[%d].id has %d bytes, the most is %d", i, len(call.ID), providerIDBytesMax)
		}
		turn.Calls = append(turn.Calls, Call{ProviderID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
	}
	run := &b.c.Runs[len(b.c.Runs)-1]
	run.Turns = append(run.Turns, turn)
	b.results = 0
	return nil
}

// result adds the next result of the last turn's calls. Ids may repeat, so a result
// belongs to the call in the same position; its id only reveals a wrong order.
func (b *builder) result(m *wireMessage) error {
	t := b.last()
	if t == nil || b.results == len(t.Calls) {
		return errors.New("a result of no call")
	}
	call := &t.Calls[b.results]
	if m.ToolCallID != call.ProviderID {
		return fmt.Errorf("the result of %q stands where that of call %d, %q, should: results have the order of the calls",
			m.ToolCallID, b.results, call.ProviderID)
	}
	call.Result = string(m.Content)
	b.results++
	return nil
}

// end checks that the messages may end here.
func (b *builder) end() error {
	if len(b.c.Runs) == 0 {
		return errors.New("there is no user message, so nothing to run")
	}
	if err := b.missingResult(); err != nil {
		return fmt.Errorf("the messages end: %w", err)
	}
	return nil
}
