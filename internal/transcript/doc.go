// Package transcript turns the events of a session into its conversation, and prints it:
// as Markdown, and in the forms of providers' APIs.
//
// # Path
//
// Each reads and folds a session's log, and Reader turns every event into entries: what
// the event did to the session, not what it claims. A Format prints them.
//
// # Laws
//
//   - An entry of a conversation comes where the model is shown it: an input when a turn
//     takes it, results when all calls of a turn have one.
//   - No text looks like the next entry.
//
// # Limits
//
// Texts in blobs are read up to 1 MiB each; brackets stand for what is left out.
//
// # Testing
//
// The tests of refold transcript and of Session.Transcript print whole sessions.
package transcript

import (
	"context"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/media"
)

// Format prints a conversation, entry by entry, and then what ends it.
type Format interface {
	Entry(*Entry)
	End()
}

// Each folds a session's log, and calls each with the entries of its conversation, in
// order. It returns the state after the last event. It fails with client.ErrNoSession if
// there is no event.
func Each(ctx context.Context, c *client.Client, sid string, each func(*Entry)) (last *session.State, err error) {
	r := NewReader(func(content *session.Content) string { return Text(ctx, c, content) }, func(e *Entry) {
		if e.Kind != "" {
			each(e)
		}
	})
	err = client.ErrNoSession
	fold := c.Folder(sid)
	for e, failed := range c.Read(ctx, sid, 0, 0) {
		var notices []session.Notice
		if err = failed; err == nil {
			notices, last, err = fold(ctx, e)
		}
		if err != nil {
			return nil, err
		}
		r.Read(e, notices, last)
	}
	return last, err
}

// blobMax is the size of the largest blob that is printed.
const blobMax = 1 << 20

// Text returns the text of content, with brackets for parts that are not
// printed.
func Text(ctx context.Context, c *client.Client, content *session.Content) string {
	return TextOf(content, func(blob *session.Content, what string) string {
		if blob.Size > blobMax && blob.MediaType != session.ImportedMediaType {
			return fmt.Sprintf("[%s: more than the %d bytes that are printed]", what, blobMax)
		}
		text, err := c.Text(ctx, blob)
		if err != nil {
			return fmt.Sprintf("[%s: %v]", what, err)
		}
		if kind := media.Type([]byte(text)); kind != "" && !media.IsText([]byte(text)) {
			return fmt.Sprintf("[%s: by its bytes it is %s]", what, kind)
		}
		return text
	})
}
