package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/media"
)

// File is a file in the input of a run, a steer or an edit: an image (PNG, JPEG,
// GIF, WebP, HEIC, HEIF), a PDF, or UTF-8 text. Its type is that of its content,
// whatever its name says. A provider that does not take the format shows the model
// a line in its place: docs/models.md has a table.
type File struct {
	Name string // which the model is shown; at most 128 bytes
	Data []byte // at most FileBytesMax
}

// Limits of the files of one input.
const (
	FilesMax      = session.PartsMax - 1  // files
	FileBytesMax  = session.ShownBytesMax // one file; also the text and all text files together
	FilesBytesMax = 32 << 20              // all files together; some providers take less
)

// ReadFile reads a file for RunOptions.Files and ControlOptions.Files; its name is
// the last element of path.
// The error says what to do.
func ReadFile(path string) (File, error) {
	f, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return File{}, fmt.Errorf("file %s: does not exist: check the path", path)
	case errors.Is(err, fs.ErrPermission):
		return File{}, fmt.Errorf("file %s: this user may not read it", path)
	case err != nil:
		return File{}, fmt.Errorf("file %s: %w", path, err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return File{}, fmt.Errorf("file %s: is a folder: give its files one by one", path)
	}
	file, err := NewFile(f, filepath.Base(path), "")
	if err != nil {
		return File{}, fmt.Errorf("file %s: %w", path, errors.Unwrap(err))
	}
	return file, nil
}

// NewFile reads a file of an input, such as an upload, to its end. mediaType is what its
// sender says that it is; empty: nothing. The content decides: it is an error if it is
// of another type, except that text is text, whatever its type is called. The error says
// what to do.
func NewFile(from io.Reader, name, mediaType string) (File, error) {
	file := File{Name: shortName(name)}
	var err error
	if file.Data, err = io.ReadAll(io.LimitReader(from, FileBytesMax+1)); err != nil {
		return File{}, fmt.Errorf("file %s: %w", name, err)
	}
	kind, err := file.mediaType()
	if err == nil {
		err = fits(kind, mediaType)
	}
	if err != nil {
		return File{}, fmt.Errorf("file %s: %w", name, err)
	}
	return file, nil
}

// fits returns an error if content of a kind is not what its sender says.
func fits(kind, said string) error {
	if said == "" {
		return nil
	}
	is, _, err := mime.ParseMediaType(said)
	switch {
	case err != nil:
		return fmt.Errorf("its media type %q can't be read: write such as image/png, or leave it out", said)
	case is == "image/jpg":
		is = media.JPEG
	case is == "application/octet-stream": // it says nothing
		return nil
	}
	binary := is == media.PDF || strings.HasPrefix(is, "image/") || strings.HasPrefix(is, "audio/") || strings.HasPrefix(is, "video/")
	if is == kind || kind == "text/plain" && !binary {
		return nil
	}
	return fmt.Errorf("its media type is said to be %s, but by its content it is %s: correct the type, or leave it out", is, kind)
}

// shortName returns a name that an event can hold: the end of a longer one.
func shortName(name string) string {
	name = strings.ToValidUTF8(name, "\uFFFD")
	for len(name) > session.NameBytesMax {
		_, size := utf8.DecodeRuneInString(name)
		name = name[size:]
	}
	return name
}

// mediaType returns the file's media type by its content. The error says why a
// model can't be shown the file, and what to do.
func (f *File) mediaType() (string, error) {
	kind := media.Type(f.Data)
	switch {
	case len(f.Data) == 0:
		return "", errors.New("is empty")
	case len(f.Data) > FileBytesMax:
		return "", fmt.Errorf("has more than %d MiB, the most of a file that a model is shown: make it smaller, or let a tool read it", FileBytesMax>>20)
	}
	switch kind {
	case media.PNG, media.JPEG, media.GIF, media.WebP, media.HEIC, media.HEIF, media.PDF:
		return kind, nil
	case "":
	default:
		return "", fmt.Errorf("is %s, which no provider takes: convert it to PNG or JPEG", kind)
	}
	if !media.IsText(f.Data) {
		return "", errors.New("by its content it is no image, PDF or UTF-8 text: convert it, or let a tool read it")
	}
	return "text/plain", nil
}

// ErrFile says that a model can't be shown a file.
var ErrFile = errors.New("no model can be shown it")

// Store stores a file as a blob, and returns it as a part of an input: see
// RunOptions.Parts. It fails with ErrFile if a model can't be shown the file. Before a part
// is used much later, ask Keep.
func (c *Client) Store(ctx context.Context, f File) (session.Content, error) {
	kind, err := f.mediaType()
	if err != nil {
		return session.Content{}, fmt.Errorf("file %s: %w: %w", f.Name, ErrFile, err)
	}
	return c.store(ctx, &f, kind)
}

func (c *Client) store(ctx context.Context, f *File, kind string) (session.Content, error) {
	ref, err := c.bus.PutBlob(ctx, f.Data)
	if err != nil {
		return session.Content{}, fmt.Errorf("store file %s as a blob: %w", f.Name, err)
	}
	return session.Content{Blob: &ref, MediaType: kind, Name: shortName(f.Name), Size: int64(len(f.Data))}, nil
}

// input returns an input with parts, and files, which it stores as blobs.
func (c *Client) input(ctx context.Context, text string, more []session.Content, files []File) (session.Content, error) {
	if len(files) == 0 && len(more) == 0 {
		return c.content(ctx, text)
	}
	if len(files) > FilesMax {
		return session.Content{}, fmt.Errorf("%d files: at most %d in one input", len(files), FilesMax)
	}
	kinds := make([]string, len(files))
	all, texts := 0, len(text)
	for i := range files {
		var err error
		if kinds[i], err = files[i].mediaType(); err != nil {
			return session.Content{}, fmt.Errorf("file %s: %w", files[i].Name, err)
		}
		if all += len(files[i].Data); kinds[i] == "text/plain" {
			texts += len(files[i].Data)
		}
	}
	switch {
	case all > FilesBytesMax:
		return session.Content{}, fmt.Errorf("the files have %d bytes together, at most %d MiB in one input: leave some out", all, FilesBytesMax>>20)
	case texts > FileBytesMax:
		return session.Content{}, fmt.Errorf("the text has %d bytes together, at most %d MiB in one input: leave some out", texts, FileBytesMax>>20)
	}
	var parts []session.Content
	if text != "" {
		words, err := c.content(ctx, text)
		if err != nil {
			return session.Content{}, err
		}
		parts = append(parts, words)
	}
	for i := range more {
		part := more[i]
		if part.Blob == nil {
			var err error
			if part, err = c.content(ctx, part.Text); err != nil {
				return session.Content{}, err
			}
		}
		parts = append(parts, part)
	}
	for i := range files {
		part, err := c.store(ctx, &files[i], kinds[i])
		if err != nil {
			return session.Content{}, err
		}
		parts = append(parts, part)
	}
	return session.Content{Parts: parts}, nil
}
