package transcript

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

// Parsed is a conversation in the form of another system.
type Parsed struct {
	Messages []client.ImportMessage
	System   int // texts for the system that were left out: a session's config has them
	Thoughts int // reasoning that was left out: only its provider could read it
}

// Parse reads messages as OpenAI's chat API or Anthropic's takes them: an array, or an
// object with the array as `messages`. Results are put into the order of their calls.
// Messages of an assistant that follow one another become one. An error names the message
// by its position, from 0.
func Parse(data []byte) (*Parsed, error) {
	var list []json.RawMessage
	var request struct {
		Messages []json.RawMessage `json:"messages"`
		System   json.RawMessage   `json:"system"`
	}
	err := json.Unmarshal(data, &list)
	if err != nil && json.Unmarshal(data, &request) == nil && request.Messages != nil {
		list, err = request.Messages, nil
	}
	if err != nil {
		return nil, fmt.Errorf("not a conversation: give an array of messages, or an object with messages, as JSON: %w", err)
	}
	p := &parser{ids: map[string]int{}}
	if request.System != nil {
		p.out.System++
	}
	for i, raw := range list {
		if err := p.message(raw); err != nil {
			return nil, fmt.Errorf("messages[%d]: %w", i, err)
		}
	}
	if err := p.answered(); err != nil {
		return nil, err
	}
	if len(p.out.Messages) == 0 {
		return nil, errors.New("the conversation is empty")
	}
	return &p.out, nil
}

// parser reads messages one after another.
type parser struct {
	out     Parsed
	ids     map[string]int          // of the latest calls, with their positions
	results []*client.ImportMessage // of the latest calls; nil: none yet
}

