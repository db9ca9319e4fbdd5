package strict

import (
	"encoding/json"
	"fmt"
	"slices"
)

// The rules of Responses.
const (
	responsesForm     providerRule = "responses: form of an item"
	responsesRole     providerRule = "responses: role"
	responsesContent  providerRule = "responses: content"
	responsesAnswered providerRule = "responses: every call has its output"
	responsesAsked    providerRule = "responses: every output has its call"
	responsesOnce     providerRule = "responses: ids are unique"
	responsesName     providerRule = "responses: function name"
	responsesID       providerRule = "responses: id"
	responsesObject   providerRule = "responses: arguments are an object"
	responsesThought  providerRule = "responses: reasoning precedes its output"
)

// ResponseItem is an entry of `input`.
type ResponseItem struct {
	Type      string `json:"type"`
	Role      string `json:"role,omitempty"`
	Content   string `json:"content,omitempty"`
	CallID    string `json:"call_id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	Output    string `json:"output,omitempty"`
	Encrypted string `json:"encrypted_content,omitempty"`

	// Of reasoning; no rule is about them.
	ID      string          `json:"id,omitempty"`
	Summary json.RawMessage `json:"summary,omitempty"`
	Status  string          `json:"status,omitempty"`
}

// UnmarshalJSON decodes an item whose content or output is text, or texts and
// images.
func (it *ResponseItem) UnmarshalJSON(data []byte) error {
	type plain ResponseItem
	var wire struct {
		plain
		Content json.RawMessage `json:"content,omitempty"`
		Output  json.RawMessage `json:"output,omitempty"`
	}
	err := decode(data, &wire)
	*it = ResponseItem(wire.plain)
	if it.Type == "" && it.Role != "" { // an item with a role is a message
		it.Type = "message"
	}
	if err == nil {
		it.Content, err = responseText(wire.Content)
	}
	if err == nil {
		it.Output, err = responseText(wire.Output)
	}
	return err
}

func responseText(content json.RawMessage) (text string, err error) {
	if len(content) == 0 || json.Unmarshal(content, &text) == nil {
		return text, nil
	}
	var parts []struct {
		Type   string `json:"type"`
		Text   string `json:"text"`
		Detail string `json:"detail"`

		Annotations []json.RawMessage `json:"annotations"`
		ImageURL    string            `json:"image_url"`
		Filename    string            `json:"filename"`
		FileData    string            `json:"file_data"`
	}
	if err := decode(content, &parts); err != nil {
		return "", err
	}
	for _, p := range parts {
		switch {
		case (p.Type == "input_text" || p.Type == "output_text") && p.Text != "":
			text += p.Text
		case p.Type == "input_image":
			if err := dataURL(p.ImageURL, openaiImages...); err != nil {
				return "", err
			}
			text += imageText
		case p.Type == "input_file" && p.Filename != "":
			if err := dataURL(p.FileData, pdf); err != nil {
				return "", err
			}
			text += imageText
		default:
			return "", fmt.Errorf("a part %q, or an empty one", p.Type)
		}
	}
	return text, nil
}

// Responses returns the first broken rule of Responses. It is stricter than the
// API: an output must precede the next message.
func Responses(items []ResponseItem) error {
	if len(items) == 0 {
		return breaks(responsesContent, "there is no item")
	}
	var rooms [2][8]string
	open, all := rooms[0][:0], rooms[1][:0]
	for i := range items {
		it := &items[i]
		if err := responseForm(i, it); err != nil {
			return err
		}
		if i > 0 && items[i-1].Type == "reasoning" && it.Type != "reasoning" && it.Type != "function_call" && (it.Type != "message" || it.Role != "assistant") {
			return breaks(responsesThought, "item %d follows reasoning, and is not its output", i)
		}
		switch it.Type {
		case "message":
			if len(open) > 0 {
				return breaks(responsesAnswered, "item %d is a message, and %q has no output", i, open)
			}
		case "function_call":
			if slices.Contains(all, it.CallID) {
				return breaks(responsesOnce, "item %d calls %s again", i, it.CallID)
			}
			all, open = append(all, it.CallID), append(open, it.CallID)
		case "function_call_output":
			at := slices.Index(open, it.CallID)
			switch {
			case at >= 0:
				open = slices.Delete(open, at, at+1)
			case slices.Contains(all, it.CallID):
				return breaks(responsesOnce, "item %d is another output of %s", i, it.CallID)
			default:
				return breaks(responsesAsked, "item %d is the output of %q, which was not called", i, it.CallID)
			}
		}
	}
	if items[len(items)-1].Type == "reasoning" {
		return breaks(responsesThought, "it ends with reasoning")
	}
	if len(open) > 0 {
		return breaks(responsesAnswered, "it ends without an output of %q", open)
	}
	return nil
}

// responseForm checks a single item.
func responseForm(i int, it *ResponseItem) error {
	if it.Type != "message" && it.Type != "reasoning" && !IsName(it.CallID) {
		return breaks(responsesID, "item %d has the call_id %q", i, it.CallID)
	}
	switch it.Type {
	case "message":
		switch it.Role {
		case "user", "assistant", "system", "developer":
		default:
			return breaks(responsesRole, "item %d is of role %q", i, it.Role)
		}
		if it.Content == "" {
			return breaks(responsesContent, "item %d is empty", i)
		}
	case "function_call":
		if !IsName(it.Name) {
			return breaks(responsesName, "item %d calls %q", i, it.Name)
		}
		if it.Arguments == "" {
			return breaks(responsesForm, "item %d has no arguments", i)
		}
		if err := objectFault(it.Arguments, depthMax); err != nil {
			return breaks(responsesObject, "item %d: %v", i, err)
		}
	case "function_call_output":
		if it.Output == "" {
			return breaks(responsesContent, "item %d has no output", i)
		}
	case "reasoning":
		if it.Encrypted == "" || it.ID == "" {
			return breaks(responsesThought, "item %d is reasoning that the server can't read", i)
		}
	default:
		return breaks(responsesForm, "item %d is of type %q", i, it.Type)
	}
	return nil
}
