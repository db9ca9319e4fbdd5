package session

import (
	"math"
	"strings"

	"github.com/refold/refold/planner"
)

// A budget estimates the input of a turn before the turn is opened. Only the
// provider knows its tokenizer, so the fold counts the bytes that bridges show a
// model. docs/semantics.md states the rule under Budgets.

// IsShownAsText reports whether bridges show a blob of this media type as text.
func IsShownAsText(mediaType string) bool {
	kind, _, _ := strings.Cut(mediaType, ";")
	return kind == "" || strings.HasPrefix(kind, "text/") || kind == "application/json"
}

// mediaPDF is the media type of the documents that bridges show as such.
const mediaPDF = "application/pdf"

// shownBytes returns how many bytes of c a model is shown.
func (c *Content) shownBytes() int64 {
	if c == nil {
		return 0
	}
	n := int64(len(c.Text))
	switch {
	case c.Blob == nil:
	case IsShownAsText(c.MediaType):
		n += min(c.Size, ShownBytesMax)
	case strings.HasPrefix(c.MediaType, "image/"):
		n += ImageBytes
	case c.MediaType == mediaPDF:
		n += ImageBytes * (1 + min(c.Size, ShownBytesMax)/pageBytes)
	default:
		n += fileBytes
	}
	n += int64(len(c.Name))
	for i := range c.Parts {
		n += c.Parts[i].shownBytes()
	}
	return n
}

// shownResultBytes is shownBytes for the output of a call. A model is shown a
// preview of a long text.
func (c *Content) shownResultBytes() int64 {
	if c == nil {
		return 0
	}
	if c.Blob != nil && c.Size > TextBytesMax && IsShownAsText(c.MediaType) {
		return PreviewBytesMax + int64(len(c.Name))
	}
	if len(c.Parts) == 0 {
		return c.shownBytes()
	}
	n := int64(0)
	for i := range c.Parts {
		n += c.Parts[i].shownResultBytes()
	}
	return n
}

// shownBytes returns how many bytes of a turn with calls a model is shown: its
// text, and the names and arguments of the calls.
func (b *ToolCallsObserved) shownBytes() int64 {
	n := b.Text.shownBytes()
	for i := range b.Calls {
		n += int64(len(b.Calls[i].ToolName) + len(b.Calls[i].Arguments))
	}
	return n
}

// shownBytes returns how many bytes of a call's result a model is shown.
func (b *ToolCallSettled) shownBytes() int64 {
	n := b.Output.shownResultBytes()
	if b.Error != nil {
		n += int64(len(b.Error.Code) + len(b.Error.Detail))
	}
	return n
}

// addToWindow counts bytes that later turns show a model.
func (s *State) addToWindow(bytes int64) {
	s.WindowBytes = uint32(min(int64(s.WindowBytes)+bytes, math.MaxUint32))
}

// nextInputBytes returns how many bytes of the transcript the active run's next
// turn shows, including waiting steers, but without system text and tools. That is
// all that is known before the turn's step.
func (s *State) nextInputBytes() int64 {
	n := int64(s.WindowBytes)
	for i := range s.Run.Steers {
		n += s.Run.Steers[i].Bytes
	}
	return n
}

// turnInputBytes returns how many bytes the latest turn's generation shows:
// transcript bytes of the transcript, the system text, and the definitions of
// tools.
func (s *State) turnInputBytes(transcript int64, defined []planner.Offer) int64 {
	set := planner.Toolset{Offers: defined}
	return transcript + int64(len(s.system())+len(s.Run.Config.ResponseFormat)+set.DescriptorBytes(s.turnRegistry)) + s.promptBytes()
}
