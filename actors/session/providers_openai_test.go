package session_test

// OpenAI chat completions: how a conversation is put. The rules are in package
// strict.

import (
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/proof/strict"
)

// renderChat puts a conversation message by message. Several messages of a user
// in a row are legal; a blank turn of the model, which says nothing, is left out.
func renderChat(conversation []message) []strict.ChatMessage {
	out := make([]strict.ChatMessage, 0, len(conversation)+1)
	out = append(out, strict.ChatMessage{Role: "system", Content: "be brief"})
	for i := range conversation {
		m := &conversation[i]
		switch m.role {
		case session.RoleUser:
			out = append(out, strict.ChatMessage{Role: "user", Content: m.text})
		case session.RoleTool:
			out = append(out, strict.ChatMessage{Role: "tool", Content: m.text, ToolCallID: m.call})
		default:
			if m.text == "" && len(m.calls) == 0 {
				continue
			}
			said := strict.ChatMessage{Role: "assistant", Content: m.text}
			for _, c := range m.calls {
				arguments := c.arguments
				if arguments == "" {
					arguments = "{}"
				}
				said.ToolCalls = append(said.ToolCalls, strict.ChatCall{
					ID: c.id, Type: "function", Function: strict.ChatFunction{Name: sendableName(c.name), Arguments: arguments},
				})
			}
			out = append(out, said)
		}
	}
	return out
}
