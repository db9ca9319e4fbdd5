package secrets

import (
	"bytes"
	"html"
	"sort"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// view is a text after decoding, with the places of its bytes in the original.
type view struct {
	text []byte
	of   *view // what was decoded; nil: this is the original
	runs []run
}

// run is a part of a view that was copied, or what one escape stands for.
type run struct {
	at       int // in the view
	from, to int // in what was decoded
	escape   bool
}

// run returns the run with byte i.
func (v *view) run(i int) run {
	n := sort.Search(len(v.runs), func(n int) bool { return v.runs[n].at > i })
	return v.runs[n-1]
}

// from returns where in the original byte i begins.
func (v *view) from(i int) int {
	if v.of == nil {
		return i
	}
	r := v.run(i)
	if r.escape {
		return v.of.from(r.from)
	}
	return v.of.from(r.from + i - r.at)
}

// to returns where in the original byte i ends.
func (v *view) to(i int) int {
	if v.of == nil {
		return i + 1
	}
	r := v.run(i)
	if r.escape {
		return v.of.to(r.to - 1)
	}
	return v.of.to(r.from + i - r.at)
}

// copied appends a part of what is decoded.
func (v *view) copied(from, to int) {
	if from < to {
		v.runs = append(v.runs, run{at: len(v.text), from: from, to: to})
		v.text = append(v.text, v.of.text[from:to]...)
	}
}

// bare returns the view without white space.
func (v *view) bare() *view {
	if !bytes.ContainsAny(v.text, " \n\r\t\v\f") {
		return v
	}
	out := &view{of: v, text: make([]byte, 0, len(v.text))}
	from := 0
	for i, c := range v.text {
		if isSpace(c) {
			out.copied(from, i)
			from = i + 1
		}
	}
	out.copied(from, len(v.text))
	return out
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// decodedMax is how many escapes within each other are decoded.
const decodedMax = 4

// decoded returns the view with each escape replaced by what it stands for, and
// reports whether there is one.
func (v *view) decoded() (out *view, changed bool) {
	out = &view{of: v}
	from := 0
	for i := 0; i < len(v.text); {
		next := bytes.IndexAny(v.text[i:], `\%&`)
		if next < 0 {
			break
		}
		i += next
		text, n := unescape(v.text[i:])
		if n == 0 {
			i++
			continue
		}
		out.copied(from, i)
		if len(text) > 0 {
			out.runs = append(out.runs, run{at: len(out.text), from: i, to: i + n, escape: true})
			out.text = append(out.text, text...)
		}
		i += n
		from = i
	}
	if from == 0 {
		return v, false
	}
	out.copied(from, len(v.text))
	return out, true
}

// unescape decodes the escape at the beginning of text, and returns its length; 0
// if there is none.
func unescape(text []byte) (decoded []byte, n int) {
	switch text[0] {
	case '\\':
		return backslash(text)
	case '%':
		if c, ok := number(text, 1, 2, 16); ok {
			return []byte{byte(c)}, 3
		}
	case '&':
		if end := bytes.IndexByte(text[:min(len(text), entityMax)], ';'); end > 0 {
			if decoded := html.UnescapeString(string(text[:end+1])); decoded != string(text[:end+1]) {
				return []byte(decoded), end + 1
			}
		}
	}
	return nil, 0
}

// The lengths of escapes.
const (
	entityMax = 34 // of HTML
	escapeMax = 40 // of all, and of some within each other
)

// backslash decodes an escape of JSON, Go, JavaScript, Python or C.
func backslash(text []byte) (decoded []byte, n int) {
	if len(text) < 2 {
		return nil, 0
	}
	switch c := text[1]; c {
	case '"', '\\', '/', '\'', '`', '\n':
		return []byte{c}, 2
	case 'n', 'r', 't', 'v', 'f', 'a', 'b':
		return []byte{"\n\r\t\v\f\a\b"[strings.IndexByte("nrtvfab", c)]}, 2
	case 'x':
		if c, ok := number(text, 2, 2, 16); ok {
			return []byte{byte(c)}, 4
		}
	case 'u':
		return unicodeEscape(text)
	case 'U':
		if c, ok := number(text, 2, 8, 16); ok && c <= utf8.MaxRune {
			return utf8.AppendRune(nil, rune(c)), 10
		}
	case '0', '1', '2', '3':
		if c, ok := number(text, 1, 3, 8); ok {
			return []byte{byte(c)}, 4
		}
	}
	return nil, 0
}

// unicodeEscape decodes \u with four hex digits, two of them that stand for one
// character, and \u{} with up to six.
func unicodeEscape(text []byte) (decoded []byte, n int) {
	if end := bytes.IndexByte(text[:min(len(text), len(`\u{10FFFF}`))], '}'); end > 0 && text[2] == '{' {
		if c, ok := number(text, 3, end-3, 16); ok && c <= utf8.MaxRune {
			return utf8.AppendRune(nil, rune(c)), end + 1
		}
		return nil, 0
	}
	first, ok := number(text, 2, 4, 16)
	if !ok {
		return nil, 0
	}
	if bytes.HasPrefix(text[6:], []byte(`\u`)) {
		if second, ok := number(text, 8, 4, 16); ok {
			if c := utf16.DecodeRune(rune(first), rune(second)); c != utf8.RuneError {
				return utf8.AppendRune(nil, c), 12
			}
		}
	}
	return utf8.AppendRune(nil, rune(first)), 6
}

// number reads some digits.
func number(text []byte, from, digits, base int) (n uint64, ok bool) {
	if digits < 1 || len(text) < from+digits {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[from:from+digits]), base, 32)
	return n, err == nil && !bytes.ContainsAny(text[from:from+digits], "+_")
}

// escapeBegun returns where the last escapes of text begin, which may continue
// after it.
func escapeBegun(text []byte) int {
	end := max(0, len(text)-escapeMax)
	if i := bytes.IndexAny(text[end:], `\%&`); i >= 0 {
		return end + i
	}
	return len(text)
}
