package web

import (
	"encoding/json"
	"net/http"
)

// transcript returns the conversation of the session in one of its forms.
func (c *call) transcript() (any, error) {
	format := c.r.URL.Query().Get("format")
	switch format {
	case "", "json", "md", "openai", "anthropic":
	default:
		return nil, problem(http.StatusBadRequest, CodeBadRequest, "format: it is json, md, openai or anthropic")
	}
	t, err := c.session().Transcript(c.ctx())
	if err != nil {
		return nil, err
	}
	t.Session = c.strip(t.Session)
	switch format {
	case "md":
		c.raw("text/markdown; charset=utf-8", []byte(t.Markdown()))
	case "openai":
		return json.RawMessage(t.OpenAI()), nil
	case "anthropic":
		return json.RawMessage(t.Anthropic()), nil
	default:
		return t.Entries, nil
	}
	return nil, nil
}
