//go:build peers

package conformance

// Reads requests from their bytes, ours and recorded ones, with a reader that
// shares no code with the code under test.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// entry is a piece of a conversation, in a form that no API has.
type entry struct {
	Who   string // system, user, model, tool
	Kind  string // text, image, call, result; item: what only the provider can read
	ID    string // of a call
	Name  string
	Value string // words, arguments, an image, an item
	Mark  string // what only the provider can read of it
}

// told is what a request says.
type told struct {
	entries []entry
	tools   []entry // Value is the schema
	choice  string  // empty: auto
	format  *format
	rest    map[string]json.RawMessage // members that are none of these
	foreign int                        // pieces of tools that a server runs by itself; they are left out
}

// format is the form that an answer must have.
type format struct {
	name, schema string
	strict       bool
}

// canon is JSON with its members sorted.
func canon(data []byte) string {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return "no JSON: " + string(data)
	}
	return encode(v)
}

func encode(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // what was JSON
	}
	return strings.TrimSpace(b.String())
}

// argued is arguments in a form in which they can be compared. Recorded
// requests of Responses have them as a text in a text.
func argued(text string) string {
	var inner string
	if json.Unmarshal([]byte(text), &inner) == nil {
		text = inner
	}
	if text == "" {
		return "{}"
	}
	return canon([]byte(text))
}

// rest returns the members but some.
func rest(body []byte, but ...string) (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	err := json.Unmarshal(body, &members)
	maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool { return slices.Contains(but, name) })
	return members, err
}

