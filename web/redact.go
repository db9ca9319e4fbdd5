package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/refold/refold"
)

// redacted stands for a text that a pattern matches.
const redacted = "[redacted]"

// cutMark ends texts that were cut.
const cutMark = "…"

// masks are the patterns of Options.Redact.
type masks []*regexp.Regexp

// text returns a text without what the patterns match. The word at which it was cut may be
// the beginning of a secret, so it goes, too.
func (m masks) text(s string) string {
	if whole, ok := strings.CutSuffix(s, cutMark); ok {
		s = strings.TrimRightFunc(whole, func(r rune) bool { return !unicode.IsSpace(r) }) + cutMark
	}
	for _, pattern := range m {
		s = pattern.ReplaceAllString(s, redacted)
		if !strings.ContainsRune(s, '\\') {
			continue
		}
		// JSON in a text has its secrets with escapes.
		plain, from := unescaped(s)
		var b strings.Builder
		end := 0
		for _, at := range pattern.FindAllStringIndex(plain, -1) {
			b.WriteString(s[end:from[at[0]]] + redacted)
			end = from[at[1]]
		}
		s = b.String() + s[end:]
	}
	return s
}

// unescaped returns a text without the escapes of JSON, however often it was quoted, and
// for each of its bytes, and its end, the place in the text that it is from.
func unescaped(s string) (plain string, from []int) {
	var b strings.Builder
	for i := 0; i < len(s); {
		start := i
		for i < len(s) && s[i] == '\\' {
			i++
		}
		part := s[i:min(i+1, len(s))]
		if i > start {
			switch {
			case part == "n" || part == "t" || part == "r":
				part = map[string]string{"n": "\n", "t": "\t", "r": "\r"}[part]
			case part == "u" && i+5 <= len(s):
				if code, err := strconv.ParseUint(s[i+1:i+5], 16, 16); err == nil {
					part = string(rune(code))
					i += 4
				}
			}
		}
		i++
		b.WriteString(part)
		for range len(part) {
			from = append(from, start)
		}
	}
	return b.String(), append(from, len(s))
}

// json returns JSON whose names, texts and numbers are masked.
func (m masks) json(text []byte) []byte {
	if len(m) == 0 {
		return text
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return []byte(`"` + redacted + `"`)
	}
	out, err := json.Marshal(m.value(v))
	if err != nil {
		return []byte(`"` + redacted + `"`)
	}
	return out
}

func (m masks) value(v any) any {
	switch v := v.(type) {
	case string:
		return m.text(v)
	case json.Number:
		if text := m.text(v.String()); text != v.String() {
			return text
		}
	case []any:
		for i := range v {
			v[i] = m.value(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, of := range v {
			out[m.text(name)] = m.value(of)
		}
		return out
	}
	return v
}

// keepsBytes fails for operations that send what is stored as it is, if secrets are
// masked.
func (s *server) keepsBytes(rt *route) error {
	if len(s.masks) == 0 || !rt.stored {
		return nil
	}
	return problem(http.StatusForbidden, CodeForbidden, "this server masks secrets, so it sends nothing as it is stored: neither bytes of events nor what a page needs to prove a session")
}

// whole returns a function that passes updates on, with the text of a turn as one: a
// pattern matches no part of a secret. The text has the position of its last part.
func whole(each func(refold.Update) (bool, error)) func(refold.Update) (bool, error) {
	var held []refold.Update
	return func(u refold.Update) (bool, error) {
		last := len(held) - 1
		switch u := u.(type) {
		case refold.Text:
			for i := last; i >= 0; i-- {
				if text, ok := held[i].(refold.Text); ok && text.Run == u.Run && text.Turn == u.Turn {
					u.Text = text.Text + u.Text
					held = append(held[:i], held[i+1:]...)
					break
				}
			}
			held = append(held, u)
			return true, nil
		case refold.TextRestarted:
			held = slices.DeleteFunc(held, func(u refold.Update) bool { _, text := u.(refold.Text); return text })
		case refold.Waiting:
			if last >= 0 {
				held = append(held, u)
				return true, nil
			}
		}
		all := slices.Concat(held, []refold.Update{u})
		held = nil
		for _, u := range all {
			if more, err := each(u); err != nil || !more {
				return more, err
			}
		}
		return true, nil
	}
}

// Patterns reads the patterns of Options.Redact: regular expressions in Go's syntax, one a
// line. Empty lines and lines that begin with # do not count. The error names the line.
func Patterns(text string) (all []*regexp.Regexp, err error) {
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		pattern, err := regexp.Compile(line)
		switch {
		case err != nil:
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		case pattern.MatchString(""):
			return nil, fmt.Errorf("line %d: %s matches the empty text, so it would mask everything: make it match at least one character", n+1, line)
		}
		all = append(all, pattern)
	}
	return all, nil
}
