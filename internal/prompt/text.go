package prompt

import (
	"strings"
	"unicode/utf8"
)

// Valid replaces invalid UTF-8 by U+FFFD.
func Valid(text string) string {
	if utf8.ValidString(text) { // the common case, and cheap to check
		return text
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// Clip makes text valid and cuts it to at most n bytes between characters.
func Clip(text string, n int) string {
	text = Valid(text)
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// batchOf returns an effect's name without its attempt, a<n>: the batch in which a
// generation's calls are numbered.
func batchOf(effect string) string {
	name := strings.TrimRight(effect, "0123456789")
	if len(name) < len(effect) && strings.HasSuffix(name, "a") {
		return name[:len(name)-1]
	}
	return effect
}
