package web

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

// uiMessage is a UIMessage of the AI SDK.
type uiMessage struct {
	ID       string   `json:"id"`
	Role     string   `json:"role"`
	Metadata any      `json:"metadata,omitempty"`
	Parts    []uiPart `json:"parts"`
}

// uiMetadata is what a page learns of the run that a message of the assistant is.
type uiMetadata struct {
	Run       uint32            `json:"run,omitempty"`
	Lifecycle session.Lifecycle `json:"lifecycle,omitempty"` // at its end
	Code      string            `json:"code,omitempty"`      // why it failed
	Detail    string            `json:"detail,omitempty"`
}

// uiPart is a part of a message: the fields of the types that Refold knows.
type uiPart struct {
	Type       string          `json:"type"`
	State      string          `json:"state,omitempty"`
	Text       string          `json:"text,omitempty"`
	MediaType  string          `json:"mediaType,omitempty"`
	Filename   string          `json:"filename,omitempty"`
	URL        string          `json:"url,omitempty"`
	ToolCallID string          `json:"toolCallId,omitempty"`
	Input      json.RawMessage `json:"input,omitempty"`
	Output     json.RawMessage `json:"output,omitempty"`
	ErrorText  string          `json:"errorText,omitempty"`
	Approval   *uiApproval     `json:"approval,omitempty"`
}

// uiApproval is the approval of a call.
type uiApproval struct {
	ID       string `json:"id"`
	Approved *bool  `json:"approved,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// The states of a tool's part.
const (
	uiInput     = "input-available"
	uiRequested = "approval-requested"
	uiResponded = "approval-responded"
	uiOutput    = "output-available"
	uiError     = "output-error"
	uiDenied    = "output-denied"
)

// uiRequest is what counts of a request: the user's latest message, or the decisions in
// one of the assistant's.
type uiRequest struct {
	ID, Trigger, MessageID string

	user    *uiMessage // if it is the last one
	decided *uiMessage
}

// aiSDKRequest reads the body. It has all messages, with their files: they are read one
// after another, and only what may count is kept.
func (c *call) aiSDKRequest() (*uiRequest, error) {
	if err := c.isJSON(); err != nil {
		return nil, err
	}
	body := &uiRequest{}
	deciding := map[string]*uiMessage{}
	d := json.NewDecoder(c.r.Body)
	err := eachMember(d, func(name string) error {
		switch name {
		case "id":
			return d.Decode(&body.ID)
		case "trigger":
			return d.Decode(&body.Trigger)
		case "messageId":
			return d.Decode(&body.MessageID)
		case "messages":
			return eachElement(d, func() error {
				m := &uiMessage{}
				if err := d.Decode(m); err != nil {
					return err
				}
				body.user = nil
				if m.Role == "user" {
					body.user = m
				} else if m.decides() {
					deciding[m.ID] = m
				}
				return nil
			})
		}
		return d.Decode(&json.RawMessage{}) // a page may send more
	})
	if err != nil {
		return nil, badBody(err)
	}
	body.decided = deciding[body.MessageID]
	if body.decided == nil && body.user == nil && body.Trigger != "regenerate-message" {
		return nil, problem(http.StatusBadRequest, CodeBadRequest, "the last message is not the user's, and the message %q has no decision, and no output of a call that waits for one", cut(body.MessageID))
	}
	if body.decided == nil && body.user != nil && body.user.ID == "" {
		return nil, problem(http.StatusBadRequest, CodeBadRequest, "the message has no id")
	}
	return body, nil
}

// decides reports whether a person decided over a call of a message, or the page has the
// output of one.
func (m *uiMessage) decides() bool {
	return slices.ContainsFunc(m.Parts, func(p uiPart) bool { return p.State == uiResponded || p.isOutput() })
}

// isOutput reports whether a part is a call with an end, which the page may have given.
func (p *uiPart) isOutput() bool {
	run, _ := placeOf(p.ToolCallID)
	return run > 0 && (p.State == uiOutput || p.State == uiError)
}

// eachMember calls each with the names of an object, whose values it decodes.
func eachMember(d *json.Decoder, each func(name string) error) error {
	return within(d, '{', func() error {
		name, err := d.Token()
		if err != nil {
			return err
		}
		return each(fmt.Sprint(name))
	})
}

// eachElement calls each for the elements of an array, which it decodes.
func eachElement(d *json.Decoder, each func() error) error { return within(d, '[', each) }

func within(d *json.Decoder, begin json.Delim, each func() error) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	if token != begin {
		return fmt.Errorf("got %v in place of %v", token, begin)
	}
	for d.More() {
		if err := each(); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// aiSDKInput returns a user's message as an input. Its files are stored.
func (c *call) aiSDKInput(m *uiMessage) (text string, o client.RunOptions, err error) {
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Type {
		case "text":
			if p.Text != "" {
				o.Parts = append(o.Parts, session.Content{Text: p.Text})
			}
		case "file":
			part, err := c.aiSDKFile(p)
			if err != nil {
				return "", o, err
			}
			o.Parts = append(o.Parts, part)
		}
	}
	switch {
	case len(o.Parts) == 0 || len(o.Parts) > client.FilesMax:
		return "", o, problem(http.StatusBadRequest, CodeBadRequest, "the message has %d texts and files: send 1 to %d", len(o.Parts), client.FilesMax)
	case len(o.Parts) == 1 && o.Parts[0].Blob == nil:
		text, o.Parts = o.Parts[0].Text, nil
	}
	return text, o, nil
}

// aiSDKFile stores the file of a part.
func (c *call) aiSDKFile(p *uiPart) (session.Content, error) {
	data, err := dataOf(p.URL)
	if err != nil {
		return session.Content{}, problem(http.StatusBadRequest, CodeBadRequest, "file %s: %v", cut(p.Filename), err)
	}
	file, err := client.NewFile(strings.NewReader(data), p.Filename, p.MediaType)
	if err != nil {
		return session.Content{}, problem(http.StatusUnprocessableEntity, CodeMediaType, "%v", err)
	}
	return c.put(file)
}

// dataOf returns the content of a data URL.
func dataOf(text string) (string, error) {
	rest, ok := strings.CutPrefix(text, "data:")
	head, body, comma := strings.Cut(rest, ",")
	if !ok || !comma {
		return "", errors.New("its url is no data URL: the server fetches nothing from elsewhere")
	}
	if !strings.HasSuffix(head, ";base64") {
		return url.PathUnescape(body)
	}
	data, err := base64.StdEncoding.DecodeString(body)
	return string(data), err
}

// approvalID returns the id of an approval: the call, and the hash of the arguments that
// the person sees.
func approvalID(call, hash string) string { return call + "." + hash }

// approvalOf returns the call over which a person decided, and the hash of its arguments.
func approvalOf(a *uiApproval) (call, hash string, err error) {
	if a != nil {
		call, hash, _ = strings.Cut(a.ID, ".")
	}
	if run, _ := placeOf(call); run == 0 || hash == "" || a.Approved == nil {
		return "", "", problem(http.StatusBadRequest, CodeBadRequest, "a part in the state %s has no approval of this server", uiResponded)
	}
	return call, hash, nil
}

// placeOf returns the run and the turn of a call, r1t2c0; 0 if it is none.
func placeOf(call string) (run, turn uint32) {
	if _, err := fmt.Sscanf(call, "r%dt%dc", &run, &turn); err != nil {
		return 0, 0
	}
	return run, turn
}
