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

// Terminal returns a writer for f that no text can attack: if f is a terminal,
// characters that it would obey or not show are spelled out, \x1b as four
// characters. Models, tools and strangers write what programs print. Control
// sequences in it could make a terminal set the clipboard, hide lines or answer
// for the user. Files and pipes get what is written.
func Terminal(f *os.File) io.Writer {
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return f
	}
	return &spelling{to: f}
}

// Raw returns the writer below one that Terminal returned or that has a method
// Below, and any other as it is.
func Raw(w io.Writer) io.Writer {
	for {
		above, ok := w.(interface{ Below() io.Writer })
		if !ok {
			return w
		}
		w = above.Below()
	}
}

// spelling spells out what a terminal would obey. It may be used by several
// goroutines at once.
type spelling struct {
	to   io.Writer
	mu   sync.Mutex
	rest []byte // the beginning of a character that the next write completes
}

// Write writes p, but for the beginning of a character at its end.
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

// Spelled returns text as a terminal shows it that Terminal writes to: on one
// line, with a space for each line feed and tab.
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

// appendSpelled appends the first character of text, spelled out if a terminal
// would obey it, and returns how many bytes of text it is.
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

// isObeyed reports whether a terminal does something else with a character than
// show it: controls of both blocks, what turns the direction of text, what has
// no width, and other separators of lines than the line feed.
func isObeyed(char rune) bool {
	if char == '\n' || char == '\t' {
		return false
	}
	if char == '\ufe0e' || char == '\ufe0f' { // whether a sign is text or picture
		return false
	}
	return unicode.In(char, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
