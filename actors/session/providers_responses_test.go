package session_test

// OpenAI Responses: how a conversation is put, and the rules of it.

import (
	"slices"

	"github.com/refold/refold/actors/session"
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
	responsesIDLength providerRule = "responses: id length"
)

// responseItem is an entry of `input`.
type responseItem struct {
	Type      string `json:"type"`
	Role      string `json:"role,omitempty"`
	Content   string `json:"content,omitempty"`
	CallID    string `json:"call_id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	Output    string `json:"output,omitempty"`
}

// renderResponses puts a turn's words, then each of its calls, as an item.
// Several messages of a user in a row are legal.
func renderResponses(conversation []message) []responseItem {
	out := make([]responseItem, 0, len(conversation)+4)
	for i := range conversation {
		m := &conversation[i]
		switch m.role {
		case session.RoleTool:
			out = append(out, responseItem{Type: "function_call_output", CallID: m.call, Output: m.text})
		default:
			if m.text != "" {
				out = append(out, responseItem{Type: "message", Role: string(m.role), Content: m.text})
			}
			for _, c := range m.calls {
				arguments := c.arguments
				if arguments == "" {
					arguments = "{}"
				}
				out = append(out, responseItem{Type: "function_call", CallID: c.id, Name: sendableName(c.name), Arguments: arguments})
			}
		}
	}
	return out
}

// responsesIDMax is how long a call_id may be, in bytes.
const responsesIDMax = 64

// validateResponses returns the first rule of Responses that is broken.
// Stricter than the API, an output stands before the next message.
func validateResponses(items []responseItem) error {
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
				return breaks(responsesAsked, "item %d is the output of %q, which nobody called", i, it.CallID)
			}
		}
	}
	if len(open) > 0 {
		return breaks(responsesAnswered, "it ends, and %q has no output", open)
	}
	return nil
}

// responseForm checks an item by itself.
func responseForm(i int, it *responseItem) error {
	if it.Type != "message" && (it.CallID == "" || len(it.CallID) > responsesIDMax) {
		return breaks(responsesIDLength, "item %d has a call_id of %d bytes", i, len(it.CallID))
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
		if !isToolName(it.Name) {
			return breaks(responsesName, "item %d calls %q", i, it.Name)
		}
		if it.Arguments == "" {
			return breaks(responsesForm, "item %d has no arguments", i)
		}
	case "function_call_output":
		if it.Output == "" {
			return breaks(responsesContent, "item %d has no output", i)
		}
	default:
		return breaks(responsesForm, "item %d is of type %q", i, it.Type)
	}
	return nil
}
