package session_test

// Gemini generateContent: how a conversation is put, and the rules of it.

import (
	"encoding/json"
	"slices"

	"github.com/refold/refold/actors/session"
)

// The rules of Gemini. That a turn with calls follows one of the user or one of
// responses is no rule of its own here: it follows from the alternation.
const (
	geminiRole      providerRule = "gemini: role"
	geminiAlternate providerRule = "gemini: roles alternate"
	geminiLast      providerRule = "gemini: ends with the user"
	geminiParts     providerRule = "gemini: parts"
	geminiText      providerRule = "gemini: text"
	geminiBlock     providerRule = "gemini: parts of a role"
	geminiParity    providerRule = "gemini: as many responses as calls"
	geminiAfter     providerRule = "gemini: responses come right after calls"
	geminiMatch     providerRule = "gemini: responses match calls"
	geminiApart     providerRule = "gemini: responses stand alone"
	geminiArgs      providerRule = "gemini: args and response are objects"
	geminiName      providerRule = "gemini: function name"
)

// geminiTurn is an entry of `contents`.
type geminiTurn struct {
	Role  string       `json:"role"`
	Parts []geminiPart `json:"parts"`
}

// geminiPart has one of its fields.
type geminiPart struct {
	Text             *string         `json:"text,omitempty"`
	FunctionCall     *geminiCall     `json:"functionCall,omitempty"`
	FunctionResponse *geminiResponse `json:"functionResponse,omitempty"`
}

type geminiCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

type geminiResponse struct {
	ID       string          `json:"id,omitempty"`
	Name     string          `json:"name"`
	Response json.RawMessage `json:"response"`
}

// renderGemini puts all responses of a batch as one turn, and what a user said
// in a row as another. Words of a user right after responses (a steer, or the
// run was stopped before the model answered) follow a short turn of the model:
// two turns of the user in a row are refused by some models, and words beside
// responses are taken for a part of them by others.
func renderGemini(conversation []message) []geminiTurn {
	out := make([]geminiTurn, 0, len(conversation))
	var of session.Role // what the last turn is made of
	add := func(role string, from session.Role, part geminiPart) {
		if n := len(out); n == 0 || out[n-1].Role != role {
			out = append(out, geminiTurn{Role: role})
		}
		last := &out[len(out)-1]
		last.Parts, of = append(last.Parts, part), from
	}
	for i := range conversation {
		m := &conversation[i]
		switch m.role {
		case session.RoleUser:
			if of == session.RoleTool {
				add("model", session.RoleAssistant, geminiPart{Text: new("(interrupted)")})
			}
			add("user", session.RoleUser, geminiPart{Text: new(spoken(m.text))})
		case session.RoleTool:
			key := "output"
			if m.failed {
				key = "error"
			}
			add("user", session.RoleTool, geminiPart{FunctionResponse: &geminiResponse{
				ID: m.call, Name: sendableName(m.name), Response: keyed(key, m.text),
			}})
		default:
			if !isBlank(m.text) {
				add("model", session.RoleAssistant, geminiPart{Text: &m.text})
			}
			for _, c := range m.calls {
				add("model", session.RoleAssistant, geminiPart{FunctionCall: &geminiCall{
					ID: c.id, Name: sendableName(c.name), Args: json.RawMessage(objectOf(c.arguments)),
				}})
			}
		}
	}
	return out
}

// keyed is an object of one text.
func keyed(key, text string) json.RawMessage {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return json.RawMessage(`{"` + key + `":` + string(quoted) + `}`)
}

// validateGemini returns the first rule of generateContent that is broken.
func validateGemini(turns []geminiTurn) error {
	if len(turns) == 0 {
		return breaks(geminiParts, "there is no turn")
	}
	var open []*geminiCall
	for i := range turns {
		t := &turns[i]
		if t.Role != "user" && t.Role != "model" || i == 0 && t.Role != "user" {
			return breaks(geminiRole, "turn %d is of role %q", i, t.Role)
		}
		if i > 0 && t.Role == turns[i-1].Role {
			return breaks(geminiAlternate, "turns %d and %d are of role %s", i-1, i, t.Role)
		}
		if len(t.Parts) == 0 {
			return breaks(geminiParts, "turn %d is empty", i)
		}
		var calls []*geminiCall
		responses := 0
		for j := range t.Parts {
			p := &t.Parts[j]
			if err := geminiForm(i, t.Role, p); err != nil {
				return err
			}
			switch {
			case p.FunctionCall != nil:
				calls = append(calls, p.FunctionCall)
			case p.FunctionResponse != nil:
				responses++
			}
		}
		if err := geminiAnswers(i, t, open, responses); err != nil {
			return err
		}
		open = calls
	}
	switch {
	case len(open) > 0:
		return breaks(geminiParity, "it ends after %d calls", len(open))
	case turns[len(turns)-1].Role != "user":
		return breaks(geminiLast, "it ends with the role %s", turns[len(turns)-1].Role)
	}
	return nil
}

// geminiAnswers checks a turn's responses against the calls of the turn before.
func geminiAnswers(i int, t *geminiTurn, open []*geminiCall, responses int) error {
	switch {
	case responses > 0 && len(open) == 0:
		return breaks(geminiAfter, "turn %d has %d responses, and no calls stand before it", i, responses)
	case responses != len(open):
		return breaks(geminiParity, "turn %d has %d responses to %d calls", i, responses, len(open))
	case responses > 0 && responses < len(t.Parts):
		return breaks(geminiApart, "turn %d has other parts beside its responses", i)
	}
	left := slices.Clone(open)
	for _, p := range t.Parts[:responses] {
		at := slices.IndexFunc(left, func(c *geminiCall) bool { return c.ID == p.FunctionResponse.ID && c.Name == p.FunctionResponse.Name })
		if at < 0 {
			return breaks(geminiMatch, "turn %d has a response of %s %s, which was not called, or has one", i, p.FunctionResponse.Name, p.FunctionResponse.ID)
		}
		left = slices.Delete(left, at, at+1)
	}
	return nil
}

// geminiForm checks a part by itself.
func geminiForm(i int, role string, p *geminiPart) error {
	given := 0
	for _, is := range []bool{p.Text != nil, p.FunctionCall != nil, p.FunctionResponse != nil} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return breaks(geminiParts, "turn %d has a part of %d kinds", i, given)
	case p.Text != nil && isBlank(*p.Text):
		return breaks(geminiText, "turn %d has a blank text", i)
	case p.FunctionCall != nil && role != "model", p.FunctionResponse != nil && role != "user":
		return breaks(geminiBlock, "turn %d of role %s has a part of the other role", i, role)
	case p.FunctionCall != nil && !isToolName(p.FunctionCall.Name), p.FunctionResponse != nil && !isToolName(p.FunctionResponse.Name):
		return breaks(geminiName, "turn %d names a function that has no such name", i)
	case p.FunctionCall != nil && len(p.FunctionCall.Args) > 0 && !isObject(string(p.FunctionCall.Args)),
		p.FunctionResponse != nil && !isObject(string(p.FunctionResponse.Response)):
		return breaks(geminiArgs, "turn %d has args or a response that is no object", i)
	}
	return nil
}
