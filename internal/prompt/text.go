package prompt

import (
	"strings"
	"unicode/utf8"
)

// Valid replaces what is not UTF-8 by U+FFFD.
func Valid(text string) string {
	if utf8.ValidString(text) { // most is, and this is soon seen
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

// placeOf returns an effect's name without its attempt, a<n>: the batch that a
// generation's calls are numbered in.
func placeOf(effect string) string {
	place := strings.TrimRight(effect, "0123456789")
	if len(place) < len(effect) && strings.HasSuffix(place, "a") {
		return place[:len(place)-1]
	}
	return effect
}
