package llm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/media"
)

// Accepts is which images and documents an API takes. Sizes are in base64, in
// which APIs count them. docs/models.md has the table, with its sources.
type Accepts struct {
	Server       string   // the subject of a sentence: Anthropic's API
	Images       []string // media types
	Animated     bool     // also images of several frames
	Documents    bool     // PDFs
	ImageMax     int      // bytes of one image; 0: see TotalMax
	ImageSideMax int      // pixels; 0: no limit is published
	TotalMax     int      // bytes of all images and documents of a request; it leaves room for the text
}

// Fit returns messages in which every part with data is one that the API takes,
// under the media type of its bytes. A line of text that says why takes the place
// of any other, in the message's text too. If all of them are too much for one
// request, the latest are kept. It does not change the messages of the request,
// which may be cached.
func (a *Accepts) Fit(messages []executor.Message) []executor.Message {
	fits := messages
	left := a.TotalMax
	for i := len(messages) - 1; i >= 0; i-- {
		if !slices.ContainsFunc(messages[i].Parts, isFile) {
			continue
		}
		if &fits[0] == &messages[0] {
			fits = slices.Clone(messages)
		}
		left = a.fit(&fits[i], left)
	}
	return fits
}

func isFile(p executor.Part) bool { return len(p.Data) > 0 }

// fit replaces the parts of one message. It returns what is left of left.
func (a *Accepts) fit(m *executor.Message, left int) int {
	m.Parts = slices.Clone(m.Parts)
	var lines []string
	for i := len(m.Parts) - 1; i >= 0; i-- {
		p := &m.Parts[i]
		if !isFile(*p) {
			continue
		}
		kind, size := media.Type(p.Data), media.EncodedLen(len(p.Data))
		why := a.refuses(kind, p.Data, size)
		if why == "" && size > left {
			why = "the images and documents of the conversation are more than one request may have: the latest ones are shown"
		}
		if why == "" {
			p.MediaType, left = kind, left-size
			continue
		}
		line := fmt.Sprintf("[%s, %d bytes, is not shown: %s]", nameOf(p, kind), len(p.Data), why)
		lines = append(lines, line)
		*p = executor.Part{Text: line}
	}
	if len(lines) == 0 {
		return left
	}
	slices.Reverse(lines)
	m.Text = strings.TrimPrefix(m.Text+"\n"+strings.Join(lines, "\n"), "\n")
	if !slices.ContainsFunc(m.Parts, isFile) {
		m.Parts = nil
	}
	return left
}

// refuses returns why the API does not take a file, "" if it does.
func (a *Accepts) refuses(kind string, data []byte, size int) string {
	isImage := strings.HasPrefix(kind, "image/")
	switch {
	case kind == "":
		return "by its first bytes it is no image and no PDF"
	case kind == media.PDF && !a.Documents:
		return a.Server + " takes no documents: ask for the text, or for images of the pages"
	case isImage && !slices.Contains(a.Images, kind):
		return a.Server + " takes " + strings.Join(a.Images, ", ")
	case isImage && !a.Animated && media.IsAnimated(kind, data):
		return a.Server + " takes no animated images"
	case isImage && a.ImageMax > 0 && size > a.ImageMax:
		return fmt.Sprintf("%s takes images of at most %d bytes in base64, and it has %d: make it smaller", a.Server, a.ImageMax, size)
	}
	width, height, ok := media.Sides(kind, data)
	switch {
	case !ok:
		return "its header can't be read"
	case a.ImageSideMax > 0 && max(width, height) > a.ImageSideMax:
		return fmt.Sprintf("%s takes images of at most %d pixels a side, and it has %d by %d: make it smaller", a.Server, a.ImageSideMax, width, height)
	}
	return ""
}

// nameOf names a file in a line of text. The label is foreign, and shown only if
// the bytes say nothing.
func nameOf(p *executor.Part, kind string) string {
	if kind == "" {
		kind = strings.ToValidUTF8(p.MediaType, "\uFFFD")
	}
	if p.Name == "" {
		return kind
	}
	return p.Name + ", " + kind
}
