package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/refold/refold/actors/session"
)

// ImportMessage is a message of a conversation that was held elsewhere.
type ImportMessage struct {
	Role   session.Role           // of a tool's, it is the result of the next call without one
	Text   string                 // may be empty of an assistant with calls, and of a tool
	Files  []File                 // images and documents after the text; not of an assistant
	Calls  []session.ImportedCall // of an assistant
	Failed bool                   // of a tool: the call failed
}

// Import makes a conversation the head of a new session, through the door ctl: models are
// shown it before the input of the first run. It comes before the first run; what
// configures the session may come before. The session refuses a conversation that no
// provider would take: session.TranscriptImported has the rules. The texts are stored as
// one blob, long ones and files as one each. id is the event's; empty: a new ULID. Taken
// returns the outcome.
func (c *Client) Import(ctx context.Context, sid string, messages []ImportMessage, id string) (seq uint64, err error) {
	if len(messages) > session.ImportedMax {
		return 0, fmt.Errorf("import: %d messages, at most %d: leave out the oldest", len(messages), session.ImportedMax)
	}
	body := session.TranscriptImported{}
	var contents []byte
	for i := range messages {
		m := &messages[i]
		line, err := c.importLine(ctx, m)
		if err != nil {
			return 0, fmt.Errorf("import: message %d: %w", i+1, err)
		}
		body.Messages = append(body.Messages, session.ImportedMessage{Role: m.Role, Calls: len(m.Calls), Offset: body.Size, Size: int64(len(line))})
		contents = append(contents, line...)
		if body.Size += int64(len(line)); body.Size > session.ImportedBytesMax {
			return 0, fmt.Errorf("import: the first %d of %d messages have over %d MiB: leave out the oldest", i+1, len(messages), session.ImportedBytesMax>>20)
		}
	}
	if body.Blob, err = c.bus.PutBlob(ctx, contents); err != nil {
		return 0, fmt.Errorf("import: %w", err)
	}
	return c.publish(ctx, session.DoorCtl, sid, session.TypeTranscriptImported, body, id)
}

// importLine returns what the blob has of a message, and stores what is not in it.
func (c *Client) importLine(ctx context.Context, m *ImportMessage) ([]byte, error) {
	of := session.ImportedContent{Calls: m.Calls, Failed: m.Failed}
	if m.Role == session.RoleAssistant && len(m.Files) > 0 {
		return nil, errors.New("a model's message has files: leave them out")
	}
	if m.Text != "" || len(m.Files) > 0 {
		content, err := c.input(ctx, m.Text, nil, m.Files)
		if err != nil {
			return nil, err
		}
		of.Content = &content
	}
	line, err := json.Marshal(of)
	return append(line, '\n'), err
}
