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
	Many         Many
	TotalMax     int // bytes of all images and documents of a request; it leaves room for the text
}

// TextOnly is for a model that takes no images and no documents.
var TextOnly = Accepts{Server: "this model"}

// Many is what an API takes of a request's images together; 0: no limit is published.
type Many struct {
	Max     int // images, and pages of documents, of a request
	Large   int // up to so many images may have sides of more than SideMax
	SideMax int // pixels
}

// fitted is what a request has room for.
type fitted struct {
	left  int  // bytes in base64
	files int  // images, and pages of documents, so far
	large bool // one of them has more than Many.SideMax pixels a side
}

// Fit returns messages in which every part with data is one that the API takes,
// under the media type of its bytes. A line of text that says why takes the place
// of any other, in the message's text too. If all of them are too much or too many
// for one request, the latest are kept. It does not change the messages of the request,
// which may be cached.
func (a *Accepts) Fit(messages []executor.Message) []executor.Message {
	fits := messages
	all := fitted{left: a.TotalMax}
	for i := len(messages) - 1; i >= 0; i-- {
		if len(messages[i].Parts) == 0 {
			continue
		}
		if &fits[0] == &messages[0] {
			fits = slices.Clone(messages)
		}
		a.fit(&fits[i], &all)
	}
	return fits
}

func isFile(p executor.Part) bool { return len(p.Data) > 0 || p.Text == "" && p.MediaType != "" }

// fit replaces the parts of one message. all is of the later ones, and counts these.
func (a *Accepts) fit(m *executor.Message, all *fitted) {
	m.Parts = slices.Clone(m.Parts)
	var lines []string
	for i := len(m.Parts) - 1; i >= 0; i-- {
		p := &m.Parts[i]
		if !isFile(*p) {
			continue
		}
		kind, size := media.Type(p.Data), media.EncodedLen(len(p.Data))
		why := a.refuses(kind, p.Data, size)
		if why == "" {
			why = a.exceeds(kind, p.Data, size, all)
		}
		if why == "" {
			p.MediaType = kind
			continue
		}
		line := fmt.Sprintf("[%s, %d bytes, is not shown: %s]", nameOf(p, kind), len(p.Data), why)
		lines = append(lines, line)
		*p = executor.Part{Text: line}
	}
	if len(lines) > 0 {
		slices.Reverse(lines)
		m.Text = strings.TrimPrefix(m.Text+"\n"+strings.Join(lines, "\n"), "\n")
	}
	if !slices.ContainsFunc(m.Parts, isFile) { // the text says it all
		m.Parts = nil
	}
}

// exceeds returns why a file is more than a request may have besides the later
// ones, "" if it is not, and counts it then.
func (a *Accepts) exceeds(kind string, data []byte, size int, all *fitted) string {
	width, height, _ := media.Sides(kind, data)
	files := 1
	if kind == media.PDF && a.Many.Max > 0 {
		files = max(1, media.Pages(data))
	}
	large := a.Many.SideMax > 0 && max(width, height) > a.Many.SideMax
	switch {
	case a.Many.Max > 0 && files > a.Many.Max:
		return fmt.Sprintf("%s takes documents of at most %d pages, and it has %d: split it", a.Server, a.Many.Max, files)
	case size > all.left, a.Many.Max > 0 && all.files+files > a.Many.Max:
		return "the images and documents of the conversation are more than one request may have: the latest ones are shown"
	case (large || all.large) && all.files+files > a.Many.Large:
		return fmt.Sprintf("%s takes at most %d images if one has more than %d pixels a side: the latest ones are shown; make them smaller",
			a.Server, a.Many.Large, a.Many.SideMax)
	}
	all.left, all.files, all.large = all.left-size, all.files+files, all.large || large
	return ""
}

// refuses returns why the API does not take a file, "" if it does.
func (a *Accepts) refuses(kind string, data []byte, size int) string {
	isImage := strings.HasPrefix(kind, "image/")
	switch {
	case size == 0:
		return "it is empty"
	case kind == "":
		return "by its first bytes it is no image and no PDF"
	case kind == media.PDF && !a.Documents:
		return a.Server + " takes no documents: ask for the text, or for images of the pages"
	case isImage && len(a.Images) == 0:
		return a.Server + " takes no images: describe it, or use another model"
	case isImage && !slices.Contains(a.Images, kind):
		return a.Server + " takes " + strings.Join(a.Images, ", ")
	case isImage && !a.Animated && media.IsAnimated(kind, data):
		return a.Server + " takes no animated images"
	case isImage && a.ImageMax > 0 && size > a.ImageMax:
		return fmt.Sprintf("%s takes images of at most %d bytes in base64, and it has %d: make it smaller", a.Server, a.ImageMax, size)
	}
	if fault := media.Fault(kind, data); fault != "" {
		return "the file is damaged: " + fault
	}
	if width, height, _ := media.Sides(kind, data); a.ImageSideMax > 0 && max(width, height) > a.ImageSideMax {
		return fmt.Sprintf("%s takes images of at most %d pixels a side, and it has %d by %d: make it smaller", a.Server, a.ImageSideMax, width, height)
	}
	return ""
}

// nameOf names a file in a line of text. The label is foreign, and shown only if
// the bytes say nothing.
func nameOf(p *executor.Part, kind string) string {
	if kind == "" {
		kind = p.MediaType
	}
	if p.Name == "" {
		return kind
	}
	return p.Name + ", " + kind
}
