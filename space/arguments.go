package space

import (
	"regexp"
	"strconv"
	"strings"
)

// placeholder matches a placeholder in a skill's text: for all arguments, or
// for one of them.
var placeholder = regexp.MustCompile(`\$(?:ARGUMENTS\b|[1-9][0-9]?\b)`)

// SkillFilledBytesMax is how many bytes a skill with its arguments filled in may have.
const SkillFilledBytesMax = 192 << 10

// FillArguments fills arguments into a skill's text: $ARGUMENTS is all of them, $1
// the first word. found is false if the text has no placeholder. Without arguments
// the text stays as it is: its $1 may be a shell's. ok is false if the result would
// have more than SkillFilledBytesMax bytes.
func FillArguments(text, given string) (filled string, found, ok bool) {
	places := placeholder.FindAllStringIndex(text, -1)
	if len(places) == 0 || strings.TrimSpace(given) == "" {
		return text, len(places) > 0, true
	}
	size := len(text)
	for _, at := range places {
		size += len(given) - (at[1] - at[0])
	}
	if size > SkillFilledBytesMax {
		return "", true, false
	}
	words := splitWords(given)
	return placeholder.ReplaceAllStringFunc(text, func(name string) string {
		n, err := strconv.Atoi(name[1:])
		switch {
		case err != nil:
			return given
		case n > len(words):
			return ""
		}
		return words[n-1]
	}), true, true
}

// splitWords splits at white space; a quoted text is one word.
func splitWords(text string) (words []string) {
	var b strings.Builder
	quote, begun := rune(0), false
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			b.WriteRune(r)
		case r == '"' || r == '\'' && !begun:
			quote, begun = r, true
		case strings.ContainsRune(" \t\r\n", r):
			if begun {
				words = append(words, b.String())
				b.Reset()
			}
			begun = false
		default:
			b.WriteRune(r)
			begun = true
		}
	}
	if begun {
		words = append(words, b.String())
	}
	return words
}
