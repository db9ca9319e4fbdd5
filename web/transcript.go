package web

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// transcriptForms are the forms of a transcript; the first is the default.
var transcriptForms = []string{"json", "md", "openai", "anthropic"}

// transcript returns the conversation of the session in one of its forms.
func (c *call) transcript() (any, error) {
	format := cmp.Or(c.r.URL.Query().Get("format"), transcriptForms[0])
	if !slices.Contains(transcriptForms, format) {
		return nil, problem(http.StatusBadRequest, CodeBadRequest, "format: it is one of %s", strings.Join(transcriptForms, ", "))
	}
	t, err := c.session().Transcript(c.ctx())
	if err != nil {
		return nil, err
	}
	t.Session = c.strip(t.Session)
	c.w.Header().Set("ETag", strconv.Quote(strconv.FormatUint(t.Seq, 10)))
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
