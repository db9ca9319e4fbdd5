package session_test

// Anthropic messages: how a conversation is put, and the rules of it.

import (
	"encoding/json"
	"slices"

	"github.com/refold/refold/actors/session"
)

// The rules of Anthropic messages.
const (
	anthropicRole      providerRule = "anthropic: role"
	anthropicAlternate providerRule = "anthropic: roles alternate"
	anthropicLast      providerRule = "anthropic: ends with the user"
	anthropicContent   providerRule = "anthropic: content"
	anthropicBlock     providerRule = "anthropic: blocks of a role"
	anthropicAnswered  providerRule = "anthropic: every call is answered"
	anthropicAsked     providerRule = "anthropic: only calls are answered"
	anthropicOnce      providerRule = "anthropic: ids are unique"
	anthropicFirst     providerRule = "anthropic: results come first"
	anthropicInput     providerRule = "anthropic: input is an object"
	anthropicName      providerRule = "anthropic: tool name"
	anthropicID        providerRule = "anthropic: id"
)

// claudeMessage is an entry of `messages`.
type claudeMessage struct {
	Role    string        `json:"role"`
	Content []claudeBlock `json:"content"`
}

type claudeBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}

// renderAnthropic puts everything between two turns of the model as one message
// of the user: first the results, then words. The API would combine messages
// itself; then results could stand after words. Blank words of the model are
// left out, and with them a message of nothing else; blank words of a user, who
// said something after all, are spelled.
func renderAnthropic(conversation []message) []claudeMessage {
	out := make([]claudeMessage, 0, len(conversation))
	add := func(role string, block claudeBlock) {
		if n := len(out); n == 0 || out[n-1].Role != role {
			out = append(out, claudeMessage{Role: role})
		}
		last := &out[len(out)-1]
		last.Content = append(last.Content, block)
	}
	for i := range conversation {
		m := &conversation[i]
		switch m.role {
		case session.RoleUser:
			add("user", claudeBlock{Type: "text", Text: spoken(m.text)})
		case session.RoleTool:
			add("user", claudeBlock{Type: "tool_result", ToolUseID: m.call, Content: m.text, IsError: m.failed})
		default:
			if !isBlank(m.text) {
				add("assistant", claudeBlock{Type: "text", Text: m.text})
			}
			for _, c := range m.calls {
				add("assistant", claudeBlock{Type: "tool_use", ID: c.id, Name: sendableName(c.name), Input: json.RawMessage(objectOf(c.arguments))})
			}
		}
	}
	return out
}

// spoken is a user's text, for providers that take no blank one.
func spoken(text string) string {
	if isBlank(text) {
		return "(blank)"
	}
	return text
}

// validateAnthropic returns the first rule of Anthropic messages that is broken.
func validateAnthropic(messages []claudeMessage) error {
	var rooms [2][8]string
	all, open := rooms[0][:0], rooms[1][:0] // all tool_use ids; those of the message before
	for i := range messages {
		m := &messages[i]
		if m.Role != "user" && m.Role != "assistant" || i == 0 && m.Role != "user" {
			return breaks(anthropicRole, "message %d is of role %q", i, m.Role)
		}
		if i > 0 && m.Role == messages[i-1].Role {
			return breaks(anthropicAlternate, "messages %d and %d are of role %s", i-1, i, m.Role)
		}
		if len(m.Content) == 0 {
			return breaks(anthropicContent, "message %d is empty", i)
		}
		asked := open
		open = nil
		words := false
		for j := range m.Content {
			b := &m.Content[j]
			if err := claudeForm(i, m.Role, b); err != nil {
				return err
			}
			switch b.Type {
			case "text":
				words = true
			case "tool_use":
				if slices.Contains(all, b.ID) {
					return breaks(anthropicOnce, "message %d uses %s again", i, b.ID)
				}
				all, open = append(all, b.ID), append(open, b.ID)
			case "tool_result":
				at := slices.Index(asked, b.ToolUseID)
				switch {
				case words:
					return breaks(anthropicFirst, "message %d has words before the result of %s", i, b.ToolUseID)
				case at >= 0:
					asked = slices.Delete(asked, at, at+1)
				case i > 0 && slices.ContainsFunc(m.Content[:j], func(o claudeBlock) bool { return o.ToolUseID == b.ToolUseID }):
					return breaks(anthropicOnce, "message %d has two results of %s", i, b.ToolUseID)
				default:
					return breaks(anthropicAsked, "message %d has a result of %q, which the message before does not use", i, b.ToolUseID)
				}
			}
		}
		if len(asked) > 0 {
			return breaks(anthropicAnswered, "message %d has no result of %q", i, asked)
		}
	}
	return claudeEnd(messages, open)
}

// claudeEnd checks how a conversation ends.
func claudeEnd(messages []claudeMessage, open []string) error {
	switch n := len(messages); {
	case n == 0:
		return breaks(anthropicContent, "there is no message")
	case len(open) > 0:
		return breaks(anthropicAnswered, "it ends, and %q has no result", open)
	case messages[n-1].Role != "user":
		return breaks(anthropicLast, "it ends with the role %s", messages[n-1].Role)
	}
	return nil
}

// claudeForm checks a block by itself.
func claudeForm(i int, role string, b *claudeBlock) error {
	switch b.Type {
	case "text":
		if isBlank(b.Text) {
			return breaks(anthropicContent, "message %d has a blank text", i)
		}
	case "tool_use":
		switch {
		case role != "assistant":
			return breaks(anthropicBlock, "message %d of role %s uses a tool", i, role)
		case !isToolName(b.Name):
			return breaks(anthropicName, "message %d uses %q", i, b.Name)
		case !isClaudeID(b.ID):
			return breaks(anthropicID, "message %d uses a tool by the id %q", i, b.ID)
		case !isObject(string(b.Input)):
			return breaks(anthropicInput, "message %d has the input %s", i, b.Input)
		}
	case "tool_result":
		switch {
		case role != "user":
			return breaks(anthropicBlock, "message %d of role %s has a result", i, role)
		case b.Content == "":
			return breaks(anthropicContent, "message %d has an empty result", i)
		}
	default:
		return breaks(anthropicBlock, "message %d has a block %q", i, b.Type)
	}
	return nil
}

// isClaudeID reports whether an id is of letters, digits, _ and - alone.
func isClaudeID(id string) bool {
	for len(id) > nameMax { // an id has no length, a name has
		if !isToolName(id[:nameMax]) {
			return false
		}
		id = id[nameMax:]
	}
	return isToolName(id)
}
