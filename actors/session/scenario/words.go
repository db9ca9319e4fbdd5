package scenario

import (
	"fmt"
	"strconv"
	"strings"
)

// word is one argument of a step: text, or key=text.
type word struct {
	key    string
	text   string
	quoted bool
}

// cutWord cuts text at the first white space.
func cutWord(text string) (first, rest string) {
	i := strings.IndexAny(text, " \n")
	if i < 0 {
		return text, ""
	}
	return text[:i], strings.TrimSpace(text[i+1:])
}

// fields splits the arguments of a step. Quoted text is as in Go; a value that
// begins with { or [ ends at its closing bracket.
func fields(text string) ([]word, error) {
	var words []word
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		var w word
		if i := strings.IndexAny(text, "= \n\""); i > 0 && text[i] == '=' {
			w.key, text = text[:i], text[i+1:]
		}
		value, rest, quoted, err := cutValue(text)
		if err != nil {
			return nil, err
		}
		w.text, w.quoted, text = value, quoted, rest
		words = append(words, w)
	}
	return words, nil
}

// cutValue parses the value at the beginning of text.
func cutValue(text string) (value, rest string, quoted bool, err error) {
	switch {
	case strings.HasPrefix(text, `"`):
		prefix, err := strconv.QuotedPrefix(text)
		if err != nil {
			return "", "", false, fmt.Errorf("scenario: quoted text at %q: %w", text, err)
		}
		value, err = strconv.Unquote(prefix)
		return value, text[len(prefix):], true, err
	case strings.HasPrefix(text, "{"), strings.HasPrefix(text, "["):
		n, err := bracketed(text)
		if err != nil {
			return "", "", false, err
		}
		return text[:n], text[n:], false, nil
	}
	i := strings.IndexAny(text, " \n")
	if i < 0 {
		i = len(text)
	}
	return text[:i], text[i:], false, nil
}

// bracketed returns the length of the bracketed value that text begins with.
func bracketed(text string) (int, error) {
	depth, inText := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[' || c == '(':
			depth++
		case c == '}' || c == ']' || c == ')':
			if depth--; depth == 0 {
				return i + 1, nil
			}
		}
	}
	return 0, fmt.Errorf("scenario: a bracket is not closed in %q", text)
}
