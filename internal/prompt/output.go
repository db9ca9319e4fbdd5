package prompt

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/refold/refold/actors/session"
)

// fileText is how a blob that is no text is shown to a model.
func fileText(c *session.Content) string {
	return fmt.Sprintf("[%s, %d bytes, %s]", Clip(c.MediaType, session.NameBytesMax), c.Size, c.Blob)
}

// output returns the text of a tool's result. Of a text that became a blob for
// its size a model is shown the beginning and the end: the whole would be shown,
// and paid for, in every later turn.
func (r *Reader) output(ctx context.Context, seq uint64, c *session.Content) (string, error) {
	if c == nil {
		return "", nil
	}
	if len(c.Parts) == 0 {
		return r.preview(ctx, seq, c)
	}
	texts := make([]string, len(c.Parts))
	total := 0
	for i := range c.Parts {
		var err error
		if texts[i], err = r.output(ctx, seq, &c.Parts[i]); err != nil {
			return "", err
		}
		if total += len(texts[i]); total > ContentBytesMax {
			return "", tooMuch(seq, ContentBytesMax)
		}
	}
	return strings.Join(texts, "\n"), nil
}

// preview returns content that has no parts as a model is shown it.
func (r *Reader) preview(ctx context.Context, seq uint64, c *session.Content) (string, error) {
	if c.Blob != nil && session.IsShownAsText(c.MediaType) && c.Size > ContentBytesMax {
		return fmt.Sprintf("[%d bytes of text, too many to be shown; they are %s]", c.Size, c.Blob), nil
	}
	text, err := r.text(ctx, seq, c)
	if err != nil || c.Blob == nil || len(text) <= session.TextBytesMax {
		return text, err
	}
	head, tail := Clip(text, previewHeadBytes), len(text)-previewTailBytes
	for !utf8.RuneStart(text[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n[%d of %d bytes are left out here; the whole is %s]\n%s", head, tail-len(head), len(text), c.Blob, text[tail:]), nil
}

// shownResult returns what a model is shown of a call's result, and whether it
// tells of a failure.
func shownResult(r *result) (text string, failed bool) {
	text = r.text
	if r.status != session.CallSucceeded {
		failed = true
		fault := session.Fault{Code: string(r.status)}
		if r.fault != nil {
			fault = *r.fault
		}
		text = faultText(fault.Code, fault.Detail)
		if r.text != "" {
			text += "\n" + r.text
		}
	}
	if text == "" {
		text = noOutput
	}
	return text, failed
}
