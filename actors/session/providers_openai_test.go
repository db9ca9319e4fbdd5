package session_test

// OpenAI chat completions: how a conversation is put, and the rules of it.

import (
	"slices"

	"github.com/refold/refold/actors/session"
)

// The rules of chat completions.
const (
	chatRole      providerRule = "chat: role"
	chatContent   providerRule = "chat: content"
	chatAnswered  providerRule = "chat: every call is answered"
	chatAsked     providerRule = "chat: only calls are answered"
	chatOnce      providerRule = "chat: ids are unique"
	chatName      providerRule = "chat: function name"
	chatIDLength  providerRule = "chat: id length"
	chatCallsOnly providerRule = "chat: calls are an assistant's"
)

// chatMessage is an entry of `messages`.
type chatMessage struct {
	Role       string     `json:"role"`
	Content    string     `json:"content,omitempty"`
	ToolCalls  []chatCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type chatCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // text, which need not be JSON
}

// renderChat puts a conversation message by message. Several messages of a user
// in a row are legal; a blank turn of the model, which says nothing, is left out.
func renderChat(conversation []message) []chatMessage {
	out := make([]chatMessage, 0, len(conversation)+1)
	out = append(out, chatMessage{Role: "system", Content: "be brief"})
	for i := range conversation {
		m := &conversation[i]
		switch m.role {
		case session.RoleUser:
			out = append(out, chatMessage{Role: "user", Content: m.text})
		case session.RoleTool:
			out = append(out, chatMessage{Role: "tool", Content: m.text, ToolCallID: m.call})
		default:
			if m.text == "" && len(m.calls) == 0 {
				continue
			}
			said := chatMessage{Role: "assistant", Content: m.text}
			for _, c := range m.calls {
				arguments := c.arguments
				if arguments == "" {
					arguments = "{}"
				}
				said.ToolCalls = append(said.ToolCalls, chatCall{
					ID: c.id, Type: "function", Function: chatFunction{Name: sendableName(c.name), Arguments: arguments},
				})
			}
			out = append(out, said)
		}
	}
	return out
}

// chatIDMax is how long an id may be, in bytes.
const chatIDMax = 40

// validateChat returns the first rule of chat completions that is broken.
func validateChat(messages []chatMessage) error {
	if len(messages) == 0 {
		return breaks(chatContent, "there is no message")
	}
	var room [8]string
	open := room[:0] // ids that the next messages must answer
	var all []string // ids of the same turn
	for i := range messages {
		m := &messages[i]
		if m.Role != "tool" && len(open) > 0 {
			return breaks(chatAnswered, "message %d is of role %s, and %q has no answer", i, m.Role, open)
		}
		if err := chatForm(i, m); err != nil {
			return err
		}
		switch m.Role {
		case "assistant":
			all = all[:0]
			for _, c := range m.ToolCalls {
				if slices.Contains(all, c.ID) {
					return breaks(chatOnce, "message %d calls %s twice", i, c.ID)
				}
				all, open = append(all, c.ID), append(open, c.ID)
			}
		case "tool":
			at := slices.Index(open, m.ToolCallID)
			if at < 0 && slices.Contains(all, m.ToolCallID) {
				return breaks(chatOnce, "message %d answers %s again", i, m.ToolCallID)
			}
			if at < 0 {
				return breaks(chatAsked, "message %d answers %q, which the turn before did not ask", i, m.ToolCallID)
			}
			open = slices.Delete(open, at, at+1)
		default:
			all = all[:0]
		}
	}
	if len(open) > 0 {
		return breaks(chatAnswered, "it ends, and %q has no answer", open)
	}
	return nil
}

// chatForm checks a message by itself.
func chatForm(i int, m *chatMessage) error {
	switch m.Role {
	case "system", "developer", "user", "assistant", "tool":
	default:
		return breaks(chatRole, "message %d is of role %q", i, m.Role)
	}
	if m.Content == "" && (m.Role != "assistant" || len(m.ToolCalls) == 0) {
		return breaks(chatContent, "message %d, %s, is empty", i, m.Role)
	}
	if m.Role != "assistant" && len(m.ToolCalls) > 0 || m.Role != "tool" && m.ToolCallID != "" {
		return breaks(chatCallsOnly, "message %d of role %s has calls, or answers one", i, m.Role)
	}
	for _, c := range m.ToolCalls {
		if !isToolName(c.Function.Name) || c.Type != "function" {
			return breaks(chatName, "message %d calls %s %q", i, c.Type, c.Function.Name)
		}
		if c.ID == "" || len(c.ID) > chatIDMax {
			return breaks(chatIDLength, "message %d has an id of %d bytes", i, len(c.ID))
		}
	}
	return nil
}
