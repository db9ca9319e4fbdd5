package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/secrets"
)

// resultOf turns an answer into a result: text as text, images, sounds and embedded
// resources as files, and structured content as JSON unless the text is the same.
func (t *Tool) resultOf(r *sdk.CallToolResult, redactor *secrets.Redactor) executor.Result {
	if r.NeedsInput() {
		result, _ := failed(CodeNeedsInput, "server %s asks for something before it goes on, and nobody is there to answer it", t.Server)
		return result
	}
	var result executor.Result
	var texts []string
	for _, c := range r.Content {
		text, file := contentOf(c, redactor)
		if text != "" {
			texts = append(texts, text)
		}
		if file != nil {
			result.Files = append(result.Files, *file)
		}
	}
	if structured := structuredText(structuredOf(r), texts); structured != "" {
		texts = append(texts, structured)
	}
	result.Output = strings.Join(texts, "\n")
	if !r.IsError {
		return result
	}
	result.Error = &executor.Error{Code: CodeToolError, Detail: result.Output}
	switch {
	case result.Output == "":
		result.Error.Detail = fmt.Sprintf("%s of server %s failed and gives no reason", t.Name, t.Server)
	case len(result.Output) > errorTextMax:
		result.Error.Detail = fmt.Sprintf("%s of server %s says that it failed:", t.Name, t.Server)
	default:
		result.Output = "" // the error shows it
	}
	return result
}

// contentOf returns one part of an answer as text, or as a file, or both. What it
// cuts has no secrets.
func contentOf(c sdk.Content, redactor *secrets.Redactor) (text string, file *executor.File) {
	switch c := c.(type) {
	case *sdk.TextContent:
		return c.Text, nil
	case *sdk.ImageContent:
		return "", &executor.File{MediaType: c.MIMEType, Data: c.Data}
	case *sdk.AudioContent:
		return "", &executor.File{MediaType: c.MIMEType, Data: c.Data}
	case *sdk.ResourceLink:
		kind := ""
		if c.MIMEType != "" {
			kind = ", " + c.MIMEType
		}
		return redactor.Clip(fmt.Sprintf("[resource %s%s: %s]", cmp.Or(c.Title, c.Name), kind, c.URI), linkTextMax), nil
	case *sdk.EmbeddedResource:
		switch {
		case c.Resource == nil:
			return "", nil
		case len(c.Resource.Blob) > 0:
			return redactor.Clip(fmt.Sprintf("[resource %s]", c.Resource.URI), linkTextMax), &executor.File{MediaType: c.Resource.MIMEType, Data: c.Resource.Blob}
		}
		return redactor.Clip(fmt.Sprintf("[resource %s]", c.Resource.URI), linkTextMax) + "\n" + c.Resource.Text, nil
	}
	return fmt.Sprintf("[a part of the answer is left out: %T]", c), nil
}

// structuredText returns structured content as JSON, or "" if there is none or
// a text is the same.
func structuredText(structured any, texts []string) string {
	if structured == nil {
		return ""
	}
	if object, ok := structured.(map[string]any); ok && len(object) == 1 {
		for _, value := range object { // the text again, under a name
			if same, ok := value.(string); ok && same == strings.Join(texts, "\n") {
				return ""
			}
		}
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if e.Encode(structured) != nil {
		return ""
	}
	want, err := codec.FromJSON(text.Bytes())
	for _, other := range texts {
		if has, bad := codec.FromJSON([]byte(other)); err == nil && bad == nil && bytes.Equal(has, want) {
			return ""
		}
	}
	return strings.TrimSpace(text.String())
}
