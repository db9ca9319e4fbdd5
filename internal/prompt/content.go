package prompt

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/media"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/space"
)

// text returns the text of c. It joins parts with a line break; show returns the
// text of content without parts. Parts beyond ContentBytesMax are cut.
func (r *Reader) text(
	ctx context.Context, seq uint64, c *session.Content, show func(context.Context, uint64, *session.Content) (string, error),
) (string, error) {
	switch {
	case c == nil:
		return "", nil
	case len(c.Parts) == 0:
		return show(ctx, seq, c)
	}
	texts := make([]string, len(c.Parts))
	total := 0
	for i := range c.Parts {
		var err error
		if texts[i], err = r.text(ctx, seq, &c.Parts[i], show); err != nil {
			return "", err
		}
		if total+len(texts[i]) > ContentBytesMax {
			texts[i] = middleCut(texts[i], previewHeadBytes, previewTailBytes, nil)
		}
		total += len(texts[i])
	}
	return strings.Join(texts, "\n"), nil
}

// whole returns all of a text, and one line in place of a blob that is no text. A
// file's text stands between the lines that mark a document. Of a blob over
// ContentBytesMax it returns the beginning and the end: the session refuses such an
// input if it states its size, and one that does not may be in a log.
func (r *Reader) whole(ctx context.Context, seq uint64, c *session.Content) (string, error) {
	switch {
	case c.Blob == nil:
		return c.Text, nil
	case !session.IsShownAsText(c.MediaType):
		return fileLine(c, c.MediaType), nil
	}
	content, err := r.blob(ctx, seq, *c.Blob)
	var fault *executor.Error
	if errors.As(err, &fault) && fault.Code == codeRequestTooLarge {
		return fmt.Sprintf("[%s of text, too many to be shown: more than %d MiB]", c.Blob, BlobBytesMax>>20), nil
	}
	if kind := media.Type(content); kind != "" && !media.IsText(content) {
		return fileLine(c, kind+", labelled as text"), nil
	}
	text := Valid(string(content))
	if len(text) > ContentBytesMax {
		text = middleCut(text, previewHeadBytes, previewTailBytes, c.Blob)
	}
	if c.Name != "" {
		text = space.ShownDocument(Clip(c.Name, session.NameBytesMax), text)
	}
	return text, err
}

// fileLine names a blob that is not shown as text.
func fileLine(c *session.Content, kind string) string {
	name := Clip(c.Name, session.NameBytesMax)
	if name != "" {
		name += ", "
	}
	return fmt.Sprintf("[%s%s, %d bytes, %s]", name, Clip(kind, session.NameBytesMax), c.Size, c.Blob)
}

// preview returns the beginning and the end of a text that became a blob for its
// size: the whole would be shown, and paid for, in every later turn.
func (r *Reader) preview(ctx context.Context, seq uint64, c *session.Content) (string, error) {
	text, err := r.whole(ctx, seq, c)
	if err != nil || c.Blob == nil || len(text) <= session.TextBytesMax {
		return text, err
	}
	return middleCut(text, previewHeadBytes, previewTailBytes, c.Blob), nil
}

// middleCut returns the beginning and the end of a valid text, with a line between
// them that says how much is left out, and names the blob that has all of it (nil:
// none has). A text that fits stays as it is.
func middleCut(text string, headBytes, tailBytes int, whole *codec.Ref) string {
	if len(text) <= headBytes+tailBytes {
		return text
	}
	head, tail := Clip(text, headBytes), len(text)-tailBytes
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	where := ""
	if whole != nil {
		where = "; the whole is " + whole.String()
	}
	return fmt.Sprintf("%s\n[%d of %d bytes are left out here%s]\n%s", head, tail-len(head), len(text), where, text[tail:])
}

// images returns the images and documents that c holds as blobs, in order. Each is a
// line of c's text too; one that is too large to be shown is only that line. Their
// types are labels: the clients of providers read the bytes. If all of them, by the
// sizes that the event states, are more than left bytes, none is read.
func (r *Reader) images(ctx context.Context, seq uint64, c *session.Content, left int64) ([]executor.Part, error) {
	if mediaBytes(c) > left {
		return nil, nil
	}
	switch {
	case c == nil:
		return nil, nil
	case isShownAsMedia(c):
		data, err := r.blob(ctx, seq, *c.Blob)
		if err != nil || len(data) == 0 || len(data) > fileBytesMax {
			return nil, err
		}
		if !strings.HasPrefix(c.MediaType, "image/") && media.Type(data) == "" {
			return nil, nil // the line of text says all
		}
		return []executor.Part{{Name: Clip(c.Name, session.NameBytesMax), MediaType: c.MediaType, Data: data}}, nil
	}
	var all []executor.Part
	for i := range c.Parts {
		images, err := r.images(ctx, seq, &c.Parts[i], left)
		if err != nil {
			return nil, err
		}
		all = append(all, images...)
	}
	return all, nil
}

// mediaBytes returns the size of all images and documents in c, as its event states
// it.
func mediaBytes(c *session.Content) (n int64) {
	switch {
	case c == nil:
		return 0
	case isShownAsMedia(c):
		n = c.Size
	}
	for i := range c.Parts {
		n += mediaBytes(&c.Parts[i])
	}
	return n
}

// isShownAsMedia reports whether c may be an image or a document that is shown. Tools
// that don't know a file's type label it as bytes.
func isShownAsMedia(c *session.Content) bool {
	kind, _, _ := strings.Cut(c.MediaType, ";")
	return c.Blob != nil && c.Size <= fileBytesMax &&
		(strings.HasPrefix(kind, "image/") || kind == media.PDF || kind == "application/octet-stream")
}

func bytesOf(images []executor.Part) int {
	n := 0
	for i := range images {
		n += 64 + len(images[i].Data)
	}
	return n
}

func (r *Reader) blob(ctx context.Context, seq uint64, ref codec.Ref) ([]byte, error) {
	return r.stored(ctx, "", ref, codeTranscript, fmt.Sprintf("%s of event %d", ref, seq))
}

// stored returns the content of a blob. If it is not stored, or the store holds
// other bytes, it is made again from the log of sid (empty: the log does not have it);
// if that is impossible, the error is a fault with this code.
func (r *Reader) stored(ctx context.Context, sid string, ref codec.Ref, code, name string) ([]byte, error) {
	content, err := r.store.Blob(ctx, ref)
	if sid != "" && (errors.Is(err, natsio.ErrNotFound) || errors.Is(err, journal.ErrOtherBytes)) {
		switch made, failed := r.store.Remade(ctx, sid, ref); {
		case failed == nil:
			return made, nil
		case !errors.Is(failed, natsio.ErrNotFound):
			err = failed
		}
	}
	fault := &executor.Error{Code: code}
	switch {
	case err == nil:
		return content, nil
	case errors.Is(err, natsio.ErrNotFound):
		fault.Detail = name + " is not stored"
		if code == codePromptMissing {
			fault.Detail += ": sync the space again"
		}
	case errors.Is(err, journal.ErrOtherBytes):
		fault.Detail = "the store holds other bytes as " + name + ": restore it from a backup"
	case errors.Is(err, journal.ErrTooLarge):
		fault.Code, fault.Detail = codeRequestTooLarge, fmt.Sprintf("%s has more than %d MiB", name, BlobBytesMax>>20)
	default:
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return nil, fault
}
