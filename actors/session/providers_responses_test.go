package session_test

// OpenAI Responses: how a conversation is put.

import (
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/proof/strict"
)

// renderResponses puts a turn's words, then each of its calls, as an item.
// Several messages of a user in a row are legal.
func renderResponses(conversation []message) []strict.ResponseItem {
	out := make([]strict.ResponseItem, 0, len(conversation)+4)
	for i := range conversation {
		m := &conversation[i]
		switch m.role {
		case session.RoleTool:
			out = append(out, strict.ResponseItem{Type: "function_call_output", CallID: m.call, Output: m.text})
		default:
			if m.text != "" {
				out = append(out, strict.ResponseItem{Type: "message", Role: string(m.role), Content: m.text})
			}
			for _, c := range m.calls {
				out = append(out, strict.ResponseItem{Type: "function_call", CallID: c.id, Name: llm.ToolName(c.name), Arguments: string(llm.Object(c.arguments))})
			}
		}
	}
	return out
}
