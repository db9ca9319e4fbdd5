package session_test

// Anthropic messages: how a conversation is put.

import (
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/proof/strict"
)

// renderAnthropic puts everything between two turns of the model as one message
// of the user: first the results, then words. The API would combine messages
// itself; then results could stand after words. Blank words of the model are
// left out, and with them a message of nothing else; blank words of a user, who
// said something after all, are spelled.
func renderAnthropic(conversation []message) []strict.AnthropicMessage {
	out := make([]strict.AnthropicMessage, 0, len(conversation))
	add := func(role string, block strict.AnthropicBlock) {
		if n := len(out); n == 0 || out[n-1].Role != role {
			out = append(out, strict.AnthropicMessage{Role: role})
		}
		last := &out[len(out)-1]
		last.Content = append(last.Content, block)
	}
	for i := range conversation {
		m := &conversation[i]
		switch m.role {
		case session.RoleUser:
			add("user", strict.AnthropicBlock{Type: "text", Text: llm.Spoken(m.text)})
		case session.RoleTool:
			add("user", strict.AnthropicBlock{Type: "tool_result", ToolUseID: m.call, Content: m.text, IsError: m.failed})
		default:
			if !strict.IsBlank(m.text) {
				add("assistant", strict.AnthropicBlock{Type: "text", Text: m.text})
			}
			for _, c := range m.calls {
				add("assistant", strict.AnthropicBlock{Type: "tool_use", ID: c.id, Name: llm.ToolName(c.name), Input: llm.Object(c.arguments)})
			}
		}
	}
	return out
}
