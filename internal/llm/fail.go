package llm

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
)

// excerptBytesMax is the length of an Excerpt: two of them and the words around
// them fit the detail of an error.
const excerptBytesMax = 88

// Fail returns the error that settles a generation as `failed` with code. It
// cuts the detail to session.DetailBytesMax bytes.
func Fail(code, format string, args ...any) *executor.Error {
	return &executor.Error{Code: code, Detail: Clip(fmt.Sprintf(format, args...), session.DetailBytesMax)}
}

// Clip returns at most bytesMax bytes of text, which must be 3 or more. An
// ellipsis marks a cut, which never splits a character.
func Clip(text string, bytesMax int) string {
	if len(text) <= bytesMax {
		return text
	}
	const mark = "…"
	end := bytesMax - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}

// Excerpt returns the beginning of text in quotes, on one line.
func Excerpt(text string) string {
	return Clip(strconv.Quote(Clip(text, excerptBytesMax)), excerptBytesMax)
}

// Difference returns excerpts of two texts around the first byte in which they
// differ.
func Difference(want, got string) (wantExcerpt, gotExcerpt string) {
	const before = 16 // bytes before the difference
	at := 0
	for at < len(want) && at < len(got) && want[at] == got[at] {
		at++
	}
	from := max(0, at-before)
	for from > 0 && !utf8.RuneStart(want[from]) {
		from--
	}
	if from == 0 {
		return Excerpt(want), Excerpt(got)
	}
	return "…" + Excerpt(want[from:]), "…" + Excerpt(got[from:])
}
