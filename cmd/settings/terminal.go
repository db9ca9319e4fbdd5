package settings

import (
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Terminal returns a writer for f that is safe to print untrusted text to. If f
// is a terminal, characters that it would interpret or not show are escaped: ESC
// becomes \x1b. Models, tools and strangers write what programs print; their
// control sequences could set the clipboard, hide lines or answer for the user.
// Files and pipes get the text unchanged.
func Terminal(f *os.File) io.Writer {
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return f
	}
	return &spelling{to: f}
}

// Raw returns the innermost writer below one that Terminal returned or that has a
// method Below. Other writers it returns as they are.
func Raw(w io.Writer) io.Writer {
	for {
		above, ok := w.(interface{ Below() io.Writer })
		if !ok {
			return w
		}
		w = above.Below()
	}
}

// spelling escapes what a terminal would interpret. It is safe for concurrent use.
type spelling struct {
	to   io.Writer
	mu   sync.Mutex
	rest []byte // the beginning of a character that the next write completes
}

// Write writes p, except for an incomplete character at its end.
func (s *spelling) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := slices.Concat(s.rest, p)
	safe := make([]byte, 0, len(text))
	for len(text) > 0 && (utf8.FullRune(text) || len(text) >= utf8.UTFMax) {
		var size int
		safe, size = appendSpelled(safe, text)
		text = text[size:]
	}
	s.rest = append([]byte(nil), text...)
	if _, err := s.to.Write(safe); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Spelled returns text as a writer of Terminal shows it, all on one line.
func Spelled(text string) string {
	safe := make([]byte, 0, len(text))
	for rest := []byte(text); len(rest) > 0; {
		if rest[0] == '\n' || rest[0] == '\t' {
			safe, rest = append(safe, ' '), rest[1:]
			continue
		}
		var size int
		safe, size = appendSpelled(safe, rest)
		rest = rest[size:]
	}
	return string(safe)
}

// appendSpelled appends the first character of text, escaped if a terminal would
// interpret it, and returns its size in text, in bytes.
func appendSpelled(safe, text []byte) (_ []byte, size int) {
	char, size := utf8.DecodeRune(text)
	switch {
	case char == utf8.RuneError && size == 1:
		return fmt.Appendf(safe, `\x%02x`, text[0]), size
	case !isObeyed(char):
		return append(safe, text[:size]...), size
	case char < 0x100:
		return fmt.Appendf(safe, `\x%02x`, char), size
	case char < 0x10000:
		return fmt.Appendf(safe, `\u%04x`, char), size
	}
	return fmt.Appendf(safe, `\U%08x`, char), size
}

// Below returns the terminal.
func (s *spelling) Below() io.Writer { return s.to }

// isObeyed reports whether a terminal does more with a character than show it:
// controls of both blocks, changes of the text's direction, characters without
// width, and line separators other than the line feed.
func isObeyed(char rune) bool {
	if char == '\n' || char == '\t' {
		return false
	}
	if char == '\ufe0e' || char == '\ufe0f' { // variation selectors: text or emoji
		return false
	}
	return unicode.In(char, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
