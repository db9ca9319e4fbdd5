package strict

import (
	"encoding/json"
	"slices"
)

// The rules of Gemini. The rule that a turn with calls follows a user's turn or
// responses is not separate: it follows from the alternation.
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
	geminiImage     providerRule = "gemini: images"
	geminiSignature providerRule = "gemini: signatures are the model's"
)

// GeminiTurn is an entry of `contents`.
type GeminiTurn struct {
	Role  string       `json:"role"`
	Parts []GeminiPart `json:"parts"`
}

// GeminiPart has one of its first four fields.
type GeminiPart struct {
	Text             *string         `json:"text,omitempty"`
	FunctionCall     *GeminiCall     `json:"functionCall,omitempty"`
	FunctionResponse *GeminiResponse `json:"functionResponse,omitempty"`
	InlineData       *GeminiImage    `json:"inlineData,omitempty"`
	ThoughtSignature []byte          `json:"thoughtSignature,omitempty"`
}

// GeminiImage is data in a part.
type GeminiImage struct {
	MIMEType string `json:"mimeType"`
	Data     string `json:"data"`
}

// GeminiCall is a part `functionCall`.
type GeminiCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

// GeminiResponse is a part `functionResponse`.
type GeminiResponse struct {
	ID       string          `json:"id,omitempty"`
	Name     string          `json:"name"`
	Response json.RawMessage `json:"response"`
	Parts    []GeminiPart    `json:"parts,omitempty"` // images
}

// Gemini returns the first broken rule of generateContent.
func Gemini(turns []GeminiTurn) error {
	if len(turns) == 0 {
		return breaks(geminiParts, "there is no turn")
	}
	var open []*GeminiCall
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
		var calls []*GeminiCall
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

// geminiAnswers checks a turn's responses against the calls of the previous turn.
func geminiAnswers(i int, t *GeminiTurn, open []*GeminiCall, responses int) error {
	switch {
	case responses > 0 && len(open) == 0:
		return breaks(geminiAfter, "turn %d has %d responses, and no calls precede it", i, responses)
	case responses != len(open):
		return breaks(geminiParity, "turn %d has %d responses to %d calls", i, responses, len(open))
	case responses > 0 && responses < len(t.Parts):
		return breaks(geminiApart, "turn %d has other parts besides its responses", i)
	}
	left := slices.Clone(open)
	for _, p := range t.Parts[:responses] {
		at := slices.IndexFunc(left, func(c *GeminiCall) bool { return c.ID == p.FunctionResponse.ID && c.Name == p.FunctionResponse.Name })
		if at < 0 {
			return breaks(geminiMatch, "turn %d has a response of %s %s, which was not called, or has one already", i, p.FunctionResponse.Name, p.FunctionResponse.ID)
		}
		left = slices.Delete(left, at, at+1)
	}
	return nil
}

// geminiForm checks a single part.
func geminiForm(i int, role string, p *GeminiPart) error {
	given := 0
	for _, is := range []bool{p.Text != nil, p.FunctionCall != nil, p.FunctionResponse != nil, p.InlineData != nil} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return breaks(geminiParts, "turn %d has a part of %d kinds", i, given)
	case len(p.ThoughtSignature) > 0 && role != "model":
		return breaks(geminiSignature, "turn %d of role %s has a signature", i, role)
	case p.InlineData != nil && (role != "user" || file(p.InlineData.MIMEType, p.InlineData.Data, geminiBodyMax, geminiKinds) != nil):
		return breaks(geminiImage, "turn %d of role %s has an invalid image", i, role)
	case p.FunctionResponse != nil && slices.ContainsFunc(p.FunctionResponse.Parts, func(q GeminiPart) bool {
		return q.InlineData == nil || file(q.InlineData.MIMEType, q.InlineData.Data, geminiBodyMax, geminiKinds) != nil
	}):
		return breaks(geminiImage, "turn %d has a response with an invalid image", i)
	case p.Text != nil && IsBlank(*p.Text):
		return breaks(geminiText, "turn %d has a blank text", i)
	case p.FunctionCall != nil && role != "model", p.FunctionResponse != nil && role != "user":
		return breaks(geminiBlock, "turn %d of role %s has a part of the other role", i, role)
	case p.FunctionCall != nil && !IsName(p.FunctionCall.Name), p.FunctionResponse != nil && !IsName(p.FunctionResponse.Name):
		return breaks(geminiName, "turn %d has an invalid function name", i)
	case p.FunctionCall != nil && len(p.FunctionCall.Args) > 0 && objectFault(string(p.FunctionCall.Args), geminiDepthMax) != nil,
		p.FunctionResponse != nil && !IsObject(string(p.FunctionResponse.Response)):
		return breaks(geminiArgs, "turn %d has args or a response that is not an object", i)
	}
	return nil
}
