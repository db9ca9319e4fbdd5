package session_test

// OpenAI chat completions: how a conversation is put. The rules are in package
// strict.

import (
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/proof/strict"
)

// renderChat puts a conversation message by message. A blank turn of the model,
// which says nothing, is left out. A user's message that follows another one, or a
// result, follows a short turn of the model.
func renderChat(conversation []message) []strict.ChatMessage {
	out := make([]strict.ChatMessage, 0, len(conversation)+1)
	out = append(out, strict.ChatMessage{Role: "system", Content: "be brief"})
	for i := range conversation {
		m := &conversation[i]
		switch m.role {
		case session.RoleUser:
			if before := out[len(out)-1].Role; before == "user" || before == "tool" {
				out = append(out, strict.ChatMessage{Role: "assistant", Content: llm.Interrupted})
			}
			out = append(out, strict.ChatMessage{Role: "user", Content: llm.Spoken(m.text)})
		case session.RoleTool:
			out = append(out, strict.ChatMessage{Role: "tool", Content: m.text, ToolCallID: llm.CallID(m.call)})
		default:
			if llm.IsBlank(m.text) && len(m.calls) == 0 {
				continue
			}
			said := strict.ChatMessage{Role: "assistant"}
			if !llm.IsBlank(m.text) {
				said.Content = m.text
			}
			for _, c := range m.calls {
				said.ToolCalls = append(said.ToolCalls, strict.ChatCall{
					ID: llm.CallID(c.id), Type: "function", Function: strict.ChatFunction{Name: llm.ToolName(c.name), Arguments: string(llm.Object(c.arguments))},
				})
			}
			out = append(out, said)
		}
	}
	return out
}