// formMessage is a message in either form.
type formMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"` // a text, or a list of parts
	ToolCalls  []chatCall      `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
	Refusal    string          `json:"refusal"`
}

// formPart is a part of a content in either form.
type formPart struct {
	block
	Content  json.RawMessage `json:"content"` // of a tool_result: a text, or parts
	ImageURL struct {
		URL string `json:"url"`
	} `json:"image_url"`
	Source struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	} `json:"source"`
	Title string `json:"title"`
}

func (p *parser) message(raw json.RawMessage) error {
	var m formMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	parts, err := partsOf(m.Content)
	if err != nil {
		return err
	}
	switch m.Role {
	case "system", "developer":
		p.out.System++
		return nil
	case "user":
		return p.user(parts)
	case "assistant":
		return p.assistant(&m, parts)
	case "tool":
		return p.result(m.ToolCallID, parts, false)
	case "":
		return errors.New("it has no role")
	}
	return fmt.Errorf("the role %q is none of system, developer, user, assistant and tool", m.Role)
}

// partsOf returns a content as parts.
func partsOf(raw json.RawMessage) (parts []formPart, err error) {
	var text string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, nil
	case json.Unmarshal(raw, &text) == nil:
		return []formPart{{block: block{Type: "text", Text: text}}}, nil
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, fmt.Errorf("content: give a text or a list of parts: %w", err)
	}
	return parts, nil
}

// show adds a part that is a text or a file to a message.
func show(m *client.ImportMessage, part *formPart) error {
	data := part.Source.Data
	switch part.Type {
	case "text", "input_text", "output_text", "refusal":
		if m.Text != "" && part.Text != "" {
			m.Text += "\n"
		}
		m.Text += part.Text
		return nil
	case "image_url":
		_, encoded, ok := strings.Cut(part.ImageURL.URL, ";base64,")
		if !ok || !strings.HasPrefix(part.ImageURL.URL, "data:") {
			return errors.New("an image_url is no data URL: download the image, and give it as data:image/png;base64,…")
		}
		data = encoded
	case "image", "document":
		if part.Source.Type != "base64" {
			return fmt.Errorf("the source of a part of type %s has the type %q: give it as base64", part.Type, part.Source.Type)
		}
	default:
		return fmt.Errorf("a part has the type %q, which can't be imported: remove it", part.Type)
	}
	bytes, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return fmt.Errorf("the data of a part of type %s: %w", part.Type, err)
	}
	m.Files = append(m.Files, client.File{Name: cmp.Or(part.Title, fmt.Sprintf("file-%d", len(m.Files)+1)), Data: bytes})
	return nil
}

// user adds what a user's message has: results first, as Anthropic has them.
func (p *parser) user(parts []formPart) error {
	m := client.ImportMessage{Role: session.RoleUser}
	for i := range parts {
		part := &parts[i]
		if part.Type != "tool_result" {
			if err := show(&m, part); err != nil {
				return err
			}
			continue
		}
		given, err := partsOf(part.Content)
		if err == nil {
			err = p.result(part.ToolUseID, given, part.IsError)
		}
		if err != nil {
			return err
		}
	}
	if m.Text == "" && len(m.Files) == 0 {
		return nil
	}
	if err := p.answered(); err != nil {
		return err
	}
	p.out.Messages = append(p.out.Messages, m)
	return nil
}

func (p *parser) assistant(m *formMessage, parts []formPart) error {
	if err := p.answered(); err != nil {
		return err
	}
	out := client.ImportMessage{Role: session.RoleAssistant, Text: m.Refusal}
	call := func(id, name, arguments string) error {
		var object map[string]json.RawMessage
		if name == "" || json.Unmarshal([]byte(arguments), &object) != nil {
			return fmt.Errorf("the call %q has no name, or arguments that are no JSON object", id)
		}
		if _, twice := p.ids[id]; twice {
			return fmt.Errorf("two calls have the id %q", id)
		}
		p.ids[id] = len(out.Calls)
		out.Calls = append(out.Calls, session.ImportedCall{Name: name, Arguments: arguments})
		return nil
	}
	var err error
	for i := range parts {
		switch part := &parts[i]; part.Type {
		case "thinking", "redacted_thinking":
			p.out.Thoughts++
		case "tool_use":
			err = errors.Join(err, call(part.ID, part.Name, cmp.Or(string(part.Input), "{}")))
		default:
			err = errors.Join(err, show(&out, part))
		}
	}
	for _, c := range m.ToolCalls {
		err = errors.Join(err, call(c.ID, c.Function.Name, cmp.Or(c.Function.Arguments, "{}")))
	}
	switch n := len(p.out.Messages); {
	case err != nil:
		return err
	case len(out.Files) > 0:
		return errors.New("an assistant's message has a file: remove it")
	case out.Text == "" && len(out.Calls) == 0:
		return nil
	case n == 0:
		return errors.New("the first message is an assistant's: a conversation begins with a user's message; put one before it, or remove it")
	case p.out.Messages[n-1].Role == session.RoleAssistant: // it has no calls: they would have results
		before := &p.out.Messages[n-1]
		before.Text, before.Calls = strings.Trim(before.Text+"\n\n"+out.Text, "\n"), out.Calls
	default:
		p.out.Messages = append(p.out.Messages, out)
	}
	p.results = make([]*client.ImportMessage, len(out.Calls))
	return nil
}

// result notes the result of a call.
func (p *parser) result(id string, parts []formPart, failed bool) error {
	at, known := p.ids[id]
	if !known {
		return fmt.Errorf("it has a result of the call %q, which the assistant's message before it does not make", id)
	}
	if p.results[at] != nil {
		return fmt.Errorf("the call %q has a second result", id)
	}
	m := &client.ImportMessage{Role: session.RoleTool, Failed: failed}
	for i := range parts {
		if err := show(m, &parts[i]); err != nil {
			return err
		}
	}
	p.results[at] = m
	return nil
}

// answered adds the results of the latest calls, all of which must be there.
func (p *parser) answered() error {
	for id, at := range p.ids {
		if p.results[at] == nil {
			return fmt.Errorf("the call %q has no result: add one, or remove the call", id)
		}
	}
	for _, m := range p.results {
		p.out.Messages = append(p.out.Messages, *m)
	}
	p.results = nil
	clear(p.ids)
	return nil
}
