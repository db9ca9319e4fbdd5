package web

import (
	"encoding/base64"
	"encoding/json"
	"net/http"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

// aguiInput is what counts of a RunAgentInput.
type aguiInput struct {
	Thread, Run string
	Message     *aguiAsked   // the last one of the user; nil: there is none
	Results     []aguiResult // messages of tools after it
	Resume      []aguiResume
	Tools       []aguiTool
	Context     []json.RawMessage
}

// aguiAsked is a message of a request.
type aguiAsked struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// aguiResult is the result of a call, from the page.
type aguiResult struct {
	ToolCallID string `json:"toolCallId"`
	Content    string `json:"content"`
	Error      string `json:"error"`
}

// aguiResume is an answer to an interrupt.
type aguiResume struct {
	InterruptID string          `json:"interruptId"`
	Status      string          `json:"status"` // resolved or cancelled
	Payload     json.RawMessage `json:"payload"`
}

// aguiDecision is the payload of an answer.
type aguiDecision struct {
	Approved   *bool           `json:"approved"`
	EditedArgs json.RawMessage `json:"editedArgs"`
	Reason     string          `json:"reason"`
}

// aguiContent returns a message's content as package client takes it. Files in it are
// stored.
func (c *call) aguiContent(raw json.RawMessage) (text string, o client.RunOptions, err error) {
	bad := func(format string, args ...any) (string, client.RunOptions, error) {
		return "", o, problem(http.StatusBadRequest, CodeBadRequest, "the last user message: "+format, args...)
	}
	if json.Unmarshal(raw, &text) == nil && text != "" {
		return text, o, nil
	}
	var parts []aguiPart
	switch err := json.Unmarshal(raw, &parts); {
	case err != nil || text != "":
		return bad("its content is a text that is not empty, or a list of parts")
	case len(parts) == 0 || len(parts) > client.FilesMax:
		return bad("it has %d parts: send 1 to %d", len(parts), client.FilesMax)
	}
	for i := range parts {
		part, err := c.aguiPart(&parts[i])
		if err != nil {
			return "", o, err
		}
		o.Parts = append(o.Parts, part)
	}
	return "", o, nil
}

// aguiPart is a part of a message's content.
type aguiPart struct {
	Type     string      `json:"type"` // text, image, document, audio or video
	Text     string      `json:"text,omitempty"`
	Source   *aguiSource `json:"source,omitempty"`
	Metadata any         `json:"metadata,omitempty"` // of a file: its name, for people
}

// aguiSource is where the bytes of a part are.
type aguiSource struct {
	Type     string `json:"type"` // data, url or file
	Value    string `json:"value"`
	Provider string `json:"provider,omitempty"`
	MimeType string `json:"mimeType,omitempty"`
}

// aguiProvider is the provider of files whose value is a handle.
const aguiProvider = "refold"

// aguiPart returns a part of an input.
func (c *call) aguiPart(p *aguiPart) (part session.Content, err error) {
	switch {
	case p.Type == "text" && p.Text != "":
		return session.Content{Text: p.Text}, nil
	case p.Type == "text":
		return part, problem(http.StatusBadRequest, CodeBadRequest, "the last user message: it has a part without a text")
	case p.Type != "image" && p.Type != "document":
		return part, problem(http.StatusUnprocessableEntity, CodeMediaType, "the last user message: models are shown texts, images and documents, and no %q", cut(p.Type))
	case p.Source != nil && p.Source.Type == "file" && p.Source.Provider == aguiProvider:
		return c.openBlob(p.Source.Value)
	case p.Source == nil || p.Source.Type != "data":
		return part, problem(http.StatusUnprocessableEntity, CodeMediaType, "the last user message: the server fetches no files: send the source as data, or store the file and send its handle as a file of the provider %s", aguiProvider)
	}
	data, err := base64.StdEncoding.DecodeString(p.Source.Value)
	if err != nil {
		return part, problem(http.StatusBadRequest, CodeBadRequest, "the last user message: the data of a part is no base64")
	}
	return c.put(client.File{Name: p.name(), Data: data})
}

// name returns the name of a part's file, which a model is shown; empty: it has none.
func (p *aguiPart) name() string {
	about, _ := p.Metadata.(map[string]any)
	name, _ := about["name"].(string)
	return name
}

// read keeps a message if it is the user's, or a result that no message of the user
// follows.
func (in *aguiInput) read(raw json.RawMessage) error {
	var m aguiAsked
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	switch m.Role {
	case "user":
		in.Message, in.Results = &m, nil
	case "tool":
		var result aguiResult
		if err := json.Unmarshal(raw, &result); err != nil {
			return err
		}
		in.Results = append(in.Results, result)
	}
	return nil
}

// aguiInput reads the request. Of its messages it keeps the last one of the user, and the
// results after it.
func (c *call) aguiInput() (*aguiInput, error) {
	if err := c.isJSON(); err != nil {
		return nil, err
	}
	in := &aguiInput{}
	d := json.NewDecoder(c.r.Body)
	err := eachMember(d, func(name string) error {
		switch name {
		case "threadId":
			return d.Decode(&in.Thread)
		case "runId":
			return d.Decode(&in.Run)
		case "tools":
			return d.Decode(&in.Tools)
		case "context":
			return d.Decode(&in.Context)
		case "resume":
			return d.Decode(&in.Resume)
		case "messages":
			return eachElement(d, func() error {
				var raw json.RawMessage
				if err := d.Decode(&raw); err != nil {
					return err
				}
				return in.read(raw)
			})
		}
		return d.Decode(&json.RawMessage{})
	})
	if err != nil {
		return nil, badBody(err)
	}
	if in.Run == "" {
		return nil, problem(http.StatusBadRequest, CodeBadRequest, "the body: runId is missing: it names the request, so that it can be repeated")
	}
	return in, nil
}
