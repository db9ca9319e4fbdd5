package llm

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/prompt"
)

// Sendable returns req with texts that every server can parse: in the system
// text, messages, names of files, arguments, thoughts, tools and the answer's
// schema, U+FFFD replaces NUL, invalid UTF-8 and half surrogate pairs. Strict parsers refuse a
// whole request for one of them, and would refuse every later turn too. A blank
// system text is left out. The log keeps what came, and req is not changed.
func Sendable(req executor.Request) executor.Request {
	if req.System = Unicode(req.System); IsBlank(req.System) {
		req.System = ""
	}
	if req.Format != nil {
		format := *req.Format
		format.Name, format.Schema = Unicode(format.Name), unicodeJSON(format.Schema)
		req.Format = &format
	}
	req.Tools, req.Defined = sendableTools(req.Tools), sendableTools(req.Defined)
	req.Messages = slices.Clone(req.Messages)
	for i := range req.Messages {
		m := &req.Messages[i]
		sendableText(m)
		if len(m.Parts) > 0 {
			m.Parts = slices.Clone(m.Parts)
			for i := range m.Parts {
				p := &m.Parts[i]
				p.Text, p.Name, p.MediaType = Unicode(p.Text), Unicode(p.Name), Unicode(p.MediaType)
			}
		}
		if slices.ContainsFunc(m.Calls, func(c executor.MessageCall) bool { return c.Arguments != UnicodeJSON(c.Arguments) }) {
			m.Calls = slices.Clone(m.Calls)
			for i := range m.Calls {
				m.Calls[i].Arguments = UnicodeJSON(m.Calls[i].Arguments)
			}
		}
	}
	return req
}

func sendableTools(tools []executor.Tool) []executor.Tool {
	tools = slices.Clone(tools)
	for i := range tools {
		t := &tools[i]
		t.Description, t.Schema = Unicode(t.Description), unicodeJSON(t.Schema)
	}
	return tools
}

// sendableText makes a message's text and opaque data sendable. The opaque data
// counts bytes of the text, which may have changed.
func sendableText(m *executor.Message) {
	text := Unicode(m.Text)
	if text == m.Text && !bytes.Contains(m.Opaque, []byte(`\u`)) {
		return
	}
	if o := readOpaque(m); o != nil && o.fits(m) {
		rest := m.Text
		text = ""
		for i := range o.Pieces {
			p := &o.Pieces[i]
			p.Item, p.Mark = UnicodeJSON(p.Item), UnicodeJSON(p.Mark)
			said := Unicode(rest[:p.Text])
			rest, p.Text = rest[p.Text:], len(said)
			text += said
		}
		m.Opaque = JSON(o)
	}
	m.Text = text
}

// Unicode replaces NUL and invalid UTF-8 by U+FFFD.
func Unicode(text string) string {
	return strings.ReplaceAll(prompt.Valid(text), "\x00", "\uFFFD")
}

// UnicodeJSON is Unicode for JSON, which may be malformed: it also replaces
// escapes of NUL and of half surrogate pairs.
func UnicodeJSON(text string) string {
	text = Unicode(text)
	if !strings.Contains(text, `\u`) {
		return text
	}
	var b strings.Builder
	for {
		at := strings.IndexByte(text, '\\')
		if at < 0 || at+1 == len(text) {
			return b.String() + text
		}
		b.WriteString(text[:at])
		text = text[at:]
		unit, ok := escaped(text)
		width := 0 // of what is written as it is; 0: half of a pair, or NUL
		switch {
		case !ok:
			_, size := utf8.DecodeRuneInString(text[1:])
			width = 1 + size
		case unit == 0:
		case utf16.IsSurrogate(unit):
			if low, ok := escaped(text[escapeBytes:]); ok && utf16.DecodeRune(unit, low) != utf8.RuneError {
				width = 2 * escapeBytes
			}
		default:
			width = escapeBytes
		}
		if width == 0 {
			b.WriteString(`\ufffd`)
			text = text[escapeBytes:]
			continue
		}
		b.WriteString(text[:width])
		text = text[width:]
	}
}

func unicodeJSON(text []byte) []byte {
	if text == nil {
		return nil
	}
	return []byte(UnicodeJSON(string(text)))
}

// escapeBytes is the length of an escape: \u and four hex digits.
const escapeBytes = 6

// escaped returns the UTF-16 code unit of the escape that text begins with.
func escaped(text string) (unit rune, ok bool) {
	if len(text) < escapeBytes || text[:2] != `\u` {
		return 0, false
	}
	n, err := strconv.ParseUint(text[2:escapeBytes], 16, 16)
	return rune(n), err == nil
}
