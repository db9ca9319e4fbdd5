package session_test

// Gemini generateContent: how a conversation is put.

import (
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/proof/strict"
)

// renderGemini puts all responses of a batch as one turn, and what a user said
// in a row as another. Words of a user right after responses (a steer, or the
// run was stopped before the model answered) follow a short turn of the model:
// two turns of the user in a row are refused by some models, and words beside
// responses are taken for a part of them by others.
func renderGemini(conversation []message) []strict.GeminiTurn {
	out := make([]strict.GeminiTurn, 0, len(conversation))
	var of session.Role // what the last turn is made of
	add := func(role string, from session.Role, part strict.GeminiPart) {
		if n := len(out); n == 0 || out[n-1].Role != role {
			out = append(out, strict.GeminiTurn{Role: role})
		}
		last := &out[len(out)-1]
		last.Parts, of = append(last.Parts, part), from
	}
	for i := range conversation {
		m := &conversation[i]
		switch m.role {
		case session.RoleUser:
			if of == session.RoleTool {
				add("model", session.RoleAssistant, strict.GeminiPart{Text: new(llm.Interrupted)})
			}
			add("user", session.RoleUser, strict.GeminiPart{Text: new(llm.Spoken(m.text))})
		case session.RoleTool:
			key := "output"
			if m.failed {
				key = "error"
			}
			add("user", session.RoleTool, strict.GeminiPart{FunctionResponse: &strict.GeminiResponse{
				ID: m.call, Name: llm.ToolName(m.name), Response: llm.JSON(map[string]string{key: m.text}),
			}})
		default:
			if !strict.IsBlank(m.text) {
				add("model", session.RoleAssistant, strict.GeminiPart{Text: &m.text})
			}
			for _, c := range m.calls {
				add("model", session.RoleAssistant, strict.GeminiPart{FunctionCall: &strict.GeminiCall{
					ID: c.id, Name: llm.ToolName(c.name), Args: llm.Object(c.arguments),
				}})
			}
		}
	}
	return out
}
