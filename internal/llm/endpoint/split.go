package endpoint

import (
	"bytes"
	"encoding/hex"
	"unicode/utf16"
	"unicode/utf8"
)

// Some servers cut text into events between the two surrogates of a character,
// or between its bytes. Each event then decodes with a replacement character.

// part is a piece of a character in a JSON text: data[from:to].
type part struct {
	from, to int
	escape   bool // a surrogate's escape; else bytes
}

// joinSplit moves a character's beginning at the end of a string in before to
// the string in after that goes on with it. Without one nothing is changed.
func joinSplit(before, after []byte) (newBefore, newAfter []byte) {
	first, ok := splitEnd(before)
	at, goesOn := splitBegin(after, first.escape)
	if !ok || !goesOn {
		return before, after
	}
	begin := before[first.from:first.to]
	newAfter = bytes.Join([][]byte{after[:at], begin, after[at:]}, nil)
	return bytes.Join([][]byte{before[:first.from], before[first.to:]}, nil), newAfter
}

// splitEnd returns the last beginning of a character at the end of a string.
func splitEnd(data []byte) (found part, ok bool) {
	for begin, end := range jsonStrings(data) {
		text := data[begin:end]
		if n := len(text); n >= 6 && isSurrogate(text[n-6:], 0xD800) && backslashes(text[:n-6])%2 == 0 {
			found, ok = part{end - 6, end, true}, true
			continue
		}
		for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
			if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
				if !utf8.FullRune(tail) {
					found, ok = part{end - n, end, false}, true
				}
				break
			}
		}
	}
	return found, ok
}

// splitBegin returns the position of the first string that begins with the rest
// of a character.
func splitBegin(data []byte, escape bool) (int, bool) {
	for begin, end := range jsonStrings(data) {
		text := data[begin:end]
		if escape && isSurrogate(text, 0xDC00) || !escape && len(text) > 0 && !utf8.RuneStart(text[0]) {
			return begin, true
		}
	}
	return 0, false
}

// jsonStrings returns where the contents of the strings of a JSON text begin
// and end. A text without escapes and non-ASCII bytes has none that matter.
func jsonStrings(data []byte) func(yield func(begin, end int) bool) {
	return func(yield func(begin, end int) bool) {
		if !bytes.Contains(data, []byte(`\u`)) && isASCII(data) {
			return
		}
		for i := 0; i < len(data); i++ {
			if data[i] != '"' {
				continue
			}
			begin := i + 1
			for i = begin; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
			if i >= len(data) || !yield(begin, i) {
				return
			}
		}
	}
}

func isASCII(data []byte) bool {
	for _, c := range data {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// isSurrogate reports whether text begins with the escape of a surrogate of the
// half that begins with least.
func isSurrogate(text []byte, least rune) bool {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return false
	}
	var unit [2]byte
	if _, err := hex.Decode(unit[:], text[2:6]); err != nil {
		return false
	}
	r := rune(unit[0])<<8 | rune(unit[1])
	return utf16.IsSurrogate(r) && r&0xFC00 == least
}

// backslashes counts the backslashes at the end of text.
func backslashes(text []byte) int {
	return len(text) - len(bytes.TrimRight(text, `\`))
}

// endsSplit reports whether a string of an event ends within a character.
func endsSplit(data []byte) bool {
	_, ok := splitEnd(data)
	return ok
}
