package prompt

import (
	"context"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
)

// images returns the images that c holds as blobs, in order. One that is too
// large to be shown is a line in c's text alone, as every image is too.
func (r *Reader) images(ctx context.Context, seq uint64, c *session.Content) ([]executor.Part, error) {
	switch {
	case c == nil:
		return nil, nil
	case c.Blob != nil && strings.HasPrefix(c.MediaType, "image/") && c.Size <= imageBytesMax:
		data, err := r.blob(ctx, seq, *c.Blob)
		if err != nil || len(data) == 0 || len(data) > imageBytesMax {
			return nil, err
		}
		return []executor.Part{{MediaType: c.MediaType, Data: data}}, nil
	}
	var all []executor.Part
	for i := range c.Parts {
		images, err := r.images(ctx, seq, &c.Parts[i])
		if err != nil {
			return nil, err
		}
		all = append(all, images...)
	}
	return all, nil
}

// bytesOf is what images take.
func bytesOf(images []executor.Part) int {
	n := 0
	for i := range images {
		n += 64 + len(images[i].Data)
	}
	return n
}

// shown returns the parts of a message: its text, then the images that lines of
// it name; nil without images.
func shown(text string, images []executor.Part) []executor.Part {
	if len(images) == 0 {
		return nil
	}
	return append([]executor.Part{{Text: text}}, images...)
}
