package worker

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/prompt"
)

// content returns text as an event holds it: itself, or a blob; nil if empty.
func (w *Worker) content(ctx context.Context, text string, inlineMax int) (*session.Content, error) {
	text = prompt.Valid(text)
	switch {
	case text == "":
		return nil, nil
	case len(text) <= inlineMax:
		return &session.Content{Text: text}, nil
	}
	ref, err := w.wire.PutBlob(ctx, []byte(text))
	if err != nil {
		return nil, fmt.Errorf("store %d bytes of text: %w", len(text), err)
	}
	return &session.Content{Blob: &ref, MediaType: "text/plain; charset=utf-8", Size: int64(len(text))}, nil
}

// outputContent returns a tool call's output as an event holds it: its text, and a
// blob for each file.
func (w *Worker) outputContent(ctx context.Context, o outcome, inlineMax int) (*session.Content, error) {
	text := o.output
	files := o.files
	if len(files) > filesMax {
		text = strings.TrimPrefix(text+fmt.Sprintf("\n[%d more files are left out: at most %d are kept]", len(files)-filesMax, filesMax), "\n")
		files = files[:filesMax]
	}
	whole, err := w.content(ctx, text, inlineMax)
	if err != nil || len(files) == 0 {
		return whole, err
	}
	var parts []session.Content
	if whole != nil {
		parts = append(parts, *whole)
	}
	for _, f := range files {
		ref, err := w.wire.PutBlob(ctx, f.Data)
		if err != nil {
			return nil, fmt.Errorf("store a file of %d bytes: %w", len(f.Data), err)
		}
		kind := prompt.Clip(cmp.Or(f.MediaType, "application/octet-stream"), session.NameBytesMax)
		parts = append(parts, session.Content{Blob: &ref, MediaType: kind, Name: prompt.Clip(f.Name, session.NameBytesMax), Size: int64(len(f.Data))})
	}
	if len(parts) == 1 {
		return &parts[0], nil
	}
	return &session.Content{Parts: parts}, nil
}
