package prompt

import (
	"cmp"
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

// show returns what a model is shown of content without parts: its text, and the
// image or document that it is, nil if it is none. A file is read if withMedia.
type show func(ctx context.Context, seq uint64, c *session.Content, withMedia bool) (string, *executor.Part, error)

// content returns what a model is shown of c: its text, in which parts are joined
// with a line break, and its images and documents, in order. Parts beyond
// ContentBytesMax are cut. Each image is a line of the text too; one that is too
// large to be shown is only that line. If all of them, by the sizes that the event
// states, are more than left bytes, none is returned.
func (r *Reader) content(ctx context.Context, seq uint64, c *session.Content, left int64, each show) (text string, files []executor.Part, err error) {
	if c == nil {
		return "", nil, nil
	}
	leaves := leavesOf(c, nil)
	texts := make([]string, len(leaves))
	total, withMedia := 0, mediaBytes(c) <= left
	for i, leaf := range leaves {
		var file *executor.Part
		if texts[i], file, err = each(ctx, seq, leaf, withMedia); err != nil {
			return "", nil, err
		}
		if file != nil && withMedia {
			files = append(files, *file)
			withMedia = bytesOf(files) <= mediaBytesMax // more is never shown
		}
		if total+len(texts[i]) > ContentBytesMax {
			texts[i] = middleCut(texts[i], previewHeadBytes, previewTailBytes, nil)
		}
		total += len(texts[i])
	}
	return strings.Join(texts, "\n"), files, nil
}

// leavesOf appends the content without parts that c is or has to leaves, in order.
func leavesOf(c *session.Content, leaves []*session.Content) []*session.Content {
	if len(c.Parts) == 0 {
		return append(leaves, c)
	}
	for i := range c.Parts {
		leaves = leavesOf(&c.Parts[i], leaves)
	}
	return leaves
}

// whole shows all of a text, and one line in place of a blob that is no text. A
// file's text stands between the lines that mark a document. The bytes decide what
// an image or a PDF is, whatever its label says. Of a text over ContentBytesMax it
// shows the beginning and the end: the session refuses such an input if it states
// its size, and one that does not may be in a log.
func (r *Reader) whole(ctx context.Context, seq uint64, c *session.Content, withMedia bool) (string, *executor.Part, error) {
	text, file, _, err := r.upTo(ctx, seq, c, withMedia, ContentBytesMax)
	return text, file, err
}

// upTo is whole with another limit for the text of a blob. cut reports whether the text
// exceeds it.
func (r *Reader) upTo(ctx context.Context, seq uint64, c *session.Content, withMedia bool, textMax int) (text string, file *executor.Part, cut bool, err error) {
	isText := session.IsShownAsText(c.MediaType)
	switch {
	case c.Blob == nil:
		return c.Text, nil, false, nil
	case !isText && (!withMedia || !mayBeMedia(c)):
		return fileLine(c, c.MediaType), nil, false, nil
	}
	data, err := r.blob(ctx, seq, *c.Blob)
	var fault *executor.Error
	switch {
	case errors.As(err, &fault) && fault.Code == codeRequestTooLarge && isText:
		return fmt.Sprintf("[%s of text, too many to be shown: more than %d MiB]", c.Blob, BlobBytesMax>>20), nil, false, nil
	case fault != nil && fault.Code == codeRequestTooLarge:
		return fileLine(c, c.MediaType), nil, false, nil
	case err != nil:
		return "", nil, false, err
	}
	kind := media.Type(data)
	isFile := kind != "" && (!isText || !media.IsText(data)) || strings.HasPrefix(c.MediaType, "image/")
	if isFile && len(data) > 0 && len(data) <= fileBytesMax {
		file = &executor.Part{Name: Clip(c.Name, session.NameBytesMax), MediaType: cmp.Or(kind, c.MediaType), Data: data}
	}
	switch {
	case !isText:
		return fileLine(c, c.MediaType), file, false, nil
	case isFile:
		return fileLine(c, kind+", labelled as text"), file, false, nil
	}
	if text = Valid(string(data)); len(text) > textMax {
		text, cut = middleCut(text, previewHeadBytes, previewTailBytes, c.Blob), true
	}
	if c.Name != "" {
		text = space.ShownDocument(Clip(c.Name, session.NameBytesMax), text)
	}
	return text, nil, cut, nil
}

// fileLine names a blob that is not shown as text.
func fileLine(c *session.Content, kind string) string {
	name := Clip(c.Name, session.NameBytesMax)
	if name != "" {
		name += ", "
	}
	return fmt.Sprintf("[%s%s, %d bytes, %s]", name, Clip(kind, session.NameBytesMax), c.Size, c.Blob)
}

// preview returns a show that is whole, but of a text that became a blob for its size
// it shows the beginning and the end, and sets cut: the whole would be shown, and paid
// for, in every later turn.
func (r *Reader) preview(cut *bool) show {
	return func(ctx context.Context, seq uint64, c *session.Content, withMedia bool) (string, *executor.Part, error) {
		text, file, isCut, err := r.upTo(ctx, seq, c, withMedia, session.TextBytesMax)
		*cut = *cut || isCut
		return text, file, err
	}
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

// mediaBytes returns the size of all that may be images and documents in c by its
// label, as its event states it.
func mediaBytes(c *session.Content) (n int64) {
	switch {
	case c == nil:
		return 0
	case c.Blob != nil && mayBeMedia(c):
		n = c.Size
	}
	for i := range c.Parts {
		n += mediaBytes(&c.Parts[i])
	}
	return n
}

// mayBeMedia reports whether the bytes of a blob that is no text are looked at: the
// labels of tools and people are often wrong. Sounds and films are large, and their
// labels come from programs that know them.
func mayBeMedia(c *session.Content) bool {
	return c.Size <= fileBytesMax && !session.IsShownAsText(c.MediaType) &&
		!strings.HasPrefix(c.MediaType, "audio/") && !strings.HasPrefix(c.MediaType, "video/")
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