// worded reads a content that is a text or a list of parts.
func worded(content json.RawMessage, who string, read func(part json.RawMessage) (entry, error)) ([]entry, error) {
	var text string
	if len(content) == 0 || string(content) == "null" {
		return nil, nil
	}
	if json.Unmarshal(content, &text) == nil {
		if text == "" {
			return nil, nil
		}
		return []entry{{Who: who, Kind: "text", Value: text}}, nil
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(content, &parts); err != nil {
		return nil, err
	}
	var all []entry
	for _, p := range parts {
		e, err := read(p)
		if err != nil {
			return nil, err
		}
		if e.Kind == "" {
			continue
		}
		e.Who = who
		all = append(all, e)
	}
	return all, nil
}

// openaiPart reads a part of a content, of both APIs of OpenAI's.
func openaiPart(part json.RawMessage) (entry, error) {
	var p struct {
		Type, Text string
		ImageURL   json.RawMessage `json:"image_url"`
	}
	if err := json.Unmarshal(part, &p); err != nil {
		return entry{}, err
	}
	switch p.Type {
	case "text", "input_text", "output_text":
		return entry{Kind: "text", Value: p.Text}, nil
	case "image_url", "input_image":
		var url string
		var object struct{ URL string }
		if json.Unmarshal(p.ImageURL, &url) != nil && json.Unmarshal(p.ImageURL, &object) == nil {
			url = object.URL
		}
		return entry{Kind: "image", Value: url}, nil
	}
	return entry{}, fmt.Errorf("a part of the type %q", p.Type)
}

// openaiTool reads a function, of both APIs of OpenAI's. One without a name is a
// tool that the server runs by itself.
func openaiTool(raw json.RawMessage) (e entry, err error) {
	var t struct {
		Name, Description string
		Parameters        json.RawMessage
		Function          json.RawMessage
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		return e, err
	}
	if len(t.Function) > 0 {
		return openaiTool(t.Function)
	}
	return entry{Who: "tool", Name: t.Name, Value: canon(t.Parameters), Mark: t.Description}, nil
}

// openaiChoice reads a tool_choice.
func openaiChoice(raw json.RawMessage) string {
	var word string
	var object struct {
		Name     string
		Function struct{ Name string }
	}
	if json.Unmarshal(raw, &word) == nil {
		return strings.TrimPrefix(word, "auto")
	}
	_ = json.Unmarshal(raw, &object)
	return object.Name + object.Function.Name
}

// toldChat reads a request for a chat completion. What a model thought is one
// item, before the words.
func toldChat(body []byte) (told, error) {
	var in struct {
		Messages []struct {
			Role      string
			Content   json.RawMessage
			ToolCalls []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
			ToolCallID string          `json:"tool_call_id"`
			Thought    string          `json:"reasoning_content"`
			Details    json.RawMessage `json:"reasoning_details"`
			Reasoning  string          // the words of the details once more
		}
		Tools          []json.RawMessage
		ToolChoice     json.RawMessage `json:"tool_choice"`
		ResponseFormat *struct {
			JSONSchema struct {
				Name   string
				Schema json.RawMessage
				Strict bool
			} `json:"json_schema"`
		} `json:"response_format"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return told{}, err
	}
	var out told
	for _, m := range in.Messages {
		who := map[string]string{"system": "system", "developer": "system", "user": "user", "assistant": "model", "tool": "tool"}[m.Role]
		if m.Thought != "" || len(m.Details) > 0 {
			out.entries = append(out.entries, entry{Who: who, Kind: "item", Value: chatItem(m.Thought, m.Details)})
		}
		if m.Reasoning != "" {
			out.entries = append(out.entries, entry{Who: who, Kind: "item", Value: chatItem(m.Reasoning, nil)})
		}
		words, err := worded(m.Content, who, openaiPart)
		if err != nil {
			return out, err
		}
		if m.Role == "tool" {
			for i := range words {
				words[i].Kind, words[i].ID = "result", m.ToolCallID
			}
		}
		out.entries = append(out.entries, words...)
		for _, c := range m.ToolCalls {
			out.entries = append(out.entries, entry{Who: who, Kind: "call", ID: c.ID, Name: c.Function.Name, Value: argued(c.Function.Arguments)})
		}
	}
	if err := out.tooled(in.Tools, openaiTool); err != nil {
		return out, err
	}
	out.choice = openaiChoice(in.ToolChoice)
	if f := in.ResponseFormat; f != nil {
		out.format = &format{f.JSONSchema.Name, canon(f.JSONSchema.Schema), f.JSONSchema.Strict}
	}
	var err error
	out.rest, err = rest(body, "messages", "model", "tools", "tool_choice", "response_format", "stream")
	return out, err
}

// chatItem is what was thought in a turn.
func chatItem(thought string, details json.RawMessage) string {
	item := map[string]any{}
	if thought != "" {
		item["reasoning_content"] = thought
	}
	if len(details) > 0 {
		item["reasoning_details"] = details
	}
	return canon([]byte(encode(item)))
}

// tooled adds tools; those without a name are not functions.
func (t *told) tooled(tools []json.RawMessage, read func(json.RawMessage) (entry, error)) error {
	for _, raw := range tools {
		e, err := read(raw)
		if err != nil {
			return err
		}
		if e.Name == "" {
			t.foreign++
			continue
		}
		t.tools = append(t.tools, e)
	}
	return nil
}

// toldResponses reads a request for a response.
func toldResponses(body []byte) (told, error) {
	var in struct {
		Instructions string
		Input        []json.RawMessage
		Tools        []json.RawMessage
		ToolChoice   json.RawMessage `json:"tool_choice"`
		Text         *struct {
			Format *struct {
				Name   string
				Schema json.RawMessage
				Strict bool
			}
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return told{}, err
	}
	var out told
	if in.Instructions != "" {
		out.entries = append(out.entries, entry{Who: "system", Kind: "text", Value: in.Instructions})
	}
	for _, raw := range in.Input {
		if err := out.responseItem(raw); err != nil {
			return out, err
		}
	}
	if err := out.tooled(in.Tools, openaiTool); err != nil {
		return out, err
	}
	out.choice = openaiChoice(in.ToolChoice)
	if in.Text != nil && in.Text.Format != nil {
		f := in.Text.Format
		out.format = &format{f.Name, canon(f.Schema), f.Strict}
	}
	var err error
	out.rest, err = rest(body, "input", "instructions", "model", "tools", "tool_choice", "text", "stream")
	return out, err
}

func (t *told) responseItem(raw json.RawMessage) error {
	var it struct {
		Type, Role, ID, Name, Arguments string
		Content                         json.RawMessage
		CallID                          string `json:"call_id"`
		Output                          json.RawMessage
	}
	if err := json.Unmarshal(raw, &it); err != nil {
		return err
	}
	switch it.Type {
	case "", "message":
		who := map[string]string{"system": "system", "developer": "system", "user": "user", "assistant": "model"}[it.Role]
		words, err := worded(it.Content, who, openaiPart)
		for i := range words {
			words[i].Mark = it.ID
		}
		t.entries = append(t.entries, words...)
		return err
	case "function_call":
		t.entries = append(t.entries, entry{Who: "model", Kind: "call", ID: it.CallID, Name: it.Name, Value: argued(it.Arguments), Mark: it.ID})
	case "function_call_output":
		words, err := worded(it.Output, "tool", openaiPart)
		for i := range words {
			words[i].Kind, words[i].ID = "result", it.CallID
		}
		t.entries = append(t.entries, words...)
		return err
	case "reasoning":
		t.entries = append(t.entries, entry{Who: "model", Kind: "item", Value: canon(raw)})
	default:
		t.foreign++
	}
	return nil
}
